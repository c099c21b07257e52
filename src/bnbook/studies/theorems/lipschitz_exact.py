"""Counter-examples to the Lipschitz theorems, in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bnbook.studies.theorems import lipschitz, one_unit
from bnbook.studies.theorems.counterexamples import Counterexample
from bnbook.studies.theorems.one_unit import exact, normalize


def lipschitz_counterexamples() -> list[Counterexample]:
    """For v1 Fact C.1, Fact C.2, Theorems 3.1, C.3, 3.2, C.4; NeurIPS Theorems 4.1 (both readings), 4.4."""
    two = normalize(exact(1, -1))
    four = normalize(exact(1, 1, -1, -1))  # σ = 1, ŷ = y
    x, g = exact(5, -1, -1, -3), exact(1, -5, 3, 1)  # g mirrors x: equal off 1 and ŷ, opposite along ŷ
    plain, through = x @ g, one_unit.gradient(g, four, 1) @ x
    c = plain**2 / ((x @ x) * (g @ g))  # 1/81: the squared cosine; |cosine| = 1/9, whose root is 1/3
    root = one_unit.square_root(one_unit.square_root(c))
    doubled = normalize(2 * four.y_hat)
    slope = exact(2, 0, -1, -1)
    half = normalize(four.y_hat / 2)
    above = exact("1/2", 0, 0, 0)  # at z = ŷ of L = ½ (z₁ - ½)², whose gradient at y = ŷ/2 is zero
    short = exact("1/2", "-1/2", 0, 0)
    outputs = r"$\hat y=(1,1,-1,-1)$, $\sigma=1$"
    return [
        Counterexample(
            "fact_c1_v1",
            "v1 Fact C.1",
            r"$m=2$, $\hat y=(1,-1)$, $\sigma=1$, $f=\hat y^{(1)}$, $b=2$",
            one_unit.gradient(exact(1, 0), two, 1)[1],
            lipschitz.fact_c1_v1(exact(1, 0), Fraction(1), two)[1],
            "=",
        ),
        Counterexample(
            "th41_appendix",
            "4.1, appendix",
            rf"{outputs}, $\gamma=1$, $g=(2,0,-1,-1)$",
            _norm(one_unit.gradient(slope, four, 1)),
            lipschitz.theorem_41(slope, four, 1, Fraction(1, 2)),
        ),
        Counterexample(
            "th41_literal",
            "4.1, read literally",
            r"$y=\frac12(1,1,-1,-1)$, $\gamma=1$, $\mathcal L=\frac12(z_1-\frac12)^2$",
            _norm(one_unit.gradient(above, half, 1)),
            Fraction(0),
        ),
        Counterexample(
            "th44_printed",
            "4.4",
            rf"{outputs}, $\gamma=\lambda=1$, $g=\frac12(1,-1,0,0)$",
            _norm(one_unit.gradient(short, four, 1)),
            lipschitz.theorem_44(short, four, 1, 1, printed=True),
        ),
        Counterexample(
            "th31",
            r"3.1, $\alpha=\sum x y$",
            r"$x=(1,1,-1,-1)$, $y=2x$",
            _norm(one_unit.jacobian(doubled) @ four.y_hat),
            lipschitz.theorem_31(four.y_hat, Fraction(8), doubled),
            "=",
        ),
        Counterexample(
            "th31_pearson",
            r"3.1, $\alpha=1$ (correlation)",
            r"$x=(1,1,-1,-1)$, $y=2x$",
            _norm(one_unit.jacobian(doubled) @ four.y_hat),
            lipschitz.theorem_31(four.y_hat, Fraction(1), doubled),
            "=",
        ),
        Counterexample(
            "c3",
            r"C.3, $\alpha=\sum x\hat y$",
            r"$x=(1,1,-1,-1)$, $y=2x$",
            _norm(one_unit.jacobian(doubled) @ four.y_hat),
            lipschitz.theorem_31(four.y_hat, Fraction(4), doubled, 0),
            "=",
        ),
        Counterexample(
            "th32",
            r"3.2, $c=\frac19$ (correlation)",
            rf"{outputs}, $x=(5,-1,-1,-3)$, $g=(1,-5,3,1)$",
            through**2,
            (1 / root + 1) ** 2 * plain**2,
        ),
        Counterexample(
            "c4",
            r"C.4, $c=\frac1{81}$, $\varepsilon=2c$",
            "the same",
            through**2,
            (1 - Fraction(2)) * plain**2,
        ),
        Counterexample(
            "always",
            "text after 3.2",
            r"the same with $y=2\hat y$, so $\sigma=2$",
            (through / 2) ** 2,
            plain**2,
        ),
    ]


def _norm(v: np.ndarray) -> Fraction:
    return v @ v
