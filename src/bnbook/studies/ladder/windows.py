"""Middles over a part of a training, in which each step weighs the same, however often it was probed."""

from __future__ import annotations

import numpy as np

from bnbook.training.curves import START_MARGIN, moving_mean

#: Batches over which a loss is averaged before it says how far a training has come.
SMOOTHED = 50
#: No single loss counts for more: a larger one would take the digits of all later sums with it.
SPIKE = 1e6


def over_window(
    values: np.ndarray,
    probe_step: np.ndarray,
    low: np.ndarray | float,
    high: np.ndarray | float,
    mean: bool = False,
) -> np.ndarray:
    """Median (or mean) of (S, P) over the steps from `low` to `high` ((S,) or one number each) -> (S,).

    A probe stands for the steps up to half way to its neighbours, as far as they lie in the window. NaN steps
    (after a divergence) are left out; NaN where nothing is left.
    """
    steps = np.asarray(probe_step, dtype=float)
    values = np.asarray(values, dtype=float)
    edges = np.concatenate([steps[:1], (steps[1:] + steps[:-1]) / 2, steps[-1:]])
    lows, highs = (np.broadcast_to(np.asarray(each, dtype=float), len(values)) for each in (low, high))
    found = np.full(len(values), np.nan)
    for place, (row, first, last) in enumerate(zip(values, lows, highs, strict=True)):
        weights = np.minimum(edges[1:], last) - np.maximum(edges[:-1], first)
        kept = ~np.isnan(row) & (weights > 0)
        if not kept.any():
            continue
        row, weights = row[kept], weights[kept]
        if mean:
            found[place] = (row * weights).sum() / weights.sum()
        else:
            order = np.argsort(row)
            reached = np.cumsum(weights[order]) / weights.sum()
            found[place] = row[order][np.searchsorted(reached, 0.5 - 1e-12)]
    return found


def progress(loss: np.ndarray) -> np.ndarray:
    """The lowest mean loss of `SMOOTHED` batches so far, (S, T) -> (S, T); NaN from a divergence on."""
    window = max(1, min(SMOOTHED, loss.shape[-1] // 4))
    return np.minimum.accumulate(moving_mean(loss, window), axis=-1)


def come_to(loss: np.ndarray) -> np.ndarray:
    """The same of about `SMOOTHED` batches around each step; at the start of fewer, as many on each side,
    at the end of the last full window; NaN from half of them before a divergence on.

    What a network shows at a loss is looked up by this one: a mean of the batches *before* names a loss when
    the network lies below it already, and the faster it learns, the further.
    """
    loss = np.minimum(np.asarray(loss, dtype=float), SPIKE)
    steps = np.arange(loss.shape[-1])
    full = min(SMOOTHED, len(steps) // 4) // 2
    centre = np.minimum(steps, len(steps) - 1 - full)
    half = np.minimum(full, centre)
    total = np.concatenate([np.zeros((*loss.shape[:-1], 1)), np.cumsum(loss, axis=-1)], axis=-1)
    mean = (total[..., centre + half + 1] - total[..., centre - half]) / (2 * half + 1)
    return np.minimum.accumulate(mean, axis=-1)


def start_step(loss: np.ndarray, classes: int) -> np.ndarray:
    """Updates until the progress lies `START_MARGIN` below ln(classes), (S, T) -> (S,); T where it never
    does. A network that learns fast is seen to start some ten updates late."""
    under = progress(loss) < (1 - START_MARGIN) * np.log(classes)
    return np.where(under.any(-1), under.argmax(-1) + 1.0, loss.shape[-1])
