"""Does the theory survive convolutions? The figures."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import ARMS, THEORY, Curves
from bnbook.figures import COLORS, LABELS, mean_and_interval
from bnbook.plots.axes import name_ticks, points


def shares(titles: dict[str, str], curves: Curves) -> plt.Figure:
    """Shares f_l of the bound, a panel for each set: "SET.NORM.measured" (S, L), "SET.NORM.printed" (any,
    L)."""
    panels = {"figsize": (4.0 * len(titles) + 0.6, 3.6), "sharey": True, "squeeze": False}
    fig, axes = plt.subplots(1, len(titles), **panels)
    for ax, (name, title) in zip(axes[0], titles.items()):
        for norm, shift in (("none", -0.2), ("batch", 0.2)):
            mean, half = mean_and_interval(curves[f"{name}.{norm}.measured"])
            layers = np.arange(1, len(mean) + 1)
            for equations, mark in (("printed", "_"), ("corrected", "x")):
                line = curves[f"{name}.{norm}.{equations}"].mean(axis=0)
                label = equations if norm == "none" else None
                ax.plot(layers + shift, line, mark, markersize=11, markeredgewidth=1.6, label=label, **THEORY)
            style = {"color": COLORS[norm], "alpha": 0.8, "capsize": 2, "label": LABELS[norm]}
            ax.bar(layers + shift, mean, 0.36, yerr=half, **style)
        ax.set(yscale="log", xlabel="layer $l$", title=title, xticks=layers)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9.5)
    shown = np.concatenate([np.ravel(values) for values in curves.values()])
    axes[0, 0].set_ylim(0.5 * shown[shown > 0].min(), 2 * shown.max())
    axes[0, 0].set_ylabel("share $f_l$ of the bound")
    return fig


def error_by_width(multiples: Sequence[int], errors: Curves) -> plt.Figure:
    """Relative errors of single networks, (S, multiples) by norm."""
    fig, ax = plt.subplots(figsize=(6.4, 3.3))
    for norm in ARMS:
        points(ax, multiples, errors[norm], "o-", markersize=6, color=COLORS[norm], label=LABELS[norm])
    ax.set(xscale="log", yscale="log", xlabel="channels, multiples of the paper's")
    ax.set_ylabel("relative error of one network")
    name_ticks(ax.set_xticks, multiples)
    ax.legend()
    return fig
