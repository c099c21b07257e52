"""Gradient descent in normalized parameters (GDNP): a step of the direction, bisection for the length.

With w̃ = γ w / ‖w‖_S the direction takes the step s = -‖w‖³_S / (L γ h) as long as h ≠ 0. The two readings of
h:
    printed    E φ' uᵀw - E φ'' (uᵀw)²
    corrected  E φ' uᵀw - E φ'' uᵀw̃ uᵀw = c₁ uᵀw
They agree where γ = ‖w‖_S. Only the second makes the step the one of least squares: ∇_w f = (γ c₁ / ‖w‖_S) q
with q = u - (uᵀw / ‖w‖²_S) S w, and so w - s ∇_w f = w + (‖w‖²_S / (L uᵀw)) q.
Source: the encyclopedia's article, "Learning halfspace problem".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bnbook.errors import BnbookError
from bnbook.studies.length_direction.halfspaces import HalfSpace

FORMS = ("printed", "corrected")


@dataclass(frozen=True)
class Run:
    """The iterates of GDNP: what each step started from, and the result."""

    directions: np.ndarray  # (T+1, d)
    lengths: np.ndarray  # (T+1,), γ after bisection

    def weight(self, t: int, halfspace: HalfSpace) -> np.ndarray:
        """w̃_t (d,)"""
        w = self.directions[t]
        return self.lengths[t] * w / halfspace.length(w)


def criterion(w: np.ndarray, gamma: float, halfspace: HalfSpace, form: str = "corrected") -> float:
    """h(w, γ), printed or corrected."""
    if form not in FORMS:
        raise BnbookError(f"unknown form {form!r}; expected one of {', '.join(FORMS)}")
    along = float(halfspace.problem.u @ w)
    points, weights = halfspace.margins(w)
    first, second = (
        float(weights @ f(gamma * points)) for f in (halfspace.loss.first, halfspace.loss.second)
    )
    length = halfspace.length(w)
    return first * along - second * along**2 * (1 if form == "printed" else gamma / length)


def next_direction(w: np.ndarray, gamma: float, halfspace: HalfSpace, form: str = "corrected") -> np.ndarray:
    """w - s ∇_w f(w, γ); w itself where h = 0."""
    h = criterion(w, gamma, halfspace, form)
    if h == 0 or gamma == 0:
        return w
    size = -(halfspace.length(w) ** 3) / (halfspace.problem.largest * gamma * h)
    return w - size * halfspace.gradient_in_direction(w, gamma)


def bisection(
    slope: Callable[[float], float], low: float, high: float, iterations: int
) -> tuple[float, float]:
    """The bracket (a, b) of a zero of an increasing-through-zero slope after halving it T_s times.

    Where the slope does not change its sign from - to + the bracket runs to one of its ends, as bisection
    does.
    """
    for _ in range(iterations):
        middle = (low + high) / 2
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return low, high


def run(
    halfspace: HalfSpace,
    w: np.ndarray,
    steps: int,
    iterations: int = 40,
    bracket: tuple[float, float] = (-16.0, 16.5),
    form: str = "corrected",
) -> Run:
    """GDNP from direction w: at each direction the length by bisection, with it the next direction.

    γ is the left end of the last bracket, as in the article's bound. BnbookError where uᵀw = 0.
    """
    if float(halfspace.problem.u @ w) == 0:
        raise BnbookError("uᵀw is 0; expected a first direction that is not orthogonal to u")
    directions, lengths = [np.asarray(w, dtype=np.float64)], []
    for t in range(steps + 1):
        points, weights = halfspace.margins(directions[-1])
        lengths.append(bisection(lambda g: halfspace.slope(points, weights, g), *bracket, iterations)[0])
        if t < steps:
            directions.append(next_direction(directions[-1], lengths[-1], halfspace, form))
    return Run(np.stack(directions), np.array(lengths))
