"""Is the mean enough?: what is drawn of five networks."""

from __future__ import annotations

import matplotlib.pyplot as plt

from bnbook.chapters.best_rate import dots
from bookpress.results import Results

ROWS = {
    "batch": "batch norm",
    "both": "standardized weights, mean subtracted",
    "mean_glorot": "mean subtracted, Glorot's start",
    "mean_warm": "mean subtracted, its own start and warm-up",
    "plain": "nothing, He's start and warm-up",
}


def accuracy(results: Results) -> plt.Figure:
    """Test accuracy in per cent with 95 % intervals, a network a row."""
    return dots(results, ROWS, 2.6, "test_accuracy")
