"""Curves of accuracy over a training, and fans of the distributions at its checkpoints."""

from __future__ import annotations

import numpy as np

from bnbook.deep_linear import LEVELS
from bnbook.probes.activations import quantiles
from bnbook.studies.bands import arithmetic
from bnbook.training.curves import guessing, moving_mean

Arrays = dict[str, np.ndarray]
DRAWN = 60  # points of a curve of batch accuracy


def batch_steps(steps: int, drawn: int = DRAWN) -> np.ndarray:
    """The numbers of updates at which a curve of batch accuracy is drawn."""
    window = max(1, steps // drawn)
    return np.arange(window, steps + 1, window)


def of_batches(run: Arrays, classes: int, drawn: int = DRAWN) -> np.ndarray:
    """Mean accuracy, in per cent, of the batches up to each of `batch_steps`, with its band, (1, 3, X)."""
    steps = run["accuracy"].shape[1]
    window = max(1, steps // drawn)
    means = moving_mean(guessing(run["accuracy"], classes), window)
    return arithmetic(100 * means[:, window - 1 :: window])


def of_test(run: Arrays, classes: int) -> np.ndarray:
    """Test accuracy in per cent at the checkpoints, with its band, (1, 3, E)."""
    return arithmetic(100 * guessing(run["test_accuracy"], classes))


def fan(run: Arrays, layers: int, unit: int = 0) -> np.ndarray:
    """Quantiles of what one unit of each watched layer hands to its rectifier, first seed: (1, E, layers,
    7)."""
    rows = [quantiles(run["histogram"][0, :, row, unit], LEVELS) for row in range(layers)]
    return np.stack(rows, axis=1)[None]
