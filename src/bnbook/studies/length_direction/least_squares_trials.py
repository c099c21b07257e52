"""Bounds of the section on least squares against gradient descent on random problems of one seed."""

from __future__ import annotations

import numpy as np

from bnbook.studies.length_direction import gradient_descent, least_squares, rayleigh
from bnbook.studies.length_direction.problems import KINDS, Quadratic, draw_quadratic
from bnbook.studies.length_direction.ratios import SLACK, Ratios

#: The excess (relative to the largest possible) below which rounding rules.
FLOOR = 1e-20


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
        path = least_squares.descend(w, problem, steps, factor)
        directions.append(linear_margins(least_squares.gap(path, problem), problem))
        start = least_squares.weights_at_best_length(path[:1], problem)[0]
        found = gradient_descent.plain(problem.gradient, start, 1 / (2 * problem.largest), steps)
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
        pencil, first = rayleigh.draw_pencil(rng, ("rank one", "identity", "general")[number % 3])
        span = pencil.of_pair[-1] - pencil.of_pair[0]
        for step, names in (
            (rayleigh.best_step, ("printed", "charitable")),
            (rayleigh.fixed_step, ("corrected",)),
        ):
            w = first
            for t in range(steps):
                before, w = w, step(w, pencil)
                old, new = rayleigh.quotient(before, pencil), rayleigh.quotient(w, pencil)
                if pencil.of_pair[-1] - new < 1e-6 * span:
                    break
                for name in names:
                    found[name].append(_one_margin(name, old, new, t, pencil))
    return {name: Ratios(np.array(ratios)) for name, ratios in found.items()}


def _one_margin(name: str, old: float, new: float, t: int, pencil: rayleigh.Pencil) -> float:
    """Left over right side; where the right one is not positive, inf if the bound fails, 0 if it holds."""
    eigenvalues = pencil.of_B if name == "printed" else pencil.of_pair
    if name == "printed":
        factor = rayleigh.printed_factor(pencil, t)
    elif name == "charitable":
        smallest, second, first = eigenvalues[0], eigenvalues[-2], eigenvalues[-1]
        factor = max(0.0, 1 - (first - second) / (first - smallest)) ** 2
    else:
        factor = rayleigh.corrected_factor(pencil)
    left, right = rayleigh.shortfall(new, eigenvalues), factor * rayleigh.shortfall(old, eigenvalues)
    if right > 1e-12:
        return left / right
    return float("inf") if left > right + 1e-9 else 0.0
