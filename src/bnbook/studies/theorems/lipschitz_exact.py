"""Counter-examples to the Lipschitz theorems, in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bnbook.studies.theorems import lipschitz, one_unit
from bnbook.studies.theorems.counterexamples import Counterexample
from bnbook.studies.theorems.one_unit import Unit, exact, normalize


def lipschitz_counterexamples() -> list[Counterexample]:
    """For v1 Fact C.1, Fact C.2, Theorems 3.1, C.3, 3.2, C.4; NeurIPS Theorems 4.1 (both readings), 4.4."""
    two = normalize(exact(1, -1))
    four = normalize(exact(1, 1, -1, -1))  # σ = 1, ŷ = y
    outputs = r"$\hat y=(1,1,-1,-1)$, $\sigma=1$"
    return [
        *_facts_and_41(two, four, outputs),
        *_theorem_31(four),
        *_theorem_32(four, outputs),
        *_proof_of_c4(four),
    ]


def _facts_and_41(two: Unit, four: Unit, outputs: str) -> list[Counterexample]:
    first, slope, short = exact(1, 0), exact(2, 0, -1, -1), exact("1/2", "-1/2", 0, 0)
    above = exact("1/2", 0, 0, 0)  # at z = ŷ of L = ½ (z₁ - ½)², whose gradient at y = ŷ/2 is zero
    length = lambda g, unit: _norm(one_unit.gradient(g, unit, 1))
    right, wrong = one_unit.gradient(first, two, 1)[1], lipschitz.fact_c1_v1(first, Fraction(1), two)[1]
    words = r"$m=2$, $\hat y=(1,-1)$, $\sigma=1$, $f=\hat y^{(1)}$, $b=2$"
    literal = r"$y=\frac12(1,1,-1,-1)$, $\gamma=1$, $\mathcal L=\frac12(z_1-\frac12)^2$"
    appendix = lipschitz.theorem_41(slope, four, 1, Fraction(1, 2))
    half, minimax = normalize(four.y_hat / 2), lipschitz.theorem_44(short, four, 1, 1, printed=True)
    for_44 = rf"{outputs}, $\gamma=\lambda=1$, $g=\frac12(1,-1,0,0)$"
    for_41 = rf"{outputs}, $\gamma=1$, $g=(2,0,-1,-1)$"
    return [
        Counterexample("fact_c1_v1", "v1 Fact C.1", words, right, wrong, "="),
        Counterexample("th41_appendix", "4.1, appendix", for_41, length(slope, four), appendix),
        Counterexample("th41_literal", "4.1, read literally", literal, length(above, half), Fraction(0)),
        Counterexample("th44_printed", "4.4", for_44, length(short, four), minimax),
    ]


def _theorem_31(four: Unit) -> list[Counterexample]:
    doubled, x, words = normalize(2 * four.y_hat), four.y_hat, r"$x=(1,1,-1,-1)$, $y=2x$"
    square = _norm(one_unit.jacobian(doubled) @ x)
    readings = (
        ("th31", r"3.1, $\alpha=\sum x y$", 8, 1),
        ("th31_pearson", r"3.1, $\alpha=1$ (correlation)", 1, 1),
        ("c3", r"C.3, $\alpha=\sum x\hat y$", 4, 0),
    )
    return [
        Counterexample(
            name, line, words, square, lipschitz.theorem_31(x, Fraction(alpha), doubled, power), "="
        )
        for name, line, alpha, power in readings
    ]


def _theorem_32(four: Unit, outputs: str) -> list[Counterexample]:
    x, g = exact(5, -1, -1, -3), exact(1, -5, 3, 1)  # g mirrors x: equal off 1 and ŷ, opposite along ŷ
    plain, through = (x @ g) ** 2, (one_unit.gradient(g, four, 1) @ x) ** 2
    c = plain / ((x @ x) * (g @ g))  # 1/81: the squared cosine; |cosine| = 1/9, whose root is 1/3
    root = one_unit.square_root(one_unit.square_root(c))
    bound, words = (1 / root + 1) ** 2 * plain, rf"{outputs}, $x=(5,-1,-1,-3)$, $g=(1,-5,3,1)$"
    condition, doubled = r"C.4, $c=\frac1{81}$, $\varepsilon=2c$", r"the same with $y=2\hat y$, so $\sigma=2$"
    return [
        Counterexample("th32", r"3.2, $c=\frac19$ (correlation)", words, through, bound),
        Counterexample("c4", condition, "the same", through, (1 - Fraction(2)) * plain),
        Counterexample("always", "text after 3.2", doubled, through / 4, plain),
    ]


def _proof_of_c4(four: Unit) -> list[Counterexample]:
    """Steps of the proof: x = ± 2 ŷ, g = ± ŷ, so that every term of equation 15 is a square of 8 or 16."""
    x, g = 2 * four.y_hat, four.y_hat
    absolute, last = sum(lipschitz.squares_15(x, g, four)), (x @ four.y_hat) ** 2 * (g @ g) / four.m
    sign_16 = (x @ g) ** 2 + lipschitz.middle_16(-x, g, four) + (x @ four.y_hat * (g @ four.y_hat) / 4) ** 2
    # c = 1, α = 8: the printed root is not rational; 173 + 1/2 is above what is printed.
    above_17 = Fraction(int(2 * ((x @ g) ** 2 + last + lipschitz.middle_17(x, g, four, printed=True)) + 1), 2)
    words = r"$\hat y=(1,1,-1,-1)$, $x=2\hat y$, $g=\hat y$"
    turned = words.replace("x=2", "x=-2").replace("g=", "g=")
    derivative = r"(12), $b=1$"
    return [
        Counterexample("equation_12", derivative, words, g[0] ** 2, Fraction(0), "="),
        Counterexample("equation_16", "(16) from (15)", turned, absolute, sign_16),
        Counterexample("equation_17", "(17) from (16), rounded up", words, absolute, above_17),
    ]


def _norm(v: np.ndarray) -> Fraction:
    return v @ v
