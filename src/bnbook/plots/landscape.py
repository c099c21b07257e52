"""Figures of the chapter on the landscape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots.panels import line_with_band, without_minor_ticks

Curves = Mapping[str, np.ndarray]
PAIR = ("none", "batch")


def landscape(curves: Curves, steps: Sequence[int]) -> plt.Figure:
    """Left, from the smallest to the largest loss, low.NORM and high.NORM (1, P), their logarithms; then the
    change of the gradient and β, NAME.NORM (1, 3, P)."""
    fig, axes = plt.subplots(1, 3, figsize=(8.2, 3.3))
    x = np.asarray(steps) + 1  # the first probe has a place on a logarithmic axis
    for norm in PAIR:
        low, high = (np.exp(np.asarray(curves[f"{edge}.{norm}"])[0]) for edge in ("low", "high"))
        axes[0].fill_between(x, low, high, color=COLORS[norm], alpha=0.35, linewidth=0.8)
    for norm in (*PAIR, "noisy"):
        for ax, name in zip(axes[1:], ("gradient_change", "smoothness")):
            line_with_band(ax, x, curves[f"{name}.{norm}"], color=COLORS[norm], label=LABELS[norm])
    for ax, title in zip(axes, ("loss along the gradient", "change of the gradient", "effective β")):
        ax.set(xscale="log", yscale="log", title=title, xlabel="training step + 1")
    fig.legend(*axes[2].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return without_minor_ticks(fig)


def random_directions(curves: Curves, steps: Sequence[int]) -> plt.Figure:
    """Largest change of the loss and β along a random direction (random_NAME.NORM) and along the gradient,
    dotted (NAME.NORM)."""
    fig, axes = plt.subplots(1, 2, figsize=(7.2, 3.4))
    x = np.asarray(steps) + 1
    for ax, (name, title) in zip(
        axes, {"loss_change": "largest change of the loss", "smoothness": "effective β"}.items()
    ):
        for norm in PAIR:
            color = COLORS[norm]
            random, along = curves[f"random_{name}.{norm}"], curves[f"{name}.{norm}"]
            line_with_band(ax, x, random, color=color, label=f"{LABELS[norm]}, random")
            style = dict(color=color, linestyle=":", label=f"{LABELS[norm]}, gradient")
            line_with_band(ax, x, along, **style)
        ax.set(xscale="log", yscale="log", title=title, xlabel="training step + 1")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8.5)
    return without_minor_ticks(fig)
