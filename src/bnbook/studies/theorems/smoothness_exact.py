"""Counter-examples to the theorems on second derivatives, in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bnbook.studies.theorems import one_unit, smoothness
from bnbook.studies.theorems.counterexamples import Counterexample
from bnbook.studies.theorems.one_unit import Unit, exact, normalize, project

OUTPUTS = r"$\hat y=(1,1,-1,-1)$, $\sigma=1$"


def smoothness_counterexamples() -> list[Counterexample]:
    """For NeurIPS Theorems 4.2 (second part), C.1, v1 equations 58, 59, Theorems C.6, 3.4, and the text."""
    four = normalize(exact(1, 1, -1, -1))
    identity = np.array([[Fraction(int(b == k)) for k in range(4)] for b in range(4)], dtype=object)
    other = exact(1, -1, 1, -1)  # at right angles to ŷ and to 1
    matrices = r"$A=\left(\begin{smallmatrix}1&1\\1&1\end{smallmatrix}\right)$, "
    matrices += r"$B=\left(\begin{smallmatrix}1&1\\1&-1\end{smallmatrix}\right)$"
    line = r"text after 3.4: $\lVert A\rVert^2\le\lVert B\rVert^2$ for "
    line += r"$\lvert A_{ij}\rvert\le\lvert B_{ij}\rvert$"
    return [
        *_part_two(four, identity, other),
        *_predictive(four, identity, other),
        *_along(four, identity, other),
        *_entries(four, identity, other),
        Counterexample("spectral", line, matrices, Fraction(4), Fraction(2)),
    ]


def _part_two(four: Unit, identity: np.ndarray, g: np.ndarray) -> list[Counterexample]:
    """H = ± I preserves all relative norms; g at right angles to 1 and ŷ."""
    made = []
    for name, h, gamma, words in (
        ("second_large", identity, Fraction(2), r"\gamma=2$, $H=I"),
        ("second_concave", -identity, Fraction(1, 2), r"\gamma=\frac12$, $H=-I"),
    ):
        v, instance = one_unit.gradient(g, four, gamma), rf"{OUTPUTS}, ${words}$, $g=(1,-1,1,-1)$"
        value = v @ smoothness.through(h, g, four, gamma) @ v
        bound = smoothness.theorem_42(h, g, four, gamma, v, second=True)
        made.append(Counterexample(name, "4.2, second part", instance, value, bound))
    return made


def _predictive(four: Unit, identity: np.ndarray, other: np.ndarray) -> list[Counterexample]:
    """A form that is smaller with batch norm, and a gradient that changes more: ‖Ĥ v‖² / ‖v‖², ‖H g‖² / ‖g‖².

    First a linear loss, where both forms are 0; then H = I and forms 2 and 5.
    """
    made = []
    for name, h, g, words in (
        ("predictive_linear", 0 * identity, other, r"H=0$, $g=(1,-1,1,-1)"),
        ("predictive", identity, other + four.y_hat / 2, r"H=I$, $g=\frac12\hat y+(1,-1,1,-1)"),
    ):
        v = one_unit.gradient(g, four, 1)
        change, plain = smoothness.through(h, g, four, 1) @ v, h @ g
        assert v @ change <= g @ plain  # the premise
        instance = rf"{OUTPUTS}, $\gamma=1$, ${words}$"
        value, bound = change @ change / (v @ v), plain @ plain / (g @ g)
        made.append(Counterexample(name, "text before 4.2, squared", instance, value, bound))
    return made


def _along(four: Unit, identity: np.ndarray, other: np.ndarray) -> list[Counterexample]:
    """What a linear loss, H = 0, and a quadratic one refute."""
    zero, y_hat = Fraction(0), four.y_hat
    c1 = -((y_hat + other) @ y_hat) * (other @ other) / 4
    rows = smoothness.equation_58(zero, other, y_hat, other, four, printed=True)
    columns = smoothness.equation_58(zero, other, other, y_hat, four, printed=True)
    curved = abs(other @ smoothness.through(0 * identity, -y_hat, four, 1) @ other)
    for_c1 = rf"{OUTPUTS}, $\gamma=\lambda=1$, $H=0$, $g=\hat y+(1,-1,1,-1)$, $X=0$"
    for_sign = r"$z=\hat y=(1,1,-1,-1)$, $\mathcal L=\frac12\lVert z-2\hat y\rVert^2$"
    for_58 = rf"{OUTPUTS}, $x_i=\hat y$, $x_k=g=(1,-1,1,-1)$, $H=0$"
    for_59 = rf"{OUTPUTS}, $g=-\hat y$, $x_i=x_k=(1,-1,1,-1)$, $H=0$"
    line = r"(58): row $i$, column $k$ against row $k$, column $i$"
    return [
        Counterexample("c1", "C.1", for_c1, zero, c1, "<"),
        Counterexample("sign", "text after 4.2", for_sign, -(y_hat @ y_hat), zero, ">"),
        Counterexample("equation_58", line, for_58, rows, columns, "="),
        Counterexample("equation_59", "(59)", for_59, curved, 5 * -(y_hat @ y_hat)),
    ]


def _entries(four: Unit, identity: np.ndarray, other: np.ndarray) -> list[Counterexample]:
    """Theorem C.6 and what it is made of."""
    x = four.y_hat
    # m √(d d) σ σ ‖H‖ = 4 · ¼ · 2 is what the formula says of the plain network
    for_plain, line = (
        r"$x_i=x_k=(1,1,-1,-1)$, $H=I$ ($d=\frac14$)",
        "formula for the plain network, before C.6's bound",
    )
    # y = (3 x_i + 4 x_k)/5 mixes two inputs of ±1, which meet the assumption for H = I with d = 1/4; σ = 4.
    mixed = normalize((3 * x + 4 * other) / 5)
    entry = x @ project(other, mixed) / 16
    for_zero = r"$x_i=(1,1,-1,-1)$, $x_k=(1,-1,1,-1)$, $y=\frac{4}{5}(3x_i+4x_k)$, "
    for_zero += r"$H=I$, $g=0$, $\varepsilon=\frac7{64}$"
    # One input with H = x xᵀ / 100: d = 1, ‖g‖ = 2, x'Hx = 64/100; 3.4: 0.6 of it would be allowed at σ = 5.
    single, g = x + other, -other
    bent, wide = np.outer(single, single) / 100, normalize(5 * x)
    steep, flat = single @ smoothness.through(bent, g, wide, 1) @ single, single @ bent @ single
    for_flat = r"$\hat y=(1,1,-1,-1)$, $\sigma=5$, $x=\hat y+p$, $g=-p$, $p=(1,-1,1,-1)$, "
    for_flat += r"$H=\frac1{100}xx^\top$, $\varepsilon=\frac35$"
    return [
        Counterexample("plain", line, for_plain, x @ identity @ x, Fraction(2), "="),
        Counterexample("c6_zero", r"C.6, $i\ne k$", for_zero, abs(entry), Fraction(0)),
        Counterexample("c6_flat", r"C.6, $(i,j)=(k,l)$", for_flat, abs(steep), Fraction(2, 5) * flat),
    ]
