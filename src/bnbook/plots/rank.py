"""Figures of the chapter on how different inputs stay."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, log_band
from bnbook.plots.panels import legend_below

#: Norm -> words and ink.
LINES = {
    "batch": ("batch norm", COLORS["batch"]),
    "division": ("division alone", COLORS["apart"]),
    "layer": ("layer norm", COLORS["layer"]),
    "none": ("none", COLORS["none"]),
}


def by_depth(examples: int, curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """Soft rank against the layer, a panel for each activation, "ACTIVATION.NORM" (S, L): means and bands."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.7), sharey=True)
    for ax, (activation, title) in zip(axes, (("linear", "linear units"), ("relu", "rectifiers"))):
        for norm, (words, ink) in LINES.items():
            values = curves[f"{activation}.{norm}"]
            style = dict(color=ink, label=words, linestyle="--" if norm == "layer" else "-")
            log_band(ax, np.arange(1, values.shape[1] + 1), values, **style)
        ax.axhline(examples, color=COLORS["grid"], linewidth=1)
        ax.set(xscale="log", yscale="log", xlabel="layer", title=title)
    axes[0].set_ylabel(f"soft rank, of {examples} examples")
    legend_below(fig, axes[1], 4)
    return fig


def gaps(curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """Orthogonality gap against the layer, "w64" … (S, L), wider networks in fuller ink: means and bands."""
    fig, ax = plt.subplots(figsize=(6.8, 3.7))
    for place, (name, values) in enumerate(curves.items()):
        full = (place + 1) / len(curves)
        x = np.arange(1, values.shape[1] + 1)
        log_band(ax, x, values, color=COLORS["apart"], alpha=full, label=f"{name[1:]} units")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="layer",
        ylabel="orthogonality gap",
        title="Division alone, linear units",
    )
    ax.legend(fontsize=9.5)
    return fig
