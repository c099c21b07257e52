"""Figures of the chapter on residual networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS, log_band
from bnbook.plots.axes import name_ticks, points

#: Recipe -> ink, dash and words: what has no batch norm has one ink, whatever it has in its place.
RECIPES = {
    "batch": ("batch", "-", "batch norm"),
    "plain": ("none", "-", "nothing"),
    "halved": ("none", "--", r"sum over $\sqrt{2}$"),
    "scaled": ("none", ":", r"branch times $1/\sqrt{L}$"),
}


def starts(curves: Mapping[str, np.ndarray], laws: Mapping[str, np.ndarray]) -> plt.Figure:
    """By block the mean square of the skip, "square.NAME" (S, L), and the branch's share, "share.NAME", with laws."""
    fig, axes = plt.subplots(1, 2, figsize=(8.0, 3.9))
    for ax, what in zip(axes, ("square", "share")):
        for name, (ink, dash, words) in RECIPES.items():
            values = curves[f"{what}.{name}"]
            blocks = np.arange(1, values.shape[1] + 1)
            log_band(ax, blocks, values, color=COLORS[ink], linestyle=dash, label=words)
            style = {"color": COLORS["theory"], "linewidth": 0.8, "zorder": 1}
            ax.plot(blocks, laws[f"{what}.{name}"], **style)
        ax.set(xscale="log", yscale="log", xlabel="block")
        name_ticks(ax.set_xticks, [place for place in (1, 2, 4, 8, 16, 32) if place <= blocks[-1]])
    name_ticks(axes[1].set_yticks, (0.02, 0.05, 0.1, 0.2, 0.5))
    axes[0].set(ylabel="mean square behind the block", title="what is passed on")
    axes[1].set(ylabel="of it the branch's", title="share of the branch")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9.5)
    return fig


def best_rates(sizes: Sequence[int], curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """The best learning rate by batch size, "batch" and "skipinit" (S, sizes)."""
    fig, ax = plt.subplots(figsize=(6.0, 3.6))
    for name, (ink, dash, words) in {
        "batch": ("batch", "-", "batch norm"),
        "skipinit": ("none", "--", "SkipInit"),
    }.items():
        log_band(
            ax, np.array(sizes), curves[name], color=COLORS[ink], linestyle=dash, marker="o", label=words
        )
    ax.set(xscale="log", yscale="log", xlabel="batch size", ylabel="best learning rate")
    name_ticks(ax.set_xticks, sizes)
    ax.legend(loc="upper left", fontsize=9.5)
    return fig


#: Recipe of a trained network -> ink, dash and words.
TRAINED = {
    "batch": ("batch", "-", "batch norm"),
    "zero": ("batch", "--", r"batch norm, last $\gamma=0$"),
    "skipinit": ("none", "--", r"SkipInit, $\alpha=0$"),
    "scaled": ("none", ":", r"SkipInit, $\alpha=1/\sqrt{L}$"),
    "halved": ("none", "-.", r"sum over $\sqrt{2}$"),
    "plain": ("none", "-", "nothing"),
}


def by_depth(depths: Sequence[int], rates: Sequence[float], found: Mapping[str, np.ndarray]) -> plt.Figure:
    """Test accuracy by learning rate, "NAME.dDEPTH" (S, rates), a panel for each depth."""
    fig, axes = plt.subplots(1, len(depths), figsize=(8.0, 4.2), sharey=True, squeeze=False)
    for ax, depth in zip(axes[0], depths):
        for name, (ink, dash, words) in TRAINED.items():
            style = {"color": COLORS[ink], "linestyle": dash, "label": words}
            points(ax, rates, 100 * found[f"{name}.d{depth}"], "o", **style)
        ax.axhline(20, color=COLORS["theory"], linewidth=0.8)
        ax.set(xscale="log", xlabel="learning rate", title=f"{depth} blocks")
        name_ticks(ax.set_xticks, rates)
    axes[0, 0].set_ylabel("test accuracy (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


#: Network of the far gradients -> ink, mark and place on the axis.
FOLLOWED = {
    "chain.none": ("none", 0.9, "no skip"),
    "chain.batch": ("batch", 1.1, "no skip"),
    "sum.none": ("none", 1.9, "skip"),
    "sum.batch": ("batch", 2.1, "skip"),
    "skipinit.none": ("none", 3.0, "SkipInit"),
}


def far(found: Mapping[str, np.ndarray]) -> plt.Figure:
    """How wrong a gradient is 16 learning rates on, "NETWORK.NORM" (S,), a dot for each seed."""
    fig, ax = plt.subplots(figsize=(6.0, 3.4))
    for name, (ink, place, _) in FOLLOWED.items():
        values = found[name]
        style = {"color": COLORS[ink], "markersize": 4.5, "alpha": 0.8}
        label = LABELS[ink] if name.startswith("chain") else None
        ax.plot(np.full(len(values), place), values, "o", label=label, **style)
    ax.set(yscale="log", xlim=(0.5, 3.5), ylabel="change of the gradient, over itself")
    ax.set_xticks(
        [1, 2, 3], labels=[FOLLOWED[name][2] for name in ("chain.none", "sum.none", "skipinit.none")]
    )
    ax.legend(loc="upper right", fontsize=9.5)
    return fig
