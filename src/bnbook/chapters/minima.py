"""Does it start closer? Minima with and without batch norm, and distances to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

from bnbook.chapters.theorems import Counterexample, Number, batch_norm, draw, draw_margins, exact
from bnbook.figures import COLORS
from bnbook.plots.layout import subplots
from bnbook.plots.panels import Panel, compare

# ---- Minima with and without batch norm, and distances to them --------------------------------------------
# Letters: m data points, I inputs; X (m, I), one unit y = X w, targets t (m,), ε of Lemma 3.3 a loss, not the
# layer's eps. Source: Santurkar et al. 2018, NeurIPS Observation 4.3, Lemma 4.5; arXiv v1 Lemmas 3.3, C.5.


def least_squares(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The one minimum of ½ ‖X w - t‖² for full column rank: (XᵀX)⁻¹ Xᵀ t."""
    return np.linalg.solve(x.T @ x, x.T @ t)


def normalized_direction(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """The direction of the minima of ½ ‖γ BN(X w) + β - t‖², γ > 0: least squares with inputs of mean zero.

    The loss is a constant minus γ <ŷ, t>, so it is least where ŷ correlates most with t: on the whole ray of
    this vector, and on no other.
    """
    return least_squares(x - x.mean(0), t)


def lemma_45(start: np.ndarray, minimum: np.ndarray) -> Number:
    """Right side of Lemma 4.5: ‖W₀ - W*‖² - (‖W*‖² - <W*, W₀>)² / ‖W*‖², of W₀ from the line of W*."""
    square = minimum @ minimum
    return (start - minimum) @ (start - minimum) - (square - minimum @ start) ** 2 / square


def distance_to_ray(start: np.ndarray, direction: np.ndarray) -> Number:
    """Squared distance of W₀ from the ray {a r: a > 0}."""
    inner = start @ direction
    return start @ start - (inner**2 / (direction @ direction) if inner > 0 else 0)


def lemma_33(epsilon: Number) -> Number:
    """Right side of Lemma 3.3 (C.5): 3 ε (1 + ε) / (1 - 2 ε); negative for ε > 1/2."""
    return 3 * epsilon * (1 + epsilon) / (1 - 2 * epsilon)


def sharp_33_squared(epsilon: float) -> float:
    """The least upper bound where the loss is the squared norm: `sharp_33` of √ε, squared; from ε = ¼ on
    (1 + √ε)².

    Beyond ¼ targets shorter than √ε are allowed, and outputs that point away from them.
    """
    root = math.sqrt(epsilon)
    return sharp_33(root) ** 2 if epsilon < 1 / 4 else (1 + root) ** 2


def sharp_33(epsilon: float) -> float:
    """The least upper bound for ε < 1/2, √((1 - ε)² + 1 - 2 √(1 - 2 ε)), about √2 ε, where ‖BN‖ = 1."""
    return math.sqrt((1 - epsilon) ** 2 + 1 - 2 * math.sqrt(1 - 2 * epsilon))


def worst_for_33(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Targets and outputs in a plane that reach `sharp_33`: ‖ℓ‖ = 1 - ε, y as far from ℓ as ε allows."""
    length = 1 - epsilon
    sine = epsilon / length
    cosine = math.sqrt(1 - sine**2)
    return np.array([length, 0.0]), length * cosine * np.array([cosine, sine])


# ---- Counter-examples to Observation 4.3 and Lemmas 3.3 and 4.5, in fractions -----------------------------


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


def minima_counterexamples() -> list[Counterexample]:
    """For Observation 4.3's second sentence, Lemma 3.3 and Lemma 4.5."""
    problem = three_points()
    plain, ray, far = problem.plain, problem.ray, 3 * problem.plain
    words = r"rows of $X$: $(1,0)$, $(0,1)$, $(1,1)$; $t=(1,0,0)$; $W^*=(\frac23,-\frac13)$"
    line = r"4.3: $\partial\widehat{\mathcal L}/\partial\beta$ at $(W^*,\sigma,\mu)$"
    distances = [distance_to_ray(start, ray) for start in (plain, far)]
    bounds = [lemma_45(start, plain) for start in (plain, far)]
    near, apart = words + r"; $\widehat W^*=(0,-\frac13)$", r"the same, $\widehat W^*=(0,-1)$"
    equal, epsilon = (
        r"$Wx=\ell=(1,-1)$, so $\widehat{\mathcal L}_W=\mathcal L_W=0$",
        r"3.3, $\varepsilon=\frac35$",
    )
    slope, zero = (problem.x @ plain - problem.t).sum(), Fraction(0)
    return [
        Counterexample("observation", line, words, slope, zero, "="),
        Counterexample("lemma_45", r"4.5, $W_0=W^*$", near, distances[0], bounds[0]),
        Counterexample("lemma_45_far", r"4.5, $W_0=3W^*$", apart, distances[1], bounds[1]),
        Counterexample("lemma_33", epsilon, equal, zero, lemma_33(Fraction(3, 5)), "<"),
        _squared_loss(),
    ]


def _squared_loss() -> Counterexample:
    """Lemma 3.3 for the squared norm: ℓ = ½ (1, -1), W x = -ℓ/100, ‖·‖ the root mean square, ε = 13/50."""
    target, epsilon = exact("1/2", "-1/2"), Fraction(13, 50)
    output = -target / 100
    losses = [((v - target) @ (v - target)) / 2 for v in (output, exact(1, -1), exact(-1, 1))]
    assert max(losses[:2]) < epsilon  # noqa: S101 (exact; of W without, of W' with batch norm)
    words = r"$\ell=\frac12(1,-1)$, $W'x=(1,-1)$, $Wx=-\frac1{100}\ell$, squared error (mean over the batch)"
    line = r"3.3, squared loss, $\varepsilon=\frac{13}{50}$"
    return Counterexample("lemma_33_squared", line, words, losses[2], lemma_33(epsilon), "<")


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


def worst_squares(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Targets ℓ and outputs y in a plane that are as bad as they may be where the loss is the squared norm.

    Below ε = ¼ as for the norm, from there on ‖ℓ‖ just below √ε and y a hair's breadth on the other side of 0.
    """
    root = math.sqrt(epsilon)
    return worst_for_33(root) if epsilon < 1 / 4 else (np.array([root * (1 - 1e-6), 0]), np.array([-1e-9, 0]))


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
        "printed": dict(y=lemma_33(line), label=printed),
        "three": dict(y=3 * line, color="theory", look="--", linewidth=1.2, label=r"$3\varepsilon$"),
        "corrected": dict(y=np.array([sharp_33(e) for e in line]), label=least),
        "problems": dict(x=epsilon, y=loss, **dots),
    }
    below = r"$\varepsilon$: loss without batch norm, and the best with it, are below"
    words = dict(xlabel=below, ylabel="loss of $W$ with batch norm", xlim=(0, 0.5), ylim=(0, 2))
    return compare(results, [Panel(x=line, **words)], arms, figsize=(7.2, 3.8))
