"""What the chapters on length and direction share: problems, losses, expectations, descents, bounds tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import matplotlib.pyplot as plt
import numpy as np

from bnbook.errors import BnbookError
from bnbook.figures import COLORS
from bnbook.plots.layout import subplots

# ---- A quadratic problem, seen through the two moments of its data: S = E[x xᵀ] and u = E[-y x] -----------

#: Kinds of random problems with their first direction; all but the first are meant to be nasty.
KINDS = ("random", "u slowest", "u fastest", "w orthogonal", "round", "clusters", "plane", "scaled")


@dataclass(frozen=True)
class Quadratic:
    """f(w̃) = 2 uᵀw̃ + w̃ᵀSw̃, at least -uᵀS⁻¹u. BnbookError unless S is symmetric positive definite."""

    S: np.ndarray  # (d, d)
    u: np.ndarray  # (d,)

    def __post_init__(self) -> None:
        if self.S.shape != (len(self.u), len(self.u)) or not np.allclose(self.S, self.S.T, rtol=1e-10):
            raise BnbookError(
                f"S of shape {self.S.shape} for u of length {len(self.u)}; expected a symmetric (d, d)"
            )
        if not self.smallest > 0:
            raise BnbookError(
                f"the smallest eigenvalue of S is {self.smallest:.3g}; expected a positive definite S"
            )

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        return np.linalg.eigvalsh(self.S)  # (d,), smallest first

    @property
    def smallest(self) -> float:
        """μ"""
        return float(self.eigenvalues[0])

    @property
    def largest(self) -> float:
        """L"""
        return float(self.eigenvalues[-1])

    @property
    def rate(self) -> float:
        """1 - μ/L, never below 0 (rounding)."""
        return max(0.0, 1 - self.smallest / self.largest)

    @cached_property
    def direction(self) -> np.ndarray:
        """S⁻¹u (d,): the line on which the optimum -S⁻¹u lies."""
        return np.linalg.solve(self.S, self.u)

    @cached_property
    def whitening(self) -> np.ndarray:
        """S^(-1/2), (d, d): in whitened weights all directions are alike."""
        values, basis = np.linalg.eigh(self.S)
        return (basis / np.sqrt(values)) @ basis.T

    @cached_property
    def attainable(self) -> float:
        """uᵀS⁻¹u = -min f"""
        return float(self.u @ self.direction)

    @cached_property
    def root(self) -> np.ndarray:
        """R (d, d) with R Rᵀ = S - uuᵀ, the covariance of z; BnbookError where that is none."""
        if not self.attainable < 1:
            raise BnbookError(f"uᵀS⁻¹u is {self.attainable:.3g}; expected less than 1 for a Gaussian z")
        return np.linalg.cholesky(self.S - np.outer(self.u, self.u))

    def norm(self, w: np.ndarray) -> float:
        """‖w‖_S = √(wᵀSw)"""
        return float(np.sqrt(w @ self.S @ w))

    def rho(self, w: np.ndarray) -> float:
        """ρ(w) = -(uᵀw)² / wᵀSw, f at the best length of the direction w (d,)."""
        return -(float(self.u @ w) ** 2) / float(w @ self.S @ w)

    def gap(self, w: np.ndarray) -> np.ndarray:
        """ρ(w) - ρ* for w (..., d), without cancellation: uᵀS⁻¹u times the squared sine of the angle to S⁻¹u.

        With r = w - (uᵀw / uᵀS⁻¹u) S⁻¹u, the part that is S-orthogonal to S⁻¹u, it is uᵀS⁻¹u ‖r‖²_S / ‖w‖²_S.
        """
        across = w - (w @ self.u / self.attainable)[..., None] * self.direction
        squares = [np.einsum("...i,ij,...j->...", v, self.S, v) for v in (across, w)]
        return self.attainable * squares[0] / squares[1]

    def value(self, weight: np.ndarray) -> np.ndarray:
        """f(w̃) for w̃ (..., d)."""
        return 2 * weight @ self.u + np.einsum("...i,ij,...j->...", weight, self.S, weight)

    def gradient(self, weight: np.ndarray) -> np.ndarray:
        """∇f(w̃) = 2 (u + S w̃), (d,)."""
        return 2 * (self.u + self.S @ weight)

    def excess(self, weight: np.ndarray) -> np.ndarray:
        """f(w̃) - min f = ‖w̃ + S⁻¹u‖²_S without cancellation, for w̃ (..., d)."""
        error = weight + self.direction
        return np.einsum("...i,ij,...j->...", error, self.S, error)


def draw_quadratic(
    rng: np.random.Generator, kind: str, condition: float | None = None, size: int | None = None
) -> tuple[Quadratic, np.ndarray]:
    """A random problem and a first direction w₀ (d,) of one of KINDS; condition L/μ up to 10⁴, d = 2 to 30
    unless given.

    "u slowest/fastest": u is the eigenvector of μ or of L; "w orthogonal": uᵀw₀ is 10⁻⁶ of its largest
    possible value; "round": S is a multiple of the identity; "clusters": all eigenvalues μ or L; "scaled": S
    and u times 10^±3.
    """
    d = size or (2 if kind == "plane" else int(rng.integers(2, 31)))
    condition = condition or 10 ** rng.uniform(0, 4)
    spectrum = np.concatenate([[0.0, 1.0], rng.uniform(0, 1, d - 2)])
    if kind == "clusters":
        spectrum = np.round(spectrum)
    spectrum = np.ones(d) if kind == "round" else condition ** (spectrum - 1)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    scale = 10.0 ** rng.uniform(-3, 3) if kind == "scaled" else 1.0
    S = (basis * (scale * spectrum)) @ basis.T
    u, w = rng.standard_normal(d), rng.standard_normal(d)
    u = {"u slowest": basis[:, 0], "u fastest": basis[:, 1]}.get(kind, u) * (
        1000 * scale if kind == "scaled" else 1
    )
    problem = Quadratic((S + S.T) / 2, u)
    if kind == "w orthogonal":
        best = problem.direction / np.sqrt(problem.attainable)  # ‖best‖_S = 1
        w = w - (u @ w) / problem.attainable * problem.direction
        w = w / problem.norm(w) + 1e-6 * best
    return problem, w


# ---- Loss functions φ of the margin t = zᵀw̃, with z = -yx: their first two derivatives and what bounds them ----

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Loss:
    """φ, infinitely differentiable with bounded derivatives, as the article assumes."""

    value: Function
    first: Function
    second: Function
    largest_first: float  # sup |φ'|
    largest_second: float  # sup |φ''|
    turns: float  # how often φ' changes its sign


def _sigmoid(t: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(t / 2))


#: √e, the amplitude at which the rippled loss has critical points off the line at a spread of exactly 1.
RIPPLE = float(np.exp(0.5))
LOSSES = {
    # convex and increasing: log(1 + e^t)
    "logistic": Loss(
        lambda t: np.logaddexp(0, t), _sigmoid, lambda t: _sigmoid(t) * _sigmoid(-t), 1.0, 0.25, 0
    ),
    # convex, with a minimum at the margin -1: √(1 + (t + 1)²)
    "huber": Loss(
        lambda t: np.sqrt(1 + (t + 1) ** 2),
        lambda t: (t + 1) / np.sqrt(1 + (t + 1) ** 2),
        lambda t: (1 + (t + 1) ** 2) ** -1.5,
        *(1.0, 1.0, 1),
    ),
    # neither convex nor unbounded, with a minimum at -1: 1 - exp(-(t + 1)² / 2)
    "welsch": Loss(
        lambda t: -np.expm1(-((t + 1) ** 2) / 2),
        lambda t: (t + 1) * np.exp(-((t + 1) ** 2) / 2),
        lambda t: (1 - (t + 1) ** 2) * np.exp(-((t + 1) ** 2) / 2),
        *(float(np.exp(-0.5)), 1.0, 1),
    ),
    # increasing and bounded: 1 / (1 + e^-t)
    "sigmoid": Loss(
        _sigmoid,
        lambda t: _sigmoid(t) * _sigmoid(-t),
        lambda t: _sigmoid(t) * _sigmoid(-t) * _sigmoid(-t) - _sigmoid(t) ** 2 * _sigmoid(-t),
        *(0.25, 0.1, 0),
    ),
    # up and down without end: t - √e sin t
    "ripple": Loss(
        lambda t: t - RIPPLE * np.sin(t),
        lambda t: 1 - RIPPLE * np.cos(t),
        lambda t: RIPPLE * np.sin(t),
        *(1 + RIPPLE, RIPPLE, np.inf),
    ),
}


# ---- Expectations under a standard Gaussian by the trapezoid rule, which on a Gaussian is exact to rounding ----

NODES = np.arange(-680, 681) * 0.0125  # standard deviations
_HEIGHTS = np.exp(-(NODES**2) / 2)
WEIGHTS = _HEIGHTS / _HEIGHTS.sum()


@cache
def plane(spacing: float, reach: float = 7.0) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (n, 2) and weights (n,) in the plane, to `reach` standard deviations."""
    count = round(reach / spacing)
    ticks = np.arange(-count, count + 1) * spacing
    nodes = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    heights = np.exp(-(nodes**2).sum(axis=1) / 2)
    return nodes, heights / heights.sum()


