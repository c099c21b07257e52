"""Does it flatten the loss? The theorems on second derivatives: both sides, on random instances and in
fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

from bnbook.chapters import theorems
from bnbook.chapters.theorems import (
    Case,
    Counterexample,
    Instance,
    Number,
    Unit,
    batch_norm,
    draw,
    draw_margins,
    exact,
    hessian,
    jacobian,
    look,
    margin,
    normalize,
    project,
)
from bnbook.plots.panels import Panel, compare

# ---- Second derivatives through batch norm, and the bounds on them, as printed and corrected --------------
# Letters as in `theorems`; h (m, m) is the Hessian of the loss for the values z of one unit (or of a pair of
# units), x and x2 (m,) two inputs. Sources: Santurkar et al. 2018, NeurIPS Theorems 4.2, C.1; arXiv v1 Theorems
# 3.4, C.6, equations 34 to 64.

#: Largest value of c p·p' + a' p·q + a p'·q over unit vectors (a, p), (a', p'), (c, q): 2/√3, at a = 1/√3.
TRILINEAR = 2 / math.sqrt(3)
#: Largest value of (1 + cos t) sin t / 2: 3√3/8, at t = 60°.
SWING = 3 * math.sqrt(3) / 8


def through(h: np.ndarray, g: np.ndarray, unit: Unit, gamma: Number) -> np.ndarray:
    """∂²L̂/∂y∂y = (γ²/σ²) P H P - γ/(m σ²) (<g, ŷ> P + (P g) ŷᵀ + ŷ (P g)ᵀ), (m, m), one unit.

    Holds for eps > 0 too; with the unbiased variance m - 1 stands for m.
    """
    kept = project(g, unit)
    outer = np.outer(kept, unit.y_hat)
    p = unit.sigma * jacobian(unit)
    curved = gamma**2 / unit.sigma**2 * (p @ h @ p)
    return curved - gamma / (unit.count * unit.sigma**2) * ((g @ unit.y_hat) * p + outer + outer.T)


def equation_42(h: np.ndarray, g: np.ndarray, unit: Unit, gamma: Number) -> np.ndarray:
    """The same as NeurIPS prints it in equations 41 and 42, with the centred gradient and a term 3/m."""
    m, y, centred = unit.m, unit.y_hat, g - g.mean()
    middle = np.identity(m) - np.ones((m, m)) / m
    p = middle - np.outer(y, y) / m
    mixed = np.outer(centred, y) + np.outer(y, centred) - 3 / m * (g @ y) * np.outer(y, y) + (g @ y) * middle
    return gamma**2 / unit.sigma**2 * (p @ h @ p - mixed / (m * gamma))


def theorem_42(
    h: np.ndarray, g: np.ndarray, unit: Unit, gamma: Number, v: np.ndarray, *, second: bool
) -> Number:
    """Theorem 4.2's right side: (γ²/σ²) u'H u - γ/(m σ²) <g, ŷ> ‖v‖², u = v, in the second part g."""
    u = g if second else v
    return gamma**2 / unit.sigma**2 * (u @ h @ u) - gamma / (unit.m * unit.sigma**2) * (g @ unit.y_hat) * (
        v @ v
    )


def ball_maximum(a: np.ndarray, v: np.ndarray) -> float:
    """max (X Xᵀ v)ᵀ A (X Xᵀ v) over ‖X‖ ≤ 1, for symmetric A: what "the maximum over X" of Theorem C.1 is.

    X Xᵀ v runs through the ball with diameter from 0 to v, so this maximizes wᵀ A w over ‖w - v/2‖ ≤ ‖v‖/2:
    either 0 (at w = 0), or at w_i = μ c_i / (μ - λ_i) in A's eigenbasis, c = v/2, μ > λ_max chosen so that w
    is on the sphere.
    """
    values, vectors = np.linalg.eigh(a)
    top, c = values[-1], vectors.T @ v / 2
    radius = math.sqrt(c @ c)
    if top <= 0 or radius == 0:
        return 0.0

    def away(mu: float) -> np.ndarray:
        """w - c."""
        return values * c / (mu - values)

    low, high = top, top + max(abs(values)) * 2
    while away(high) @ away(high) > radius**2:
        high = top + 2 * (high - top)
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if away(middle) @ away(middle) > radius**2 else (low, middle)
    w = away(high) + c
    # Where v has (almost) nothing along the top eigenvector, the rest of the radius goes there.
    rest = max(radius**2 - away(high) @ away(high), 0.0)
    w[-1] += math.copysign(math.sqrt(away(high)[-1] ** 2 + rest) - abs(away(high)[-1]), c[-1])
    return max(float(values @ w**2), 0.0)


def theorem_c1(
    h: np.ndarray, g: np.ndarray, unit: Unit, gamma: Number, v: np.ndarray, *, printed: bool
) -> float:
    """Right side of Theorem C.1 for λ = 1 (both sides scale as λ⁴), M the plain network's maximum.

    printed: (γ²/σ²) (M - κ) with Theorem 4.2's separation κ = <g, ŷ> ‖v‖² / (m γ). What holds instead:
    (γ²/σ²) ((γ²/σ²) M + ((-γ <g, ŷ>)₊ / γ² + 3√3/8 √m ‖P g‖ / |γ|) ‖v‖² / m).
    """
    m, along = unit.m, g @ unit.y_hat
    largest, square, scale = ball_maximum(h, g), v @ v, gamma**2 / unit.sigma**2
    if printed:
        return scale * (largest - along * square / (m * gamma))
    kept = project(g, unit)
    extra = max(-gamma * along, 0.0) / gamma**2 + SWING * math.sqrt(m * (kept @ kept)) / abs(gamma)
    return scale * (scale * largest + extra * square / m)


def second_term(g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit) -> Number:
    """Σ_b g_b ∂²ŷ^(b)/∂W_i∂W_k for one unit and inputs x, x2, γ = 1:

    -(<g, ŷ> x'P x2 + (x'P g) <ŷ, x2> + <x, ŷ> (x2'P g)) / (m σ²), symmetric in x, x2 and g (up to its means).
    """
    y, kept = unit.y_hat, project(g, unit)
    inside = (g @ y) * (x @ project(x2, unit)) + (x @ kept) * (y @ x2) + (x @ y) * (x2 @ kept)
    return -inside / (unit.count * unit.sigma**2)


def equation_55(g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit) -> Number:
    """The second term as v1 prints it, 1/σ held constant: ((2 α α₂ / m² - β) <g, ŷ> - α <x2, g> / m) / σ²."""
    y, m = unit.y_hat, unit.m
    alpha, alpha2, beta = x @ y, x2 @ y, x @ x2 / m
    return ((-beta + 2 * alpha * alpha2 / m**2) * (g @ y) - alpha * (x2 @ g) / m) / unit.sigma**2


def equation_56(x_h_x: Number, g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit) -> Number:
    """The first term as v1 prints it: (X - β <g, ŷ> + α α₂ <g, ŷ> / m²) / σ²; right is X / σ² alone."""
    y, m = unit.y_hat, unit.m
    return (x_h_x + (-(x @ x2) / m + (x @ y) * (x2 @ y) / m**2) * (g @ y)) / unit.sigma**2


def equation_58(
    x_h_x: Number, g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit, *, printed: bool
) -> Number:
    """∂²L̂/∂W_i∂W_k of one unit for centred inputs, X = x'P H P x2, α = <x, ŷ>, β = <x, x2>/m:

    printed (X - (2β - 3 α α₂/m²) <g, ŷ> - α <x2, g> / m) / σ², not symmetric in i and k;
    right   (X - ( β - 3 α α₂/m²) <g, ŷ> - α <x2, g> / m - α₂ <x, g> / m) / σ².
    """
    y, m = unit.y_hat, unit.m
    alpha, alpha2, beta = x @ y, x2 @ y, x @ x2 / m
    along, tail = g @ y, alpha * (x2 @ g) / m
    if printed:
        inside = x_h_x - (2 * beta - 3 * alpha * alpha2 / m**2) * along - tail
    else:
        inside = x_h_x - (beta - 3 * alpha * alpha2 / m**2) * along - tail - alpha2 * (x @ g) / m
    return inside / unit.sigma**2


def equation_59(x_h_x: float, g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit) -> float:
    """Right side of equation 59 as printed, without absolute values around the sums."""
    spread, spread2 = math.sqrt(x @ x / unit.m), math.sqrt(x2 @ x2 / unit.m)
    along = g @ unit.y_hat
    return (abs(x_h_x) + 5 * spread * spread2 * along + spread * (x2 @ g)) / unit.sigma**2


def equation_61(
    x_h_x: float, g: np.ndarray, x: np.ndarray, x2: np.ndarray, unit: Unit, constant: float
) -> float:
    """(|X| + constant · σ_x σ_x2 ‖g‖) / σ²: constant 6 m as printed, 2/√3 √m the least that holds."""
    size = math.sqrt((x @ x) * (x2 @ x2) * (g @ g)) / unit.m
    return (abs(x_h_x) + constant * size) / unit.sigma**2


def column_share(h: np.ndarray, x: np.ndarray) -> float:
    """d = ‖Hᵀx‖² / (‖H‖² ‖x‖²): v1's assumption on d (which is of every column), summed over them."""
    return float(((h.T @ x) ** 2).sum() / ((h * h).sum() * (x @ x)))


def matrix_cosine(h: np.ndarray, x: np.ndarray, x2: np.ndarray) -> float:
    """D = |x'H x2| / (‖H‖ ‖x‖ ‖x2‖): the cosine of H and x x2ᵀ as matrices."""
    return float(abs(x @ h @ x2) / math.sqrt((h * h).sum() * (x @ x) * (x2 @ x2)))


def threshold_c6(d: float, d2: float, gradient: float, surplus: float) -> float:
    """v1 Theorem C.6's smallest σ_j σ_l: ((1 + √d)(1 + √d₂) + f) / (√(d d₂) - ε), f = 0, 6 ‖g‖ or 3 ‖g‖."""
    return ((1 + math.sqrt(d)) * (1 + math.sqrt(d2)) + gradient) / (math.sqrt(d * d2) - surplus)


def threshold_c6_corrected(cosine: float, ratio: float, surplus: float) -> float:
    """What suffices: ((1 + D)/2 + 2/√3 r) / (D - ε), D the matrix cosine, r = ‖g‖ / (√m ‖H‖) or 0."""
    return ((1 + cosine) / 2 + TRILINEAR * ratio) / (cosine - surplus)


# ---- Counter-examples to the theorems on second derivatives, in fractions ---------------------------------

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
        *_exact_entries(four, identity, other),
        Counterexample("spectral", line, matrices, Fraction(4), Fraction(2)),
    ]


