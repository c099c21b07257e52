"""Loss functions φ of the margin t = zᵀw̃, with z = -yx: their first two derivatives and what bounds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Loss:
    """φ, infinitely differentiable with bounded derivatives, as the article assumes."""

    name: str
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
    loss.name: loss
    for loss in (
        # convex and increasing: log(1 + e^t)
        Loss(
            "logistic",
            lambda t: np.logaddexp(0, t),
            _sigmoid,
            lambda t: _sigmoid(t) * _sigmoid(-t),
            1.0,
            0.25,
            0,
        ),
        # convex, with a minimum at the margin -1: √(1 + (t + 1)²)
        Loss(
            "huber",
            lambda t: np.sqrt(1 + (t + 1) ** 2),
            lambda t: (t + 1) / np.sqrt(1 + (t + 1) ** 2),
            lambda t: (1 + (t + 1) ** 2) ** -1.5,
            1.0,
            1.0,
            1,
        ),
        # neither convex nor unbounded, with a minimum at -1: 1 - exp(-(t + 1)² / 2)
        Loss(
            "welsch",
            lambda t: -np.expm1(-((t + 1) ** 2) / 2),
            lambda t: (t + 1) * np.exp(-((t + 1) ** 2) / 2),
            lambda t: (1 - (t + 1) ** 2) * np.exp(-((t + 1) ** 2) / 2),
            float(np.exp(-0.5)),
            1.0,
            1,
        ),
        # increasing and bounded: 1 / (1 + e^-t)
        Loss(
            "sigmoid",
            _sigmoid,
            lambda t: _sigmoid(t) * _sigmoid(-t),
            lambda t: _sigmoid(t) * _sigmoid(-t) * _sigmoid(-t) - _sigmoid(t) ** 2 * _sigmoid(-t),
            0.25,
            0.1,
            0,
        ),
        # up and down without end: t - √e sin t
        Loss(
            "ripple",
            lambda t: t - RIPPLE * np.sin(t),
            lambda t: 1 - RIPPLE * np.cos(t),
            lambda t: RIPPLE * np.sin(t),
            1 + RIPPLE,
            RIPPLE,
            np.inf,
        ),
    )
}