# ---- Gradient descent and Nesterov's accelerated gradient descent, with constant steps --------------------

Gradient = Callable[[np.ndarray], np.ndarray]


def iterate(step: Callable[[np.ndarray], np.ndarray], start: np.ndarray, steps: int) -> np.ndarray:
    """w_{t+1} = step(w_t); all iterates (T+1, d)."""
    path = [np.asarray(start, dtype=np.float64)]
    for _ in range(steps):
        path.append(step(path[-1]))
    return np.stack(path)


def plain(gradient: Gradient, start: np.ndarray, step: float, steps: int) -> np.ndarray:
    """w_{t+1} = w_t - η ∇f(w_t); all iterates (T+1, d)."""
    return iterate(lambda w: w - step * gradient(w), start, steps)


def accelerated(
    gradient: Gradient, start: np.ndarray, step: float, momentum: float | None, steps: int
) -> np.ndarray:
    """v = w_t + β (w_t - w_{t-1}), w_{t+1} = v - η ∇f(v); all iterates (T+1, d).

    β is `momentum`; None: t / (t + 3), Nesterov's for a convex function that need not be strongly convex.
    """
    path = [np.asarray(start, dtype=np.float64)] * 2
    for t in range(steps):
        ahead = path[-1] + (t / (t + 3) if momentum is None else momentum) * (path[-1] - path[-2])
        path.append(ahead - step * gradient(ahead))
    return np.stack(path[1:])


