"""Single numbers out of training curves."""

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
