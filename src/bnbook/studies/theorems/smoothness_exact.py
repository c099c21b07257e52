"""Counter-examples to the theorems on second derivatives, in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from bnbook.studies.theorems import one_unit, smoothness
from bnbook.studies.theorems.counterexamples import Counterexample
from bnbook.studies.theorems.one_unit import Unit, exact, normalize, project

OUTPUTS = r"$\hat y=(1,1,-1,-1)$, $\sigma=1$"


def smoothness_counterexamples() -> list[Counterexample]:
    """For NeurIPS Theorems 4.2 (second part), C.1 and the text between; v1 equations 58, 59, Theorems C.6,
    3.4 and the text."""
    four = normalize(exact(1, 1, -1, -1))
    identity = np.array([[Fraction(int(b == k)) for k in range(4)] for b in range(4)], dtype=object)
    other = exact(1, -1, 1, -1)  # at right angles to ŷ and to 1
    nothing = 0 * identity
    return [
        *_part_two(four, identity, other),
        Counterexample(
            "c1",
            "C.1",
            rf"{OUTPUTS}, $\gamma=\lambda=1$, $H=0$, $g=\hat y+(1,-1,1,-1)$, $X=0$",
            Fraction(0),
            -((four.y_hat + other) @ four.y_hat) * (other @ other) / 4,
            "<",
        ),
        Counterexample(
            "sign",
            "text after 4.2",
            r"$z=\hat y=(1,1,-1,-1)$, $\mathcal L=\frac12\|z-2\hat y\|^2$",
            -(four.y_hat @ four.y_hat),
            Fraction(0),
            ">",
        ),
        Counterexample(
            "equation_58",
            r"(58): row $i$, column $k$ against row $k$, column $i$",
            rf"{OUTPUTS}, $x_i=\hat y$, $x_k=g=(1,-1,1,-1)$, $H=0$",
            smoothness.equation_58(Fraction(0), other, four.y_hat, other, four, printed=True),
            smoothness.equation_58(Fraction(0), other, other, four.y_hat, four, printed=True),
            "=",
        ),
        Counterexample(
            "equation_59",
            "(59)",
            rf"{OUTPUTS}, $g=-\hat y$, $x_i=x_k=(1,-1,1,-1)$, $H=0$",
            abs(other @ smoothness.through(nothing, -four.y_hat, four, 1) @ other),
            5 * -(four.y_hat @ four.y_hat),
        ),
        *_entries(four, identity, other),
        Counterexample(
            "spectral",
            r"text after 3.4: $\|A\|^2\le\|B\|^2$ for $|A_{ij}|\le|B_{ij}|$",
            r"$A=\left(\begin{smallmatrix}1&1\\1&1\end{smallmatrix}\right)$, "
            r"$B=\left(\begin{smallmatrix}1&1\\1&-1\end{smallmatrix}\right)$",
            Fraction(4),
            Fraction(2),
        ),
    ]


def _part_two(four: Unit, identity: np.ndarray, g: np.ndarray) -> list[Counterexample]:
    """H = ± I preserves all relative norms; g at right angles to 1 and ŷ."""
    made = []
    for name, h, gamma, words in (
        ("second_large", identity, Fraction(2), r"\gamma=2$, $H=I"),
        ("second_concave", -identity, Fraction(1, 2), r"\gamma=\frac12$, $H=-I"),
    ):
        v = one_unit.gradient(g, four, gamma)
        made.append(
            Counterexample(
                name,
                "4.2, second part",
                rf"{OUTPUTS}, ${words}$, $g=(1,-1,1,-1)$",
                v @ smoothness.through(h, g, four, gamma) @ v,
                smoothness.theorem_42(h, g, four, gamma, v, second=True),
            )
        )
    return made


def _entries(four: Unit, identity: np.ndarray, other: np.ndarray) -> list[Counterexample]:
    """Theorem C.6 and what it is made of."""
    x = four.y_hat
    # y = (3 x_i + 4 x_k)/5 mixes two inputs of ±1, which meet the assumption for H = I with d = 1/4; then σ =
    # 4.
    mixed = normalize((3 * x + 4 * other) / 5)
    entry = x @ project(other, mixed) / 16
    # One input with H = x xᵀ / 100, so d = 1, ‖g‖ = 2, x'Hx = 64/100; 3.4: 0.6 of it would be allowed at σ =
    # 5.
    single, g = x + other, -other
    bent = np.outer(single, single) / 100
    wide = normalize(5 * x)
    steep = single @ smoothness.through(bent, g, wide, 1) @ single
    words = (
        r"$x_i=(1,1,-1,-1)$, $x_k=(1,-1,1,-1)$, $y=\frac{4}{5}(3x_i+4x_k)$, "
        r"$H=I$, $g=0$, $\varepsilon=\frac7{64}$"
    )
    return [
        Counterexample(
            "plain",
            "formula for the plain network, before C.6's bound",
            r"$x_i=x_k=(1,1,-1,-1)$, $H=I$ ($d=\frac14$)",
            x @ identity @ x,
            Fraction(2),
            "=",
        ),  # m √(d d) σ σ ‖H‖ = 4 · ¼ · 2
        Counterexample("c6_zero", r"C.6, $i\ne k$", words, abs(entry), Fraction(0)),
        Counterexample(
            "c6_flat",
            r"C.6, $(i,j)=(k,l)$",
            r"$\hat y=(1,1,-1,-1)$, $\sigma=5$, $x=\hat y+p$, $g=-p$, $p=(1,-1,1,-1)$, "
            r"$H=\frac1{100}xx^\top$, $\varepsilon=\frac35$",
            abs(steep),
            Fraction(2, 5) * (single @ bent @ single),
        ),
    ]