def least_squares_step(w: np.ndarray, problem: Quadratic) -> np.ndarray:
    """w - η ∇ρ(w), ∇ρ = -2 (u uᵀw + ρ S w) / wᵀSw, with the encyclopedia's η = wᵀSw / (2 L |ρ|)."""
    square, value = w @ problem.S @ w, problem.rho(w)
    gradient = -2 * (problem.u * (problem.u @ w) + value * (problem.S @ w)) / square
    return w - float(square) / (2 * problem.largest * abs(value)) * gradient


def decay_rate(excess: np.ndarray, below: float, above: float) -> float:
    """The slope of log excess over the steps at which it lies between the two; nan for fewer than three."""
    t = np.flatnonzero((excess < below) & (excess > above))
    return float(np.polyfit(t, np.log(excess[t]), 1)[0]) if len(t) > 2 else float("nan")


# ---- Gradient descent in normalized parameters (GDNP): a step of the direction, bisection for the length ----

FORMS = ("printed", "corrected")


def gdnp_step(w: np.ndarray, gamma: float, gradient: np.ndarray, h: float, problem: Quadratic) -> np.ndarray:
    """w - s ∇_w f with s = -‖w‖³_S / (L γ h) and ∇_w f = (γ / ‖w‖_S) (g - (gᵀw / ‖w‖²_S) S w), where w̃ = γ w / ‖w‖_S
    has the gradient g; w itself where γ h = 0."""
    if gamma * h == 0:
        return w
    length = problem.norm(w)
    in_direction = gamma / length * (gradient - (gradient @ w) / length**2 * (problem.S @ w))
    return w + length**3 / (problem.largest * gamma * h) * in_direction


