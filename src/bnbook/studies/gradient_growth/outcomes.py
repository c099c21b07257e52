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


def largest_usable(shares: np.ndarray, rates: Sequence[float], enough: float = 0.5) -> np.ndarray:
    """The largest learning rate at which more than `enough` of the answers are right, 0 where none is.

    shares (S, rates) -> (S,).
    """
    return (np.array(rates) * (shares > enough)).max(axis=1)


def at_chosen(values: np.ndarray, rates: Sequence[float], chosen: np.ndarray) -> np.ndarray:
    """Of values (S, rates, ...) those at each seed's chosen rate (S,), (S, ...); not a number where that is
    none of the rates."""
    places = [rates.index(rate) if rate in rates else None for rate in chosen.tolist()]
    none = np.full(values.shape[2:], np.nan)
    return np.array([none if k is None else values[seed, k] for seed, k in enumerate(places)])


def first_over_last(done: Trained) -> np.ndarray:
    """‖∂ℓ/∂W‖ of the first hidden layer over that of the last, (S, A, K); the readout, which comes last, is
    left out."""
    return done.gradient[..., 0] / done.gradient[..., -2]


def turns(done: Trained, rates: Sequence[float], k: int) -> np.ndarray:
    """η ‖∂ℓ/∂W‖ / ‖W‖, the tangent of the angle by which a step turns a layer, at rate k: (S, K, L)."""
    return rates[k] * done.gradient[:, k] / done.size[:, k]


def turn_spread(turned: np.ndarray) -> np.ndarray:
    """The largest turn of a hidden layer over the smallest, (S, K, L) -> (S, K); the last layer is left
    out."""
    hidden = turned[:, :, :-1]
    return hidden.max(axis=2) / hidden.min(axis=2)
