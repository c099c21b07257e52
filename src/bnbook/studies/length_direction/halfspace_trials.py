"""The bounds on GDNP against runs on many random Gaussian half-space problems, and a search for critical
points."""

from __future__ import annotations

import numpy as np

from bnbook.studies.length_direction import bounds, gdnp, least_squares
from bnbook.studies.length_direction.halfspaces import Gaussian, draw_gaussian
from bnbook.studies.length_direction.losses import LOSSES, Loss

#: Losses with a bounded best length, for which GDNP is made, and the start of its bisection.
LEARNABLE = ("logistic", "huber", "welsch")
BRACKET = (-16.0, 16.5)  # not symmetric: no midpoint is ever 0, where the direction has no gradient
#: Gaps below this share of uᵀS⁻¹u are left out: there the gradient is rounding.
FLOOR = 1e-11

Margins = dict[str, list[float]]


def draw_start(rng: np.random.Generator, halfspace: Gaussian, kind: int) -> np.ndarray:
    """A first direction of any length: random (kind 0), near the best one (1), almost orthogonal to u (2)."""
    problem = halfspace.problem
    w = rng.standard_normal(len(problem.u))
    w = w / halfspace.length(w)
    best = problem.direction / np.sqrt(problem.attainable)
    if kind == 1:
        w = best + 0.1 * w
    if kind == 2:
        w = w - (problem.u @ w) / problem.attainable * problem.direction + 1e-4 * best
    return -np.sign(problem.u @ w) * 10 ** rng.uniform(-2, 2) * w


def run_margins(seed: int, problems: int, steps: int) -> Margins:
    """Left side over right side of every bound at every step, by name.form; and the error of two equalities.

    "direction", "length", "combined": the bounds of `bounds`, with the number of halvings 0 to 30; "gap": the
    linear rate of ρ under the printed or the corrected h; "pythagoras": relative error of the equality behind
    the bounds; "step": relative difference of the next direction and the one of least squares.
    """
    rng = np.random.default_rng([seed, 4])
    names = ("direction", "length", "combined", "gap", "step")
    found: Margins = {f"{name}.{form}": [] for name in names for form in bounds.FORMS} | {"pythagoras": []}
    for number in range(problems):
        halfspace = draw_gaussian(rng, LOSSES[LEARNABLE[number % 3]])
        w = draw_start(rng, halfspace, number // 3 % 3)
        iterations = int(rng.integers(0, 31))
        for form in bounds.FORMS:
            _one_run(
                halfspace, gdnp.run(halfspace, w, steps, iterations, BRACKET, form), form, iterations, found
            )
    return found


def _one_run(halfspace: Gaussian, run: gdnp.Run, form: str, iterations: int, found: Margins) -> None:
    """Add the margins of one run; the bounds are judged on the corrected run, which takes the steps they
    need."""
    problem = halfspace.problem
    gaps = least_squares.gap(run.directions, problem)
    for t, (w, gamma) in enumerate(zip(run.directions, run.lengths, strict=True)):
        if gaps[t] < FLOOR * problem.attainable:
            break
        if t:
            bound = problem.rate ** (2 * t) * gaps[0]
            found[f"gap.{form}"].append(float(gaps[t] / bound) if bound and np.isfinite(gaps[t]) else np.inf)
        found[f"step.{form}"].append(_step_difference(halfspace, w, gamma, form))
        if form == "corrected":
            _bounds_at(halfspace, w, gamma, t, gaps, iterations, found)


def _step_difference(halfspace: Gaussian, w: np.ndarray, gamma: float, form: str) -> float:
    wanted = w - least_squares.step_size(w, halfspace.problem) * least_squares.gradient(w, halfspace.problem)
    got = gdnp.next_direction(w, gamma, halfspace, form)
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def _bounds_at(
    halfspace: Gaussian,
    w: np.ndarray,
    gamma: float,
    t: int,
    gaps: np.ndarray,
    iterations: int,
    found: Margins,
) -> None:
    length = halfspace.length(w)
    gradient = halfspace.gradient(gamma * w / length)
    slope = halfspace.slope(*halfspace.margins(w), gamma)
    in_direction = length**2 * bounds.squared_norm(
        halfspace.gradient_in_direction(w, gamma), halfspace, "corrected"
    )
    width = BRACKET[1] - BRACKET[0]
    for form in bounds.FORMS:
        of_direction = bounds.direction_bound(halfspace, t, gaps[0], form)
        of_length = bounds.length_bound(halfspace, iterations, width, form)
        found[f"direction.{form}"].append(in_direction / gamma**2 / of_direction)
        found[f"length.{form}"].append(slope**2 / of_length)
        found[f"combined.{form}"].append(
            bounds.squared_norm(gradient, halfspace, form) / (of_direction + of_length)
        )
    whole = bounds.squared_norm(gradient, halfspace, "corrected")
    first = halfspace.coefficients(gamma * w / length)[0]
    found["pythagoras"].append(abs(first**2 * gaps[t] + slope**2 - whole) / whole)


def critical_points(
    rng: np.random.Generator, loss: Loss, starts: int, size: int
) -> tuple[np.ndarray, Gaussian]:
    """Bounded critical points (k, d) that Levenberg and Marquardt find from random starts, and the
    problem."""
    from scipy.optimize import least_squares as minimise

    halfspace = draw_gaussian(rng, loss, size)
    values, basis = np.linalg.eigh(halfspace.problem.S)
    whiten = (basis / np.sqrt(values)) @ basis.T  # S^(-1/2): in whitened weights all directions are alike
    found = []
    for _ in range(starts):
        start = rng.standard_normal(size)
        start *= 10 ** rng.uniform(-0.7, 0.3) / np.linalg.norm(start)
        end = minimise(
            lambda z: whiten @ halfspace.gradient(whiten @ z),
            start,
            method="lm",
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
            max_nfev=80,
        )
        if np.linalg.norm(end.fun) < 1e-10 and np.linalg.norm(end.x) < 16:
            found.append(whiten @ end.x)
    return np.array(found).reshape(-1, size), halfspace


def sine_off_line(points: np.ndarray, halfspace: Gaussian) -> np.ndarray:
    """Sine of the angle (in the norm of S) between each point and the line of S⁻¹u; 0 for the point 0."""
    if not len(points):
        return np.zeros(0)
    lengths = np.array([halfspace.length(point) for point in points])
    away = np.sqrt(
        least_squares.gap(
            np.where(lengths[:, None] > 1e-9, points, halfspace.problem.direction), halfspace.problem
        )
    )
    return away / np.sqrt(halfspace.problem.attainable)
