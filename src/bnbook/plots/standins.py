"""Figures of the chapter on what can stand in for batch norm."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import rankdata

from bnbook.figures import COLORS
from bnbook.studies.standins.layers import TABLE
from bnbook.studies.standins.trials import INSTRUMENTS, OUTCOMES

#: Points of a scatter that have a name beside them -> its words: layers that the text speaks of.
NAMED = {
    "none": "nothing",
    "small": "nothing × 0.7",
    "large": "nothing × 1.4",
    "batch": "batch norm",
    "mean": "mean",
    "variance": "variance",
    "layer": "layer norm",
    "tanh_half": "tanh(z/2)",
    "tanh_two": "tanh(2z)",
}


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """(S, K) -> (K,): ranks from 0 to 1 of each seed, what is no number last; mean over the seeds."""
    ranks = np.array([rankdata(np.where(np.isfinite(row), row, -np.inf)) for row in values])
    return (ranks.mean(axis=0) - 1) / (values.shape[1] - 1)


def ranks(scores: Mapping[str, np.ndarray]) -> plt.Figure:
    """Ranks by each instrument and outcome, (S, K) each, larger is better: a row a layer, a column each."""
    columns = [*INSTRUMENTS, *OUTCOMES]
    grid = np.array([mean_ranks(scores[name]) for name in columns]).T
    order = np.argsort(-grid[:, columns.index("rate")], kind="stable")
    fig, ax = plt.subplots(figsize=(8.0, 8.4))
    ax.imshow(grid[order], cmap="Greys", vmin=0, vmax=1.25, aspect="auto")
    words = [words for _, words in INSTRUMENTS.values()] + list(OUTCOMES.values())
    ax.set_xticks(range(len(columns)), words, rotation=55, ha="left", fontsize=9, rotation_mode="anchor")
    ax.set_yticks(range(len(TABLE)), [list(TABLE.values())[k].words for k in order], fontsize=9)
    ax.xaxis.tick_top()
    ax.axvline(len(INSTRUMENTS) - 0.5, color=COLORS["theory"], linewidth=1.5)
    ax.grid(visible=False)
    return fig


def scatter(drawn: Mapping[str, np.ndarray]) -> plt.Figure:
    """Largest usable rate against far smoothness and the readout's critical rate, (S, K) each, geometric means."""
    fig, axes = plt.subplots(1, 2, figsize=(8.6, 4.4), sharey=True)
    middle = {name: np.exp(np.log(values).mean(axis=0)) for name, values in drawn.items()}
    for ax, name, words in zip(
        axes, ("far", "readout"), ("change of the gradient 16η away", "readout's critical rate")
    ):
        numbers = middle[name][np.isfinite(middle[name])]
        least, most = numbers.min(), numbers.max()
        for place, (key, one) in enumerate(TABLE.items()):
            ink = COLORS["batch"] if key == "batch" else COLORS["none"] if key == "none" else COLORS["theory"]
            x, y = middle[name][place], middle["rate"][place]
            if not np.isfinite(x):
                continue
            ax.plot(
                x,
                y,
                "o" if one.meet else "s",
                color=ink,
                markersize=5,
                fillstyle="full" if one.meet else "none",
            )
            if key in NAMED:
                left = np.log(x) > (np.log(least) + np.log(most)) / 2  # of its point, in the right half
                where = {"ha": "right" if left else "left", "va": "center", "fontsize": 8, "color": ink}
                ax.annotate(NAMED[key], (x, y), (-6 if left else 6, 0), textcoords="offset points", **where)
        ax.set(xscale="log", yscale="log", xlabel=words)
    axes[0].set_ylabel("largest usable rate")
    axes[0].plot([], [], "o", color=COLORS["theory"], label="examples meet")
    axes[0].plot([], [], "s", color=COLORS["theory"], fillstyle="none", label="they do not")
    axes[0].legend(loc="lower left", fontsize=8.5)
    return fig
