"""Figures of the chapter on residual networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, log_band
from bnbook.plots.axes import name_ticks

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
