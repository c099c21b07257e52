"""Does it flatten the loss? The random layers of the page on second derivatives, and its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np
import torch
from scipy.linalg import hadamard
from torch import Tensor

from bnbook.chapters.theorems import (
    Case,
    Instance,
    Unit,
    batch_norm,
    draw,
    draw_margins,
    hessian,
    look,
    normalize,
    project,
)
from bnbook.plots.panels import Panel, compare

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
        x = hadamard(m, float)[:, rng.choice(np.arange(1, m), 3, replace=False)] * rng.choice((-1.0, 1.0), 3)
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