def _part_two(four: Unit, identity: np.ndarray, g: np.ndarray) -> list[Counterexample]:
    """H = ± I preserves all relative norms; g at right angles to 1 and ŷ."""
    made = []
    for name, h, gamma, words in (
        ("second_large", identity, Fraction(2), r"\gamma=2$, $H=I"),
        ("second_concave", -identity, Fraction(1, 2), r"\gamma=\frac12$, $H=-I"),
    ):
        v, instance = theorems.gradient(g, four, gamma), rf"{OUTPUTS}, ${words}$, $g=(1,-1,1,-1)$"
        value = v @ through(h, g, four, gamma) @ v
        bound = theorem_42(h, g, four, gamma, v, second=True)
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
        v = theorems.gradient(g, four, 1)
        change, plain = through(h, g, four, 1) @ v, h @ g
        assert v @ change <= g @ plain  # noqa: S101 (exact: the premise)
        instance = rf"{OUTPUTS}, $\gamma=1$, ${words}$"
        value, bound = change @ change / (v @ v), plain @ plain / (g @ g)
        made.append(Counterexample(name, "text before 4.2, squared", instance, value, bound))
    return made


def _along(four: Unit, identity: np.ndarray, other: np.ndarray) -> list[Counterexample]:
    """What a linear loss, H = 0, and a quadratic one refute."""
    zero, y_hat = Fraction(0), four.y_hat
    c1 = -((y_hat + other) @ y_hat) * (other @ other) / 4
    rows = equation_58(zero, other, y_hat, other, four, printed=True)
    columns = equation_58(zero, other, other, y_hat, four, printed=True)
    curved = abs(other @ through(0 * identity, -y_hat, four, 1) @ other)
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


