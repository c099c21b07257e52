"""GDNP against gradient descent, plain and accelerated, on a half-space: the excess loss by steps."""

from __future__ import annotations

import numpy as np

from bnbook.errors import BnbookError
from bnbook.studies.length_direction import bounds, gdnp, gradient_descent
from bnbook.studies.length_direction.halfspaces import Examples, Gaussian, HalfSpace
from bnbook.studies.length_direction.losses import LOSSES
from bnbook.studies.length_direction.problems import Quadratic, draw_quadratic

METHODS = ("gdnp", "gradient_descent", "accelerated")


def best_weight(halfspace: HalfSpace) -> np.ndarray:
    """The minimiser of the logistic loss: -2 S⁻¹u / (1 - uᵀS⁻¹u) for Gaussian z, by Newton's method for
    examples.

    BnbookError where Newton's method does not end at a bounded minimum (the classes can be separated).
    """
    problem = halfspace.problem
    if isinstance(halfspace, Gaussian):
        if halfspace.loss.name != "logistic":
            raise BnbookError(
                f"loss {halfspace.loss.name}; expected logistic, the only one with this closed form"
            )
        return -2 * problem.direction / (1 - problem.attainable)
    weight = np.zeros(len(problem.u))
    unbounded = BnbookError(
        "Newton's method ends at no bounded minimum; expected classes that no half-space separates"
    )
    for _ in range(60):
        curvature = halfspace.loss.second(halfspace.z @ weight)
        hessian = (halfspace.z * curvature[:, None]).T @ halfspace.z / len(halfspace.z)
        if np.linalg.eigvalsh(hessian)[0] < 1e-12 * halfspace.problem.largest:
            raise unbounded  # every example is on its side, and farther and farther
        step = np.linalg.solve(hessian, halfspace.gradient(weight))
        weight = weight - step
        if np.linalg.norm(step) <= 1e-12 * np.linalg.norm(weight):
            return weight
    raise unbounded


def draw_race(rng: np.random.Generator) -> tuple[Gaussian, np.ndarray]:
    """A Gaussian problem with d = 20, L/μ = 30, uᵀS⁻¹u = ½ and the logistic loss, and a first direction."""
    problem, w = draw_quadratic(rng, "random", 30.0, 20)
    halved = Quadratic(problem.S, problem.u * np.sqrt(0.5 / problem.attainable))
    return Gaussian(halved, LOSSES["logistic"]), w


def race(halfspace: HalfSpace, w: np.ndarray, steps: int) -> dict[str, np.ndarray]:
    """(f - f*) / (f(0) - f*) for the three methods, (T+1,) each, all from direction w at its best length.

    Both gradient descents take steps of 1/ζ; every step of every method multiplies by the examples twice.
    """
    run = gdnp.run(halfspace, w, steps, 50)
    start, rate = run.weight(0, halfspace), 1 / bounds.smoothness(halfspace)
    paths = {
        "gdnp": np.stack([run.weight(t, halfspace) for t in range(steps + 1)]),
        "gradient_descent": gradient_descent.plain(halfspace.gradient, start, rate, steps),
        "accelerated": gradient_descent.accelerated(halfspace.gradient, start, rate, None, steps),
    }
    lowest = halfspace.value(best_weight(halfspace))
    span = halfspace.value(np.zeros_like(start)) - lowest
    return {
        name: np.array([halfspace.value(v) - lowest for v in path]) / span for name, path in paths.items()
    }


def steps_to(excess: np.ndarray, target: float) -> float:
    """First step from which the excess stays at or below the target; steps plus 1 where it does not."""
    above = np.flatnonzero(~(excess <= target))
    return float(above[-1] + 1) if len(above) else 0.0


def principal(
    images: np.ndarray, labels: np.ndarray, classes: tuple[int, int], components: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of images (m, ...) in their principal components: x (m, d) and labels of -1 and 1."""
    chosen = np.isin(labels, classes)
    x = images[chosen].reshape(chosen.sum(), -1).astype(np.float64)
    x = x - x.mean(axis=0)
    _, vectors = np.linalg.eigh(x.T @ x / len(x))
    return x @ vectors[:, ::-1][:, :components], np.where(labels[chosen] == classes[0], -1.0, 1.0)


def alignment(halfspace: Examples | Gaussian) -> float:
    """Cosine (in the norm of S) of the angle between the minimiser and the line of S⁻¹u."""
    best, direction = best_weight(halfspace), halfspace.problem.direction
    return abs(float(best @ halfspace.problem.u)) / (halfspace.length(best) * halfspace.length(direction))
