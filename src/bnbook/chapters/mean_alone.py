"""Is the mean enough?: what is drawn of five networks."""

from __future__ import annotations

import matplotlib.pyplot as plt

from bnbook.chapters.best_rate import ink
from bnbook.figures import mean_and_interval
from bnbook.plots.layout import subplots
from bookpress.results import Results

#: Of each network the words and whose colour it has.
ROWS = {
    "batch": "batch norm",
    "both": "standardized weights, mean subtracted",
    "mean_glorot": "mean subtracted, Glorot's start",
    "mean_warm": "mean subtracted, its own start and warm-up",
    "plain": "nothing, He's start and warm-up",
}
INKS = {"plain": "he"}


def accuracy(results: Results) -> plt.Figure:
    """Test accuracy in per cent with 95 % intervals, a network a row."""
    fig, ax = subplots(figsize=(7.2, 2.6))
    for place, name in enumerate(ROWS):
        mean, half = mean_and_interval(100 * results[f"test_accuracy.{name}"][:, None])
        ax.errorbar(
            mean, [place], xerr=half, fmt="o", color=ink(INKS.get(name, name)), capsize=3, markersize=6
        )
    ax.set_yticks(range(len(ROWS)), list(ROWS.values()), fontsize=10)
    ax.set(xlabel="test accuracy, %", ylim=(len(ROWS) - 0.4, -0.6))
    ax.grid(visible=False, axis="y")
    return fig