def _exact_entries(four: Unit, identity: np.ndarray, other: np.ndarray) -> list[Counterexample]:
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
    steep, flat = single @ through(bent, g, wide, 1) @ single, single @ bent @ single
    for_flat = r"$\hat y=(1,1,-1,-1)$, $\sigma=5$, $x=\hat y+p$, $g=-p$, $p=(1,-1,1,-1)$, "
    for_flat += r"$H=\frac1{100}xx^\top$, $\varepsilon=\frac35$"
    return [
        Counterexample("plain", line, for_plain, x @ identity @ x, Fraction(2), "="),
        Counterexample("c6_zero", r"C.6, $i\ne k$", for_zero, abs(entry), Fraction(0)),
        Counterexample("c6_flat", r"C.6, $(i,j)=(k,l)$", for_flat, abs(steep), Fraction(2, 5) * flat),
    ]


# ---- Layers under a quadratic loss with a chosen gradient and a chosen Hessian at the normalized values ----
# L(z) = <a, z - z₀> + ½ (z - z₀)ᵀ Q (z - z₀), z₀ the layer's own output: so g = a and H = Q there, whatever is
# chosen.

FAMILIES = ("any", "rank-one", "isotropic", "any", "reaching")


@dataclass(frozen=True)
class Curved:
    """An instance together with what was chosen."""

    instance: Instance
    slope: np.ndarray  # (m, J) the gradient at z
    curvature: np.ndarray  # (m, J, m, J) the Hessian at z
    family: str

    @property
    def equal_cosines(self) -> bool:
        """Whether it meets v1's assumption on d: an input has the same cosine with every column of H."""
        signs = self.family == "isotropic" and bool((np.abs(self.instance.x) == 1).all())
        return signs or self.family == "rank-one"

    @cached_property
    def case(self) -> Case:
        """The first unit, with the gradient that was chosen."""
        return replace(look(self.instance, 0), g=self.slope[:, 0])

    @property
    def h(self) -> np.ndarray:
        """Its Hessian at z, (m, m)."""
        return self.curvature[:, 0, :, 0]

    @cached_property
    def entries(self) -> tuple[HessianEntry, HessianEntry, HessianEntry]:
        """Of the Hessian for the weights: of two units, of two weights of one unit, of one weight twice."""
        x, w, slope = torch.tensor(self.instance.x), self.instance.w, torch.tensor(self.slope)
        normalized = lambda w_: batch_norm(x @ w_, np.ones(2), np.zeros(2))
        whole = hessian(lambda w_: self.instance.loss(normalized(w_)), w)
        fixed = hessian(lambda w_: (slope * normalized(w_)).sum(), w)
        inputs, units = self.instance.x.T, [normalize(y) for y in self.instance.y.T]

        def entry(i: int, unit: int) -> HessianEntry:
            """Of W_00 and the weight of `unit` for input i."""
            h, both = self.curvature[:, 0, :, unit], (units[0], units[unit])
            return HessianEntry(
                whole[0, 0, i, unit], fixed[0, 0, i, unit], inputs[0], inputs[i], *both, h, self.slope[:, 0]
            )

        return entry(1, 1), entry(1, 0), entry(0, 0)


