"""What the trainings of `train` came to: share of right answers, and how far each layer was turned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bnbook.studies.gradient_growth.descent import Trained

GUESS = 0.1  # share of right answers of ten that a network without a finite output has


def last_fifth(accuracy: np.ndarray) -> np.ndarray:
    """Share of right answers over the last fifth of the steps, (S, A, T) -> (S, A); not finite: a guess."""
    last = max(1, accuracy.shape[2] // 5)
    return np.nan_to_num(accuracy[:, :, -last:], nan=GUESS).mean(axis=2)


def turns(done: Trained, rates: Sequence[float], k: int) -> np.ndarray:
    """η ‖∂ℓ/∂W‖ / ‖W‖, the tangent of the angle by which a step turns a layer, at rate k: (S, K, L)."""
    return rates[k] * done.gradient[:, k] / done.size[:, k]


def turn_spread(turned: np.ndarray) -> np.ndarray:
    """The largest turn of a hidden layer over the smallest, (S, K, L) -> (S, K); the last layer is left
    out."""
    hidden = turned[:, :, :-1]
    return hidden.max(axis=2) / hidden.min(axis=2)
