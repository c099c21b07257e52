"""What can stand in for it, and what predicts? Names of the layers, instruments and outcomes of the page, and its
figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import rankdata

from bnbook.figures import COLORS, points_of
from bnbook.plots.layout import is_narrow, subplots
from bookpress.results import Results

#: Layer -> words, in the order of all results.
TABLE = {
    "none": "nothing",
    "small": "nothing, first weights × 0.7",
    "large": "nothing, first weights × 1.4",
    "batch": "batch norm",
    "frozen": "batch norm, γ and β fixed",
    "after": "batch norm behind the rectifier",
    "first": "batch norm in the first layer alone",
    "last": "batch norm in the last hidden layer alone",
    "mean": "batch mean alone",
    "variance": "batch variance alone",
    "l1": "ℓ1 over the batch",
    "l2": "ℓ2 over the batch",
    "linf": "ℓ∞ over the batch",
    "shaken_half": "batch norm, shaken × ½",
    "shaken": "batch norm, shaken",
    "shaken_twice": "batch norm, shaken × 2",
    "layer": "layer norm",
    "layer_after": "layer norm behind the rectifier",
    "group2": "group norm, 2 groups",
    "group8": "group norm, 8 groups",
    "rms": "RMS norm",
    "weight": "weight norm",
    "standardized": "weight standardization",
    "tanh_half": "tanh(z/2)",
    "tanh_two": "tanh(2z)",
}
#: Those in which an example is answered by itself: no relative of batch norm's.
ALONE = ("none", "small", "large", *list(TABLE)[list(TABLE).index("layer") :])
#: Instrument -> sign with which a larger score promises more, and words.
INSTRUMENTS = {
    "far": (-1, "far smoothness, 16η"),
    "near": (-1, "near smoothness, η/20"),
    "beta": (-1, "effective β"),
    "range": (-1, "range of the loss"),
    "shift_distance": (-1, "covariate shift, distance"),
    "shift_cosine": (1, "covariate shift, cosine"),
    "drift_mean": (-1, "drift of means"),
    "drift_spread": (-1, "drift of variances"),
    "growth": (-1, "gradient growth, start"),
    "curvature": (-1, "largest curvature, start"),
    "length": (1, "growth of the weights"),
    "readout": (1, "readout's critical rate"),
}
#: Larger is better in each.
OUTCOMES = {"rate": "largest usable rate", "speed": "training speed", "accuracy": "test accuracy"}
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
RAISED = {"variance": 7, "mean": -4, "layer": -6}  # points, for names that would meet
#: Whose names meet one another on a phone; the tables have them.
CROWDED = ("small", "mean", "variance", "layer")
#: What else is too long there for its row.
SHORT = {
    "small": "nothing × 0.7",
    "large": "nothing × 1.4",
    "frozen": "γ, β fixed",
    "after": "behind ReLU",
    "first": "batch norm, first",
    "last": "batch norm, last",
    "mean": "mean alone",
    "variance": "variance alone",
    "l1": "ℓ1",
    "l2": "ℓ2",
    "linf": "ℓ∞",
    "shaken_half": "shaken × ½",
    "shaken": "shaken",
    "shaken_twice": "shaken × 2",
    "layer_after": "layer, behind",
    "group2": "2 groups",
    "group8": "8 groups",
    "standardized": "standardized",
}


def mean_ranks(values: np.ndarray) -> np.ndarray:
    """(S, K) -> (K,): ranks from 0 to 1 of each seed, what is no number last; mean over the seeds."""
    ranks = np.array([rankdata(np.where(np.isfinite(row), row, -np.inf)) for row in values])
    return (ranks.mean(axis=0) - 1) / (values.shape[1] - 1)


def ranks(results: Results) -> plt.Figure:
    """Ranks by each instrument and outcome: a row a layer, a column each."""
    found, columns = points_of(results, "ranks"), [*INSTRUMENTS, *OUTCOMES]
    grid = np.array([mean_ranks(found[f"score_{name}"]) for name in columns]).T
    order = np.argsort(-grid[:, columns.index("rate")], kind="stable")
    fig, ax = subplots(figsize=(8.0, 8.4))
    ax.imshow(grid[order], cmap="Greys", vmin=0, vmax=1.25, aspect="auto")
    words = [words for _, words in INSTRUMENTS.values()] + list(OUTCOMES.values())
    ax.set_xticks(range(len(columns)), words, rotation=55, ha="left", fontsize=9, rotation_mode="anchor")
    names = [*(TABLE | (SHORT if is_narrow() else {})).values()]
    ax.set_yticks(range(len(TABLE)), [names[k] for k in order], fontsize=9)
    ax.xaxis.tick_top()
    ax.axvline(len(INSTRUMENTS) - 0.5, color=COLORS["theory"], linewidth=1.5)
    ax.grid(visible=False)
    return fig


def scatter(results: Results) -> plt.Figure:
    """Largest usable rate against far smoothness and the readout's critical rate, geometric means."""
    drawn = {k: np.exp(np.log(v).mean(axis=0)) for k, v in points_of(results, "scatter").items()}
    fig, axes = subplots(1, 2, figsize=(8.6, 4.4), sharey=True)
    words = {"far": "change of the gradient 16η away", "readout": "readout's critical rate"}
    for ax, name in zip(axes, words):
        numbers = drawn[name][np.isfinite(drawn[name])]
        middle = (np.log(numbers.min()) + np.log(numbers.max())) / 2
        for key, x, y in zip(TABLE, drawn[name], drawn["rate"]):
            if not np.isfinite(x):
                continue
            ink = COLORS[key if key in ("none", "batch") else "theory"]
            look = ("s", "none") if key in ALONE else ("o", "full")
            ax.plot(x, y, look[0], color=ink, markersize=5, fillstyle=look[1])
            if key in NAMED and not (is_narrow() and key in CROWDED):
                left = np.log(x) > middle  # of its point, in the right half
                where = {"ha": "right" if left else "left", "va": "center", "fontsize": 8, "color": ink}
                off = (-6 if left else 6, RAISED.get(key, 0))
                ax.annotate(NAMED[key], (x, y), off, textcoords="offset points", **where)
        ax.set(xscale="log", yscale="log", xlabel=words[name])
    axes[0].set_ylabel("largest usable rate")
    axes[0].plot([], [], "o", color=COLORS["theory"], label="examples meet")
    axes[0].plot([], [], "s", color=COLORS["theory"], fillstyle="none", label="they do not")
    axes[0].legend(loc="lower left", fontsize=8.5)
    return fig