def bisection(slope: Callable[[float], float], low: float, high: float, halvings: int) -> tuple[float, float]:
    """The bracket (a, b) of a zero of an increasing-through-zero slope after halving it T_s times.

    Where the slope does not change its sign from - to + it runs to one of its ends, as bisection does.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return low, high


def length_bound(problem: Quadratic, zeta: float, width: float, halvings: int, form: str) -> float:
    """Of (∂_γ f)² after T_s halvings of |b - a|: 2^{-T_s} ζ |b - a| / μ² as printed, (2^{-T_s} ζ |b - a| / μ)² as corrected."""
    halved = 2.0**-halvings * zeta * width
    return halved / problem.smallest**2 if form == "printed" else (halved / problem.smallest) ** 2


# ---- Curves by steps --------------------------------------------------------------------------------------


def steps_to(excess: np.ndarray, target: float) -> float:
    """First step from which the excess stays at or below the target; steps plus 1 where it does not."""
    above = np.flatnonzero(~(excess <= target))
    return float(above[-1] + 1) if len(above) else 0.0


def drawn_steps(last: int) -> np.ndarray:
    """The steps at which a curve is drawn: all up to 20, then 120 more up to the last."""
    steps = np.unique(np.r_[0:21, np.linspace(20, last, 121).astype(int)])
    return steps[steps <= last]


# ---- A bound against what happened: left side over right side, trial by trial -----------------------------

#: Relative slack of every bound: beyond it a bound is violated.
SLACK = 1e-9


def violations(ratios: Sequence[float]) -> int:
    """How many of the ratios, left side over right side, violate a bound."""
    return int((~(np.asarray(ratios) <= 1 + SLACK)).sum())


def tally(seeds: Iterable[Sequence[float]], decades: tuple[int, int]) -> np.ndarray:
    """How many ratios of each seed lie where, (S, 4 bins a decade); what lies outside counts in the last bin.

    A ratio of exactly 1, which is no violation, counts below.
    """
    low, high = decades
    edges = np.linspace(low, high, 4 * (high - low) + 1)
    logs = (np.log10(np.maximum(one, 1e-99)) - 1e-9 for one in seeds)
    return np.stack([np.histogram(np.clip(one, low, high), edges)[0] for one in logs])


# ---- Figures ----------------------------------------------------------------------------------------------

#: How each method of a race is drawn.
METHODS = {
    "direction": dict(color="apart", look="-", label="length and direction"),
    "gdnp": dict(color="apart", look="-", label="GDNP"),
    "gradient_descent": dict(color="theory", look="-", label="gradient descent"),
    "accelerated": dict(color="theory", look="--", label="accelerated"),
}


def draw_ratios(
    results: Mapping[str, np.ndarray], panels: Mapping[str, Mapping[str, str]], decades: tuple[int, int]
) -> plt.Figure:
    """Left side over right side of bounds, a panel each; the half where they are violated is shaded.

    panels: title -> tally's name -> label, which begins with its colour's key and a colon; the counts (S, bins) of
    `tally` are the results curve.margins.NAME.
    """
    rows, columns = (len(panels) + 1) // 2, min(len(panels), 2)
    size = {"figsize": (5.4 + columns, 1.4 + 2.1 * rows), "squeeze": False}
    fig, axes = subplots(rows, columns, sharex=True, sharey=True, **size)
    for ax, (title, lines) in zip(axes.ravel(), panels.items(), strict=True):
        for name, words in lines.items():
            counts = results[f"curve.margins.{name}"].sum(axis=0)
            edges = np.linspace(*decades, len(counts) + 1)
            color, label = words.split(": ")
            style = dict(histtype="step", linewidth=1.8, label=label, color=COLORS[color])
            ax.hist(edges[:-1], edges, weights=counts / counts.sum(), **style)
        ax.axvline(0, color=COLORS["theory"], linewidth=1)
        ax.axvspan(0, decades[1], color=COLORS["wrong"], alpha=0.07, linewidth=0)
        ax.set(title=title, xlim=decades, yscale="log", ylim=(1e-4, 6))
        ticks = np.arange(decades[0], decades[1] + 1, 4)
        ax.set_xticks(ticks, [f"$10^{{{tick}}}$" if tick else "1" for tick in ticks])
        ax.legend(loc="upper left", fontsize=8.5)
    for ax in axes[-1]:
        ax.set_xlabel("left side / right side")
    for ax in axes[:, 0]:
        ax.set_ylabel("share of trials")
    return fig
