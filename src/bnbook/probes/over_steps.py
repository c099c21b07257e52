"""Single numbers out of curves over the probed steps of a training: middles, and what holds from when to
when."""

from __future__ import annotations

import numpy as np


def over_training(
    values: np.ndarray, probe_step: np.ndarray, part: str = "all", mean: bool = False
) -> np.ndarray:
    """Median (or mean) over the probed steps of each member, (S, P) -> (S,), NaN steps (after a divergence)
    left out.

    "all": each step of the training weighs the same, so a probe counts for the steps up to half way to its
    neighbours; "early": the probes of the first tenth of the steps, each alike; "late": the second half, as
    "all". NaN where nothing is left.
    """
    steps = np.asarray(probe_step, dtype=float)
    steps = steps[0] if steps.ndim == 2 else steps
    middles = (steps[1:] + steps[:-1]) / 2
    weights = np.diff(np.concatenate([[steps[0]], middles, [steps[-1]]]))
    if part == "early":
        weights = (steps <= 0.1 * steps[-1]).astype(float)
    elif part == "late":
        weights = weights * (steps >= 0.5 * steps[-1])
    return np.array([_middle(row, weights, mean) for row in np.asarray(values, dtype=float)])


def share_of_training(holds: np.ndarray, alive: np.ndarray, probe_step: np.ndarray) -> np.ndarray:
    """Share of the training's steps at which something holds, (S, P) bool -> (S,), of those with `alive` (S,
    P)."""
    return over_training(np.where(alive, holds, np.nan), probe_step, mean=True)


def holds_from(holds: np.ndarray, probe_step: np.ndarray) -> np.ndarray:
    """First probed step from which on something holds at every probe to the end, (S, P) -> (S,); inf if it
    never does."""
    steps = np.broadcast_to(np.asarray(probe_step, dtype=float), holds.shape)
    to_the_end = np.logical_and.accumulate(holds[:, ::-1], axis=1)[:, ::-1]
    return np.where(
        to_the_end.any(1), np.take_along_axis(steps, to_the_end.argmax(1)[:, None], 1)[:, 0], np.inf
    )


def holds_until(holds: np.ndarray, probe_step: np.ndarray) -> np.ndarray:
    """First probed step at which something does not hold, (S, P) -> (S,); inf if it holds at all of them."""
    steps = np.broadcast_to(np.asarray(probe_step, dtype=float), holds.shape)
    return np.where((~holds).any(1), np.take_along_axis(steps, (~holds).argmax(1)[:, None], 1)[:, 0], np.inf)


def _middle(values: np.ndarray, weights: np.ndarray, mean: bool) -> float:
    kept = ~np.isnan(values) & (weights > 0)
    if not kept.any():
        return float("nan")
    values, weights = values[kept], weights[kept]
    if mean:
        return float((values * weights).sum() / weights.sum())
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][np.searchsorted(reached, 0.5 - 1e-12)])