def draw_curved(rng: np.random.Generator, number: int, *, gamma: float | None = None) -> Curved:
    """Instance `number` with centred inputs; families of Hessians go round.

    "rank-one": every pair of units has H = a bᵀ, the case in which v1's step from d to the plain network is
    right; with m = 16 it is nearly flat. "isotropic": H = h I for every pair, and with m = 4, 8 inputs of ±1
    only, which meet v1's assumption on d exactly. "reaching": x = x2 = g = ŷ/√3 + √(2/3) p, where the second
    term is as large as it can be. `gamma` None: at random.
    """
    family = FAMILIES[number % len(FAMILIES)]
    m = (4, 8, 3, 16)[number // len(FAMILIES) % 4]
    x = rng.standard_normal((m, 3))
    if family == "isotropic" and m in (4, 8):
        x = _signs(m)[:, rng.choice(np.arange(1, m), 3, replace=False)] * rng.choice((-1.0, 1.0), 3)
    x = x - x.mean(0)
    w = rng.standard_normal((3, 2)) * 10 ** rng.uniform(-1, 1)
    slope = rng.standard_normal((m, 2)) * 10 ** rng.uniform(-2, 1)
    if family == "reaching":
        u = rng.standard_normal((m, 2))
        u = u - u.mean(0)
        u = u / np.sqrt((u * u).sum(0))
        p = rng.standard_normal(m)
        p = p - p.mean() - u[:, 0] * (u[:, 0] @ p)
        x[:, 0] = x[:, 1] = (u[:, 0] + np.sqrt(2 / (p @ p)) * p) / np.sqrt(3)
        x[:, 2] = u[:, 0] - 0.7 * x[:, 0]  # so that y_0 can be u_0
        w[:, 0] = (0.3, 0.4, 1.0)
        slope[:, 0] = x[:, 0] * 10 ** rng.uniform(-1, 1)
    scales = rng.choice((-1.0, 1.0), 2) * 10 ** rng.uniform(-1, 1, 2) if gamma is None else np.full(2, gamma)
    shifts = rng.standard_normal(2) if gamma is None else np.zeros(2)
    curvature = _curvature(rng, family, m) * 10 ** rng.uniform(-2, 2)
    if family == "rank-one" and m == 16:
        curvature = curvature / 1000  # flat beside its slope
    z0 = batch_norm(torch.tensor(x @ w), scales, shifts)
    a, q = torch.tensor(slope), torch.tensor(curvature)

    def loss(z: torch.Tensor) -> torch.Tensor:
        away = z - z0
        return (a * away).sum() + torch.einsum("bj,bjqk,qk->", away, q, away) / 2

    return Curved(Instance(x, w, scales, shifts, loss, family), slope, curvature, family)


def _curvature(rng: np.random.Generator, family: str, m: int) -> np.ndarray:
    size = 2 * m
    if family == "rank-one":
        a = rng.standard_normal(size)
        return rng.choice((-1.0, 1.0)) * np.outer(a, a).reshape(m, 2, m, 2) / size
    if family == "isotropic":
        pair = rng.standard_normal((2, 2))
        return np.einsum("bq,jk->bjqk", np.identity(m), pair + pair.T)
    root = rng.standard_normal((size, size))
    return ((root + root.T) / size).reshape(m, 2, m, 2)


def _signs(m: int) -> np.ndarray:
    """Columns of ±1 at right angles, the first constant."""
    one = np.array([[1.0]])
    while len(one) < m:
        one = np.block([[one, one], [one, -one]])
    return one


# ---- Single entries of the Hessian for the weights against version 1's theorems: inputs of mean zero, γ = 1 ----


@dataclass(frozen=True)
class HessianEntry:
    """∂²L̂/∂W∂W' for one weight of a unit and one of the same or another unit."""

    value: float  # by automatic differentiation
    second: float  # the part Σ g ∂²ŷ of it, of equation 35
    x: np.ndarray  # (m,) the first weight's input
    x2: np.ndarray  # (m,) the second weight's
    unit: Unit
    unit2: Unit
    h: np.ndarray  # (m, m) Hessian of the loss for the values of the two units
    g: np.ndarray  # (m,) gradient of the loss for the values of the first unit

    @property
    def inner(self) -> float:
        """X = (P x)ᵀ H P₂ x₂"""
        return float(project(self.x, self.unit) @ self.h @ project(self.x2, self.unit2))

    @property
    def sizes(self) -> float:
        """‖x‖ ‖x₂‖"""
        return math.sqrt((self.x @ self.x) * (self.x2 @ self.x2))

    @property
    def norms(self) -> tuple[float, float]:
        """‖H‖ and ‖g‖"""
        return math.sqrt((self.h**2).sum()), math.sqrt(self.g @ self.g)


# ---- Random layers with all that the page asks of each ----------------------------------------------------

#: Of the batch norm above the layer, whose units may be silent.
EPS = 1e-5
#: What is said without version 1's assumption on d.
ALWAYS = ("margin.plain", "margin.c6_corrected", "margin.th34_corrected", "margin.equation_64_one")


@dataclass(frozen=True)
class Layer:
    """One random layer, layers with chosen Hessians, and what else is drawn at random."""

    case: Case
    other: dict[str, Case]  # with ε > 0, with the unbiased variance
    isotropic: Curved  # H = h I, which preserves relative norms for every pair of vectors
    minimum: np.ndarray  # (m,) of ½ ‖z - minimum‖²
    head: tuple[Tensor, Tensor]  # (2, 4), (4, 3): a hidden layer, and logits
    labels: Tensor  # (m,)
    curved: Curved  # γ = 1, inputs of mean zero
    share: float  # ε of Theorem C.6 over its largest value
    matrices: tuple[np.ndarray, np.ndarray]  # symmetric (6, 6), the first not larger in any entry


def draw_layer(rng: np.random.Generator, number: int) -> Layer:
    """Layer `number`, its derivatives by automatic differentiation."""
    instance, j = draw(rng, number), number % 2
    case = look(instance, j)
    eps = 10 ** rng.uniform(-4, 1) * float(case.y.var())
    other = {"eps": look(instance, j, eps), "unbiased": look(instance, j, unbiased=True)}
    isotropic, m = draw_curved(rng, 5 * number + 2), case.unit.m
    z = abs(case.gamma) * case.unit.y_hat + instance.beta[j]
    minimum = z + rng.standard_normal(m) * 10 ** rng.uniform(-1, 1)
    head = torch.tensor(rng.standard_normal((2, 4))), torch.tensor(rng.standard_normal((4, 3)))
    labels = torch.tensor(rng.integers(3, size=m))
    curved, share = draw_curved(rng, number, gamma=1.0), rng.uniform()
    b = rng.standard_normal((6, 6))
    b, u = b + b.T, rng.uniform(size=(6, 6))
    a = np.minimum(u, u.T) ** 0.1 * (np.abs(b) if rng.uniform() < 0.5 else b)
    return Layer(case, other, isotropic, minimum, head, labels, curved, share, (a, b))


def least_eigenvalue(layer: Layer, bend: Callable[[Tensor], Tensor]) -> float:
    """Of the Hessian for the unit below one hidden layer and cross-entropy.

    Over the size of its terms, the squared slopes of the logits: where the softmax saturates, all terms
    cancel.
    """
    (first, second), y, j = layer.head, layer.case.instance.y, layer.case.j
    loss = lambda y: torch.nn.functional.cross_entropy(bend(y @ first) @ second, layer.labels)
    values = np.linalg.eigvalsh(hessian(loss, y / y.std(0))[:, j, :, j])
    return float(values[0] * len(y) / ((first[j] ** 2).sum() * (second**2).sum()))


def normalized_relu(above: Tensor) -> Tensor:
    """One more batch norm, γ = 1, β = 0, ε = 10⁻⁵, and ReLU: (m, units)."""
    return torch.relu(batch_norm(above, np.ones(above.shape[1]), np.zeros(above.shape[1]), EPS))


def by_assumption(layer: Layer, both_sides: Callable[[HessianEntry, float, float], dict[str, float]]):
    """both_sides(entry, what stands before ‖g‖, ε's share) of the three entries: where version 1's assumption on
    d holds, by family, and what needs none."""
    result, curved = {}, layer.curved
    for name, entry, factor in zip(("cross", "same", "diagonal"), curved.entries, (0.0, 6.0, 3.0)):
        found, equal = both_sides(entry, factor, layer.share), curved.equal_cosines
        result |= {f"{key}.{name}": found[key] for key in found if equal or key in ALWAYS}
        result[f"margin.c6.{name}.any"] = found["margin.c6"]
        if equal:
            result[f"margin.c6.{name}.{curved.family.replace('-', '_')}"] = found["margin.c6"]
    return result


def margin_c1(case: Case, h: np.ndarray, *, printed: bool) -> float:
    """The margin of Theorem C.1, printed or the book's."""
    value = ball_maximum((case.through + case.through.T) / 2, case.v)
    bound = theorem_c1(h, case.g, case.unit, case.gamma, case.v, printed=printed)
    small = 1e-6 if case.unit.m == 2 else 0.0  # for m = 2 the gradient is zero up to rounding
    return margin(value, bound, small * size_of(h, case) * case.reach)


def size_of(h: np.ndarray, case: Case) -> float:
    """The size of the terms of a Hessian entry."""
    curved = (case.gamma / case.unit.sigma) ** 2 * math.sqrt((h * h).sum())
    return curved + abs(case.gamma) / case.unit.sigma**2 * math.sqrt(case.g @ case.g)


# ---- Figures, of recorded results alone -------------------------------------------------------------------

#: Rows of the figure of margins: label, and whether it is the printed or the corrected form.
ROWS = {
    "first_literal": ("4.2 first, derivatives as they are", "printed"),
    "first": ("4.2 first, the same from above", "corrected"),
    "second": ("4.2 second, $H = hI$", "printed"),
    "predictive": ("text before 4.2, predictive", "printed"),
    "c1_printed": ("C.1 printed, $H = 0$", "printed"),
    "c1": ("C.1, the book's bound", "corrected"),
    "equation_59": ("v1 (59), no absolute values", "printed"),
    "equation_61": ("v1 (61), constant $6m$", "printed"),
    "equation_61_best": ("v1 (61), $(2/\\sqrt{3})\\sqrt{m}$", "corrected"),
    "c6.cross": ("v1 C.6, two units", "printed"),
    "c6_corrected.cross": ("v1 C.6, two units, corrected", "corrected"),
    "c6.same": ("v1 C.6, one unit", "printed"),
    "c6_corrected.same": ("v1 C.6, one unit, corrected", "corrected"),
    "th34.same": ("v1 3.4", "printed"),
}


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Margins of the bounds, printed and corrected."""
    return draw_margins(results, ROWS)


def hessian_entries(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Two formulas for an entry of the Hessian against automatic differentiation, (S, K) each."""
    dense, side, panels = results["curve.hessian.dense"].ravel(), (-0.8, 0.8), []
    for form, title in {"printed": "equation 58 as printed", "corrected": "corrected"}.items():
        dots = dict(
            x=dense, y=results[f"curve.hessian.{form}"].ravel(), look=".", markersize=4, alpha=0.6, zorder=3
        )
        panels.append(
            Panel(
                arms={form: dots, "equal": dict(x=side, y=np.array(side), color="#999999", linewidth=0.8)},
                title=title,
            )
        )
    words = dict(xlim=side, ylim=side, xlabel="dense Hessian, automatic", ylabel="formula")
    return compare(results, panels, figsize=(7.2, 3.6), sharey=True, **words)
