"""Does it start closer? Minima with and without batch norm, and distances to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

from bnbook.chapters.theorems import batch_norm, draw, draw_margins, exact
from bnbook.figures import COLORS
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare

# ---- Minima with and without batch norm, and distances to them --------------------------------------------
# Letters: m data points, I inputs; X (m, I), one unit y = X w, targets t (m,), ε of Lemma 3.3 a loss, not the
# layer's eps. Source: Santurkar et al. 2018, NeurIPS Observation 4.3, Lemma 4.5; arXiv v1 Lemmas 3.3, C.5.


def least_squares(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The one minimum of ½ ‖X w - t‖² for full column rank: (XᵀX)⁻¹ Xᵀ t."""
    return np.linalg.solve(x.T @ x, x.T @ t)


def worst_for_33(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Targets and outputs in a plane that reach Lemma 3.3's least bound: ‖ℓ‖ = 1 - ε, y as far from ℓ as ε allows."""
    length = 1 - epsilon
    sine = epsilon / length
    cosine = math.sqrt(1 - sine**2)
    return np.array([length, 0.0]), length * cosine * np.array([cosine, sine])


@dataclass(frozen=True)
class ThreePoints:
    """Three data points, two inputs, squared error: both networks' minima in fractions."""

    x: np.ndarray  # (3, 2)
    t: np.ndarray  # (3,)
    plain: np.ndarray  # (2,) the plain network's minimum W*
    ray: np.ndarray  # (2,) direction of the minima with batch norm


def three_points() -> ThreePoints:
    """X = (1, 0), (0, 1), (1, 1), t = (1, 0, 0): W* = (2/3, -1/3), with batch norm the ray of (0, -1)."""
    x = np.array([exact(1, 0), exact(0, 1), exact(1, 1)])
    t = exact(1, 0, 0)
    return ThreePoints(x, t, _solve(x, t), _solve(x - x.mean(0), t))


def _solve(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Least squares with two inputs, by Cramer's rule."""
    (a, b), (_, c), (u, v) = *(x.T @ x), x.T @ t
    determinant = a * c - b * b
    return np.array([(c * u - b * v) / determinant, (a * v - b * u) / determinant], dtype=object)


# ---- Random problems with all that the page asks of each --------------------------------------------------


@dataclass(frozen=True)
class Plain:
    """A plain layer whose loss has one minimum, and the same with batch norm: γ BN(X w) + β of (w, γ, β)."""

    x: np.ndarray  # (m, 3)
    w: np.ndarray  # (3,), the minimum W*
    loss: Callable[[Tensor], Tensor]  # of the outputs (m,)

    def with_batch_norm(self, parameters: Tensor) -> Tensor:
        """The loss at (w, γ, β)."""
        w, gamma, beta = parameters[:-2], parameters[-2], parameters[-1]
        y_hat = batch_norm((torch.tensor(self.x) @ w)[:, None], np.ones(1), np.zeros(1))[:, 0]
        return self.loss(gamma * y_hat + beta)

    @property
    def restored(self) -> np.ndarray:
        """(W*, σ, μ) of Observation 4.3."""
        return np.concatenate([self.w, [(self.x @ self.w).std(), (self.x @ self.w).mean()]])

    @property
    def size(self) -> float:
        """What a gradient by a weight is measured in: the largest slope and input, times m."""
        return float(
            np.abs(derivatives(self.loss, self.x @ self.w)[0]).max() * np.abs(self.x).max() * len(self.x)
        )


@dataclass(frozen=True)
class Problem:
    """Everything random about problem `number`."""

    number: int
    y: Tensor  # (m, J), outputs of a layer
    eps: float
    plain: dict[str, Plain]  # inputs of any mean; with a column of ones, "bias"; "centred"
    stretch: float  # a multiple of W*
    target: np.ndarray  # (m,) of Lemma 3.3, of mean zero
    output: np.ndarray  # (m,) of W
    worst: bool  # whether the two are as bad as they may be
    squares: dict[str, tuple[np.ndarray, np.ndarray]]  # X (m, 2) and W₀ of Lemma 4.5
    t: np.ndarray  # (m,), its targets
    epsilon: float  # of Lemma 3.3 for the squared norm


def draw_problem(rng: np.random.Generator, number: int) -> Problem:
    """Losses are quadratic with a minimum in W chosen at random; beyond the reach of the plain layer they slope
    and, in half of the problems, bend down, so neither the outputs at the minimum nor the loss as a whole are
    special."""
    y = torch.tensor(draw(rng, number).y)
    eps = float(y.var(0, correction=0).max()) * 10 ** rng.uniform(-4, 1)
    plain = {}
    for inputs in ("any", "bias", "centred"):
        x = rng.standard_normal(((5, 8, 16)[number % 3], 3)) + rng.standard_normal(3)
        if inputs == "bias":
            x[:, 2] = 1.0
        elif inputs == "centred":
            x = x - x.mean(0)
        w = rng.standard_normal(3)
        plain[inputs] = Plain(x, w, _loss_with_minimum(rng, x, w, concave=number % 2 == 1))
    stretch = 10 ** rng.uniform(-1, 1)
    m = (4, 8, 16)[number % 3]
    target, output, worst = _near_optimal(rng, number, m)
    t, squares = rng.standard_normal(m), {}
    for inputs in ("any", "centred"):
        x = rng.standard_normal((m, 2)) + rng.standard_normal(2)
        x = x - x.mean(0) if inputs == "centred" else x
        start = rng.standard_normal(2) * 10 ** rng.uniform(-1, 1)
        squares[inputs] = x, start if start @ least_squares(x, t) > 0 else -start
    epsilon = rng.uniform(0.2, 0.3) if number % 2 else rng.uniform(0.001, 0.49)  # half of them near 1/4
    return Problem(number, y, eps, plain, stretch, target, output, worst, squares, t, epsilon)


def _near_optimal(rng: np.random.Generator, number: int, m: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Targets and outputs (m,) of mean zero, and whether they are `worst_for_33`; a size above ½ in every fourth
    problem."""
    basis = np.linalg.qr(np.column_stack([np.ones(m), rng.standard_normal((m, 2))]))[0][:, 1:] * math.sqrt(m)
    size = 10 ** (rng.uniform(-0.2, 0.3) if number % 4 == 1 else rng.uniform(-2, 0.3))
    if number % 4 == 0 and size < 0.5:
        return *(basis @ v for v in worst_for_33(size)), True
    target = basis @ _turned(rng, 1 + size * rng.uniform(-1, 1))
    return target, target + basis @ _turned(rng, size * rng.uniform()), False


def _turned(rng: np.random.Generator, length: float) -> np.ndarray:
    angle = rng.uniform(0, 2 * math.pi)
    return length * np.array([math.cos(angle), math.sin(angle)])


def _loss_with_minimum(
    rng: np.random.Generator, x: np.ndarray, w: np.ndarray, concave: bool
) -> Callable[[Tensor], Tensor]:
    """<a, y - y*> + ½ (y - y*)ᵀ Q (y - y*), Xᵀa = 0, XᵀQX positive definite: W* is the one minimum."""
    m = len(x)
    reach = np.linalg.qr(x)[0]
    beyond = np.identity(m) - reach @ reach.T
    root = rng.standard_normal((m, m))
    inside = reach @ reach.T
    q = inside @ root @ root.T @ inside + (-1 if concave else 1) * beyond @ root.T @ root @ beyond
    a, q, y = (torch.tensor(v) for v in (beyond @ rng.standard_normal(m), q / m, x @ w))

    def loss(outputs: Tensor) -> Tensor:
        away = outputs - y
        return (a * away).sum() + away @ q @ away / 2

    return loss


def derivatives(function: Callable[[Tensor], Tensor], at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and dense Hessian."""
    point = torch.tensor(at)
    return torch.func.grad(function)(point).numpy(), torch.func.hessian(function)(point).numpy()


# ---- Figures, of recorded results alone -------------------------------------------------------------------

#: Rows of the figure of margins: label, and whether it is the printed or the corrected form.
ROWS = {
    "lemma_45.any": ("Lemma 4.5, least squares", "printed"),
    "lemma_45.centred": ("the same, inputs of mean zero", "corrected"),
    "lemma_33": ("Lemma 3.3, any ε", "printed"),
    "lemma_33_half": ("the same, ε < 1/2", "corrected"),
    "lemma_33_three": ("3ε, any ε", "corrected"),
    "lemma_33_sharp": ("least bound, ε < 1/2", "corrected"),
    "lemma_33_squared": ("Lemma 3.3, squared loss, ε < 1/2", "printed"),
}


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Margins of the bounds, printed and corrected."""
    return draw_margins(results, ROWS)


def plane(_: Mapping[str, np.ndarray]) -> plt.Figure:
    """Losses of `three_points` over two weights without and with batch norm, W* and the best ray: no result but
    the fractions."""
    problem, side = three_points(), np.linspace(-1.25, 1.25, 301)
    x, t, plain, ray = (np.array(part, dtype=float) for part in astuple(problem))
    y = np.einsum("bi,ihw->bhw", x, np.stack(np.meshgrid(side, side)))  # the layer's outputs at (w₁, w₂)
    with np.errstate(invalid="ignore"):
        y_hat = (y - y.mean(0)) / np.sqrt(((y - y.mean(0)) ** 2).mean(0))
    fig, axes = subplots(1, 2, figsize=(7.2, 3.8), sharey=True)
    for ax, outputs, title in zip(axes, (y, y_hat), ("without batch norm", "with batch norm"), strict=True):
        loss = ((outputs - t[:, None, None]) ** 2).sum(0) / 2
        levels = np.linspace(np.nanmin(loss), np.nanquantile(loss, 0.9), 14)
        ax.contourf(side, side, loss, levels=levels, cmap="cividis_r", alpha=0.75, extend="max")
        ax.plot(*plain, "o", color=COLORS["none"], markersize=8, zorder=5, label="$W^*$, best without")
        ax.set(title=title, xlabel="$w_1$", aspect="equal", xlim=side[[0, -1]], ylim=side[[0, -1]])
        ax.grid(visible=False)
    foot = max(plain @ ray, 0) / (ray @ ray) * ray
    for ends, style in (
        ((0 * ray, 2 * ray), {"color": COLORS["batch"], "linewidth": 3, "label": "best with"}),
        ((0 * ray, 3 * plain), {"color": COLORS["wrong"], "linewidth": 1.5, "ls": "--", "label": "claimed"}),
        ((plain, foot), {"color": "#222222", "linewidth": 1.2, "ls": ":"}),
    ):
        axes[1].plot(*np.stack(ends).T, **style)
    axes[0].set_ylabel("$w_2$")
    for ax in axes:
        ax.legend(loc="upper left", fontsize=9, frameon=True)
    return fig


def near_optimal(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """The loss with batch norm against Lemma 3.3's ε, one dot a problem, and its bounds."""
    line = np.linspace(1e-3, 0.499, 200)
    epsilon, loss = (results[f"curve.near.{name}"].ravel() for name in ("epsilon", "loss"))
    printed, least = (
        r"printed: $3\varepsilon(1+\varepsilon)/(1-2\varepsilon)$",
        r"least bound, about $\sqrt{2}\,\varepsilon$",
    )
    dots = dict(look=".", color="batch", markersize=4, alpha=0.6, zorder=3, label="random problems")
    arms = {
        "printed": dict(y=3 * line * (1 + line) / (1 - 2 * line), label=printed),
        "three": dict(y=3 * line, color="theory", look="--", linewidth=1.2, label=r"$3\varepsilon$"),
        "corrected": dict(y=np.sqrt((1 - line) ** 2 + 1 - 2 * np.sqrt(1 - 2 * line)), label=least),
        "problems": dict(x=epsilon, y=loss, **dots),
    }
    below = r"$\varepsilon$: loss without batch norm, and the best with it, are below"
    words = dict(xlabel=below, ylabel="loss of $W$ with batch norm", xlim=(0, 0.5), ylim=(0, 2))
    return compare(results, [Panel(x=line, **words)], arms, figsize=(7.2, 3.8))
