"""Single numbers out of curves: of a training's losses, over its probed steps, and of two curves together."""

from __future__ import annotations

import numpy as np

#: Share of ln(classes) by which the loss must have fallen for a run to count as started.
START_MARGIN = 0.02


def started(losses: np.ndarray, classes: int = 10, margin: float = START_MARGIN) -> np.ndarray:
    """Whether training got under way within these T steps: losses (..., T) of each batch -> bool (...).

    The mean over the last sixth of the steps (50 of 300, at least one) lies below (1 - margin) ln(classes).
    A network that ignores its input cannot get there: on balanced classes its expected loss is at least
    ln(classes), and the mean over 50 batches of 128 scatters by well under 1 %. A diverged run (NaN) has not
    started.
    """
    losses = np.asarray(losses, dtype=float)
    window = max(1, losses.shape[-1] // 6)
    return losses[..., -window:].mean(-1) < (1 - margin) * np.log(classes)


def guessing(accuracy: np.ndarray, classes: int = 10) -> np.ndarray:
    """Accuracy with NaN (the run has diverged) replaced by that of a constant answer, 1 / classes."""
    return np.where(np.isfinite(accuracy), accuracy, 1.0 / classes)


def moving_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Mean over the last `window` steps (..., T) -> (..., T); over fewer at the beginning; NaN from the first
    NaN on."""
    values = np.asarray(values, dtype=float)
    total = np.cumsum(values, axis=-1)
    count = np.minimum(np.arange(1, values.shape[-1] + 1), window)
    before = np.concatenate([np.zeros((*values.shape[:-1], window)), total[..., :-window]], axis=-1)
    return (total - before[..., : values.shape[-1]]) / count


def steps_to_reach(accuracy: np.ndarray, level: float, window: int = 50) -> np.ndarray:
    """First step at which the mean batch accuracy of the last `window` steps is at least `level`, (..., T) ->
    (...).

    Counted in updates made; a run that never gets there has infinity.
    """
    reached = moving_mean(accuracy, window) >= level
    reached[..., : min(window, reached.shape[-1]) - 1] = False
    return np.where(reached.any(-1), reached.argmax(-1) + 1.0, np.inf)


# ---- Over probed steps ------------------------------------------------------------------------------------------------


def over_training(values: np.ndarray, probe_step: np.ndarray, mean: bool = False) -> np.ndarray:
    """Median (or mean) over the whole training, (S, P) -> (S,): each step of it weighs the same (`over_window`)."""
    return over_window(values, probe_step, -np.inf, np.inf, mean)


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
    values, steps = (np.asarray(each, dtype=float) for each in (values, probe_step))
    steps = steps[0] if steps.ndim == 2 else steps
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


# ---- Of two curves ----------------------------------------------------------------------------------------------------


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's, of two rows; ties share a rank, what is no number ranks last; 0 where one row is all ties."""
    from scipy.stats import rankdata

    ranks = [rankdata(np.where(np.isfinite(row), row, -np.inf)) for row in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1]) if all(np.ptp(row) for row in ranks) else 0.0
