"""Length apart from direction: does that speed it up? Least squares in length and direction, and a Rayleigh
quotient."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import eigh

from bnbook.chapters import length_direction
from bnbook.chapters.length_direction import (
    KINDS,
    METHODS,
    SLACK,
    Quadratic,
    Ratios,
    draw_quadratic,
    draw_ratios,
    from_examples,
    iterate,
)
from bnbook.errors import BnbookError
from bnbook.figures import points_of
from bnbook.plots.panels import Panel, compare

# ---- Least squares in length and direction, w̃ = γ w / ‖w‖_S, ‖w‖_S = √(wᵀSw), and a Rayleigh quotient ----


def norm(w: np.ndarray, S: np.ndarray) -> float:
    """‖w‖_S = √(wᵀSw)"""
    return float(np.sqrt(w @ S @ w))


def weight(w: np.ndarray, gamma: float, S: np.ndarray) -> np.ndarray:
    """w̃ = γ w / ‖w‖_S (d,); BnbookError for w = 0."""
    length = norm(w, S)
    if length == 0:
        raise BnbookError("the direction w is 0; expected any other vector")
    return gamma * w / length


def objective(w: np.ndarray, gamma: float, problem: Quadratic, form: str = "corrected") -> float:
    """f(w, γ) = 2γ uᵀw / ‖w‖_S + γ²; printed, the fraction swallows γ²: 2γ uᵀw / (‖w‖_S + γ²)."""
    along, length = problem.u @ w, norm(w, problem.S)
    if form == "printed":
        return 2 * gamma * along / (length + gamma**2)
    return 2 * gamma * along / length + gamma**2


def optimal_length(w: np.ndarray, problem: Quadratic) -> float:
    """γ* = -uᵀw / ‖w‖_S, where ∂f/∂γ = 0."""
    return -float(problem.u @ w) / norm(w, problem.S)


def rho(w: np.ndarray, problem: Quadratic) -> float:
    """ρ(w) = -(uᵀw)² / wᵀSw, the objective at the best length."""
    return -(float(problem.u @ w) ** 2) / float(w @ problem.S @ w)


def gap(w: np.ndarray, problem: Quadratic) -> np.ndarray:
    """ρ(w) - ρ* for w (..., d), without cancellation: uᵀS⁻¹u times the squared sine of the angle to S⁻¹u.

    With r = w - (uᵀw / uᵀS⁻¹u) S⁻¹u, the part that is S-orthogonal to S⁻¹u, it is uᵀS⁻¹u ‖r‖²_S / ‖w‖²_S.
    """
    across = w - (w @ problem.u / problem.attainable)[..., None] * problem.direction
    squares = [np.einsum("...i,ij,...j->...", v, problem.S, v) for v in (across, w)]
    return problem.attainable * squares[0] / squares[1]


def gradient(w: np.ndarray, problem: Quadratic) -> np.ndarray:
    """∇ρ(w) = -2 (u uᵀw + ρ(w) S w) / wᵀSw, (d,)."""
    square = w @ problem.S @ w
    return -2 * (problem.u * (problem.u @ w) + rho(w, problem) * (problem.S @ w)) / square


def step_size(w: np.ndarray, problem: Quadratic) -> float:
    """η = wᵀSw / (2 L |ρ(w)|), as the encyclopedia prints it; BnbookError where ρ(w) = 0."""
    value = rho(w, problem)
    if value == 0:
        raise BnbookError("ρ(w) is 0; expected a first direction that is not orthogonal to u")
    return float(w @ problem.S @ w) / (2 * problem.largest * abs(value))


def descend(w: np.ndarray, problem: Quadratic, steps: int, factor: float = 1.0) -> np.ndarray:
    """Directions w_0 ... w_T (T+1, d) of gradient descent on ρ, `factor` times the printed step size."""
    return iterate(lambda w: w - factor * step_size(w, problem) * gradient(w, problem), w, steps)


def weights_at_best_length(path: np.ndarray, problem: Quadratic) -> np.ndarray:
    """w̃ at the best length, -(uᵀw / ‖w‖²_S) w, for directions (T, d)."""
    square = np.einsum("...i,ij,...j->...", path, problem.S, path)
    return -(path @ problem.u / square)[..., None] * path


# ---- Gradient ascent on the generalized Rayleigh quotient ρ(w) = wᵀBw / wᵀAw, and how fast it is said to be ----
# With λ1 ≥ λ2 ≥ ... ≥ λmin and q(w) = (λ1 - ρ(w)) / (ρ(w) - λ2), one step takes q to at most
#     printed    (1 - (λ1 - λ2) / (λ1 - λmin))^{2t} q(w_t), the λ of B alone; a parenthesis is misplaced in
#     q(w_{t+1}); corrected  (1 - (μ/L) (λ1 - λ2) / (λ1 - λmin))² q(w_t), the λ of the pair (B, A), μ and L of
#     A,
# for λ2 < ρ(w_t) < λ1 and the step size wᵀAw / (2 L (ρ(w) - λmin)), which for B = uuᵀ is the printed one.
# Source: the encyclopedia's article, "Least-square problem"; for A = I the corrected step is a shifted power
# iteration.


@dataclass(frozen=True)
class Pencil:
    """A pair of symmetric matrices, A positive definite, and the eigenvalues that the bounds need."""

    B: np.ndarray  # (d, d)
    A: np.ndarray  # (d, d)
    of_B: np.ndarray  # (d,), smallest first
    of_pair: np.ndarray  # (d,), of B v = λ A v
    of_A: np.ndarray  # (d,)


def make_pencil(B: np.ndarray, A: np.ndarray) -> Pencil:
    """The pair with its eigenvalues."""
    return Pencil(B, A, np.linalg.eigvalsh(B), eigh(B, A, eigvals_only=True), np.linalg.eigvalsh(A))


def quotient(w: np.ndarray, pencil: Pencil) -> float:
    """ρ(w) = wᵀBw / wᵀAw"""
    return float(w @ pencil.B @ w) / float(w @ pencil.A @ w)


def fixed_step(w: np.ndarray, pencil: Pencil) -> np.ndarray:
    """w + (Bw - ρ(w) A w) / (L (ρ(w) - λmin)): gradient ascent with the step size named above."""
    value = quotient(w, pencil)
    ascent = pencil.B @ w - value * (pencil.A @ w)
    return w + ascent / (pencil.of_A[-1] * (value - pencil.of_pair[0]))


def best_step(w: np.ndarray, pencil: Pencil) -> np.ndarray:
    """The step along the gradient that makes ρ as large as it can be: no step size does better."""
    ascent = pencil.B @ w - quotient(w, pencil) * (pencil.A @ w)
    plane = np.linalg.qr(np.stack([w, ascent], axis=1))[0]
    _, vectors = eigh(plane.T @ pencil.B @ plane, plane.T @ pencil.A @ plane)
    found = plane @ vectors[:, -1]
    return found * np.sign(found @ pencil.A @ w or 1.0)


def shortfall(value: float, eigenvalues: np.ndarray) -> float:
    """q = (λ1 - ρ) / (ρ - λ2)"""
    return (eigenvalues[-1] - value) / (value - eigenvalues[-2])


def printed_factor(pencil: Pencil, t: int) -> float:
    """(1 - (λ1 - λ2) / (λ1 - λmin))^{2t} with the eigenvalues of B."""
    smallest, second, first = pencil.of_B[0], pencil.of_B[-2], pencil.of_B[-1]
    return max(0.0, 1 - (first - second) / (first - smallest)) ** (2 * t)


def corrected_factor(pencil: Pencil) -> float:
    """(1 - (μ/L) (λ1 - λ2) / (λ1 - λmin))² with the eigenvalues of the pair."""
    smallest, second, first = pencil.of_pair[0], pencil.of_pair[-2], pencil.of_pair[-1]
    return max(0.0, 1 - pencil.of_A[0] / pencil.of_A[-1] * (first - second) / (first - smallest)) ** 2


def draw_pencil(rng: np.random.Generator, kind: str) -> tuple[Pencil, np.ndarray]:
    """A random pair and first w (d,), d = 3 to 12: "rank one", "identity" (A) or "general"."""
    d = int(rng.integers(3, 13))
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    A = np.eye(d) if kind == "identity" else (basis * 10 ** rng.uniform(-1, 1, d)) @ basis.T
    u, G = rng.standard_normal(d), rng.standard_normal((d, d))
    B = np.outer(u, u) if kind == "rank one" else (G + G.T) / 2
    pencil = make_pencil(B, (A + A.T) / 2)
    w = rng.standard_normal(d)
    while quotient(w, pencil) <= pencil.of_pair[-2]:  # the bound is said of ρ(w) above λ2 only
        w = best_step(w, pencil) + 1e-3 * rng.standard_normal(d)
    return pencil, w


# ---- The formulas of the section on least squares on many random data sets of each seed -------------------


def data_sets(seed: int, count: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, float]]:
    """x (m, d) of mean zero, scaled by 10^±2, y (m,), a direction w (d,), a length γ; m = 60, d = 1 to 10."""
    rng = np.random.default_rng([seed, 0])
    for _ in range(count):
        d = int(rng.integers(1, 11))
        x = rng.standard_normal((60, d)) @ rng.standard_normal((d, d)) * 10 ** rng.uniform(-2, 2)
        y, w = rng.standard_normal(60), rng.standard_normal(d)
        yield x - x.mean(axis=0), y, w, rng.standard_normal() * 10 ** rng.uniform(-1, 1)


def worst_differences(both_sides: Callable[..., Iterable[tuple]], seed: int, count: int) -> dict[str, float]:
    """Largest |left - right| over the size of the two, for every name that both_sides(x, y, w, γ) yields.

    It yields (name, left, right), or (name, left, right, size) where the terms of the two may cancel.
    """
    worst: dict[str, float] = {}
    for examples in data_sets(seed, count):
        for name, left, right, *size in both_sides(*examples):
            total = size[0] if size else np.max(np.abs(left) + np.abs(right))
            difference = np.max(np.abs(np.asarray(left) - right)) / total
            worst[name] = max(worst.get(name, 0.0), float(difference))
    return worst


def not_convex(seed: int, count: int, form: str) -> int:
    """On how many data sets the objective f(w, γ) bends downwards somewhere in γ."""
    found = 0
    for x, y, w, _ in data_sets(seed, count):
        problem = from_examples(x, y)
        lengths = np.linspace(-3, 3, 61) * np.sqrt(norm(w, problem.S))
        values = np.array([objective(w, g, problem, form) for g in lengths])
        bend = values[2:] - 2 * values[1:-1] + values[:-2]
        found += int(bend.min() < -1e-9 * np.abs(values).max())
    return found


# ---- Bounds of the section on least squares against gradient descent on random problems of one seed -------

#: The excess (relative to the largest possible) below which rounding rules: a weight known to ε is off by ε/√excess of
#: its distance, an excess by twice that, and a ratio of two by four times, which is to stay below the slack.
FLOOR = (4 * np.finfo(float).eps / SLACK) ** 2


def linear_margins(excess: np.ndarray, problem: Quadratic, exponent: float = 2.0) -> np.ndarray:
    """excess_t / ((1 - μ/L)^{2t} excess_0) for t = 1 ... T, where it is above rounding; inf over 0."""
    t = np.arange(len(excess))
    bound = problem.rate ** (exponent * t) * excess[0]
    kept = (excess > FLOOR * problem.attainable) & (t > 0)
    with np.errstate(divide="ignore", over="ignore"):
        return excess[kept] / bound[kept]


def least_squares_margins(
    seed: int, problems: int, steps: int, factor: float = 1.0
) -> tuple[Ratios, Ratios, int]:
    """The linear bound for ρ in printed steps, for gradient descent in steps of 1/2L; runs that obey it.

    Plain gradient descent starts where the other does: in direction w₀, at the best length. Kinds take turns.
    """
    rng = np.random.default_rng([seed, 1])
    directions, weights, obeying = [], [], 0
    for number in range(problems):
        problem, w = draw_quadratic(rng, KINDS[number % len(KINDS)])
        path = descend(w, problem, steps, factor)
        directions.append(linear_margins(gap(path, problem), problem))
        start = weights_at_best_length(path[:1], problem)[0]
        found = length_direction.plain(problem.gradient, start, 1 / (2 * problem.largest), steps)
        weights.append(linear_margins(problem.excess(found), problem))
        obeying += bool((weights[-1] <= 1 + SLACK).all())
    return Ratios(np.concatenate(directions)), Ratios(np.concatenate(weights)), obeying


def rayleigh_margins(seed: int, pencils: int, steps: int) -> dict[str, Ratios]:
    """The bound for the Rayleigh quotient, pair after pair: "printed", "charitable" and "corrected".

    "printed" takes the eigenvalues of B and the exponent 2t for the step from t to t + 1, "charitable" those
    of the pair and the exponent 2; both are given the best step there is. Steps nearer than 1e-6 to λ1 are
    left out (cancellation).
    """
    rng = np.random.default_rng([seed, 2])
    found: dict[str, list[float]] = {"printed": [], "charitable": [], "corrected": []}
    for number in range(pencils):
        pencil, first = draw_pencil(rng, ("rank one", "identity", "general")[number % 3])
        span = pencil.of_pair[-1] - pencil.of_pair[0]
        for step, names in ((best_step, ("printed", "charitable")), (fixed_step, ("corrected",))):
            w = first
            for t in range(steps):
                before, w = w, step(w, pencil)
                old, new = quotient(before, pencil), quotient(w, pencil)
                if pencil.of_pair[-1] - new < 1e-6 * span:
                    break
                for name in names:
                    found[name].append(_one_margin(name, old, new, t, pencil))
    return {name: Ratios(np.array(ratios)) for name, ratios in found.items()}


def _one_margin(name: str, old: float, new: float, t: int, pencil: Pencil) -> float:
    """Left over right side; where the right one is not positive, inf if the bound fails, 0 if it holds."""
    eigenvalues = pencil.of_B if name == "printed" else pencil.of_pair
    if name == "printed":
        factor = printed_factor(pencil, t)
    elif name == "charitable":
        smallest, second, first = eigenvalues[0], eigenvalues[-2], eigenvalues[-1]
        factor = max(0.0, 1 - (first - second) / (first - smallest)) ** 2
    else:
        factor = corrected_factor(pencil)
    left, right = shortfall(new, eigenvalues), factor * shortfall(old, eigenvalues)
    if right > 1e-12:
        return left / right
    return float("inf") if left > right + 1e-9 else 0.0


# ---- Figures, of recorded results alone -------------------------------------------------------------------

RACERS = ("direction", "gradient_descent", "accelerated")


PANELS = {
    "the linear rate": {
        "direction": "batch: direction, the theorem",
        "gradient_descent": "none: plain gradient descent",
    },
    "the Rayleigh quotient": {
        "printed": "printed: parenthesis mended",
        "charitable": "l2: eigenvalues, exponent, too",
        "corrected": "corrected: corrected",
    },
}


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Left over right side of the theorem, and of the bound of the Rayleigh quotient."""
    return draw_ratios(results, PANELS, (-8, 8))


def conditioning(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """The excess (S, T) of each method at condition number 100, and the steps (S, conditions) it needs."""
    points = points_of(results, "conditioning")
    (steps,), (conditions,) = points["step"], points["condition"]
    arms = {name: dict(color=color, look=dash, label=words) for name, (color, dash, words) in METHODS.items()}
    arms = {name: arms[name] for name in RACERS}
    bound = points["excess.direction"][:, 0].mean() * (1 - 1 / 100) ** (2 * steps)
    law = {"law": dict(y=bound, look=":", color="theory", label=r"$(1-\mu/L)^{2t}$")}
    left = dict(
        title="condition number 100", xlabel="step $t$", ylabel="relative excess", ylim=(1e-9, 2), log="y"
    )
    right = dict(
        title="to a relative excess of $10^{-8}$",
        xlabel=r"condition number $L/\mu$",
        ylabel="steps",
        log="xy",
    )
    dots = {name: style | dict(marker="o") for name, style in arms.items()}
    panels = [
        Panel(curve="excess.{}", arms=arms | law, x=steps, **left),
        Panel(curve="needed.{}", arms=dots, x=conditions, ticks=conditions, **right),
    ]
    return compare(points, panels, figsize=(7.4, 3.7), by="geometric", legend="each")
