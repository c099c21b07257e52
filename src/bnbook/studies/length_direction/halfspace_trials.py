"""The bounds on GDNP on many random Gaussian half-space problems, and a search for critical points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import least_squares as minimise
from scipy.optimize import root

from bnbook.studies.length_direction import bounds, gdnp, least_squares
from bnbook.studies.length_direction.halfspaces import Gaussian, draw_gaussian
from bnbook.studies.length_direction.losses import LOSSES, Loss
from bnbook.studies.length_direction.quadrature import plane

#: Losses with a bounded best length, for which GDNP is made, and the start of its bisection.
LEARNABLE = ("logistic", "huber", "welsch")
BRACKET = (-16.0, 16.5)  # not symmetric: no midpoint is ever 0, where the direction has no gradient
#: Gaps below this share of uᵀS⁻¹u are left out: there the gradient is rounding.
FLOOR = 1e-11
#: A critical point is off the line beyond this sine of its angle to it.
AWAY = 1e-5


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


def run_margins(seed: int, problems: int, steps: int) -> dict[str, list[float]]:
    """Left side over right side of every bound at every step, by name.form; and the error of two equalities.

    "direction", "length", "combined": the bounds of `bounds`, with the number of halvings 0 to 30; "gap": the
    linear rate of ρ under the printed or the corrected h; "pythagoras": relative error of the equality behind
    the bounds; "step": relative difference of the next direction and the one of least squares.
    """
    rng = np.random.default_rng([seed, 4])
    names = ("direction", "length", "combined", "gap", "step")
    found = {f"{name}.{form}": [] for name in names for form in bounds.FORMS} | {"pythagoras": []}
    for number in range(problems):
        halfspace = draw_gaussian(rng, LOSSES[LEARNABLE[number % 3]])
        w = draw_start(rng, halfspace, number // 3 % 3)
        iterations = int(rng.integers(0, 31))
        for form in bounds.FORMS:
            run = gdnp.run(halfspace, w, steps, iterations, BRACKET, form)
            for name, ratio in _one_run(halfspace, run, form, iterations):
                found[name].append(float(ratio))
    return found


def _one_run(halfspace: Gaussian, run: gdnp.Run, form: str, iterations: int) -> Iterator[tuple[str, float]]:
    """Of one run; the bounds are judged on the corrected one, which takes the steps they need."""
    problem = halfspace.problem
    gaps = least_squares.gap(run.directions, problem)
    for t, (w, gamma) in enumerate(zip(run.directions, run.lengths, strict=True)):
        if gaps[t] < FLOOR * problem.attainable:
            return
        if t:
            bound = problem.rate ** (2 * t) * gaps[0]
            yield f"gap.{form}", gaps[t] / bound if bound and np.isfinite(gaps[t]) else np.inf
        wanted = w - least_squares.step_size(w, problem) * least_squares.gradient(w, problem)
        got = gdnp.next_direction(w, gamma, halfspace, form)
        yield f"step.{form}", np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
        if form == "corrected":
            yield from _bounds_at(halfspace, w, gamma, t, gaps, iterations)


def _bounds_at(
    halfspace: Gaussian, w: np.ndarray, gamma: float, t: int, gaps: np.ndarray, iterations: int
) -> Iterator[tuple[str, float]]:
    length, width = halfspace.length(w), BRACKET[1] - BRACKET[0]
    gradient, in_direction = halfspace.gradient(gamma * w / length), halfspace.gradient_in_direction(w, gamma)
    slope = halfspace.slope(*halfspace.margins(w), gamma)
    sideways = length**2 * bounds.squared_norm(in_direction, halfspace, "corrected")
    for form in bounds.FORMS:
        of_direction = bounds.direction_bound(halfspace, t, gaps[0], form)
        of_length = bounds.length_bound(halfspace, iterations, width, form)
        yield f"direction.{form}", sideways / gamma**2 / of_direction
        yield f"length.{form}", slope**2 / of_length
        yield f"combined.{form}", bounds.squared_norm(gradient, halfspace, form) / (of_direction + of_length)
    whole = bounds.squared_norm(gradient, halfspace, "corrected")
    first = halfspace.coefficients(gamma * w / length)[0]
    yield "pythagoras", abs(first**2 * gaps[t] + slope**2 - whole) / whole


def plane_gradient(halfspace: Gaussian, weight: np.ndarray) -> np.ndarray:
    """∇f(w̃) by its definition, E[φ'(zᵀw̃) z], an integral over the plane (d = 2)."""
    S, u = halfspace.problem.S, halfspace.problem.u
    nodes, p = plane(0.1, 8.0)
    z = u + nodes @ np.linalg.cholesky(S - np.outer(u, u)).T
    return (p * halfspace.loss.first(z @ weight)) @ z


def search_line(seed: int, starts: int) -> tuple[float, dict[str, int], dict[str, int]]:
    """The largest error of the gradient's formula, and for every loss how many critical points were found and
    how many of them off the line."""
    rng, errors, found, away = np.random.default_rng([seed, 5]), [], {}, {}
    for name, loss in LOSSES.items():
        for _ in range(6):
            halfspace = draw_gaussian(rng, loss, 2)
            weight = rng.standard_normal(2)
            weight *= rng.uniform(0.1, 1.5) / halfspace.length(weight)
            error = np.linalg.norm(plane_gradient(halfspace, weight) - halfspace.gradient(weight))
            errors.append(error / (np.linalg.norm(halfspace.problem.u) * loss.largest_first))
        points, halfspace = critical_points(rng, loss, starts, 2 + seed % 3)
        found[name], away[name] = len(points), int((sine_off_line(points, halfspace) > AWAY).sum())
    return max(errors), found, away


def critical_points(
    rng: np.random.Generator, loss: Loss, starts: int, size: int
) -> tuple[np.ndarray, Gaussian]:
    """Bounded critical points (k, d) by Levenberg and Marquardt from random starts, and the problem."""
    halfspace = draw_gaussian(rng, loss, size)
    whiten, found = halfspace.problem.whitening, []
    accuracy = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": 80}
    for _ in range(starts):
        start = rng.standard_normal(size)
        start *= 10 ** rng.uniform(-0.7, 0.3) / np.linalg.norm(start)
        end = minimise(lambda z: whiten @ halfspace.gradient(whiten @ z), start, method="lm", **accuracy)
        if np.linalg.norm(end.fun) < 1e-10 and np.linalg.norm(end.x) < 16:
            found.append(whiten @ end.x)
    return np.array(found).reshape(-1, size), halfspace


def critical_points_in_plane(halfspace: Gaussian, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Critical points (k, 2) nearer than `reach` to both axes, from 48 starts: those on the line
    and those off it."""
    found = []
    for angle in np.linspace(0, 2 * np.pi, 16, endpoint=False):
        for radius in (0.5, 1.5, 3):
            start = radius * np.array([np.cos(angle), np.sin(angle)])
            end = root(halfspace.gradient, start, tol=1e-13)
            if end.success and np.linalg.norm(end.fun) < 1e-10 and abs(end.x).max() < reach:
                found.append(end.x)
    points = np.array(found).reshape(-1, 2)
    away = sine_off_line(points, halfspace) > AWAY
    return points[~away], points[away]


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
