"""Figures of the chapter on weight decay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, log_band
from bnbook.plots.axes import name_ticks, points, power

DASHES = ("-", "--", ":")  # of the learning rates, the smallest first


#: What a pair of recipes is trained with -> ink, dash and words: batch norm has one ink, whatever its ε.
PAIRS = {
    "batch": ("batch", "-", r"batch norm, $\varepsilon=0$"),
    "eps": ("batch", "--", r"$\varepsilon=10^{-5}$"),
    "none": ("none", "-", "without batch norm"),
}


def pairs(found: Mapping[str, np.ndarray]) -> plt.Figure:
    """How far answers are apart by step: "schedule.NORM" and "scaled.NORM" (S, T), a line for each seed."""
    fig, axes = plt.subplots(1, 2, figsize=(8.0, 3.6), sharey=True)
    titles = {
        "schedule": "decay, or a growing rate",
        "scaled": r"$(w,\eta,\lambda)$, or $(cw,c^2\eta,\lambda/c^2)$",
    }
    for ax, (kind, title) in zip(axes, titles.items()):
        for name, (ink, dash, words) in PAIRS.items():
            for place, row in enumerate(found[f"{kind}.{name}"]):
                style = {"color": COLORS[ink], "linestyle": dash, "linewidth": 1.0, "alpha": 0.8}
                ax.plot(np.maximum(row, 1e-17), label=words if place == 0 else None, **style)
        ax.axhline(1e-9, color=COLORS["theory"], linewidth=1, linestyle=":")
        ax.set(yscale="log", title=title, xlabel="step", ylim=(1e-17, 1e3))
    axes[0].set_ylabel("difference of the answers")
    handles, labels = axes[0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


def angles(
    steps: np.ndarray, rates: Sequence[float], products: Sequence[float], curves: Mapping[str, np.ndarray]
) -> plt.Figure:
    """Degrees a step, "with.pROW.eCOLUMN" and "without.pROW.eCOLUMN" (S, X), a dash for each rate."""
    fig, axes = plt.subplots(1, 2, figsize=(8.0, 4.2), sharey=True)
    middle = len(products) // 2
    for ax, (name, arm) in zip(axes, (("with", "batch"), ("without", "none"))):
        for row, product in enumerate(products):
            if name == "without" and row != middle:
                continue
            expected = np.degrees((2 * product) ** 0.5)
            for column, (rate, dash) in enumerate(zip(rates, DASHES)):
                label = rf"$\eta={rate:g}$" if row == middle else None
                values = curves[f"{name}.p{row}.e{column}"]
                log_band(ax, steps, values, color=COLORS[arm], linestyle=dash, label=label)
            ax.axhline(expected, color=COLORS["theory"], linewidth=1)
            words = {"textcoords": "offset points", "fontsize": 8.5, "va": "bottom", "ha": "left"}
            place = (steps[0], expected)
            ax.annotate(rf"$\eta\lambda=$ {power(product)}", place, (0, 2), color=COLORS["theory"], **words)
        ax.set(xscale="log", yscale="log", ylim=(0.03, 30), title=f"{name} batch norm", xlabel="step")
        ax.legend(loc="lower center", fontsize=8.5)
    axes[0].set_ylabel("degrees a step")
    return fig


def accuracy_by_product(products: Sequence[float], rates: Sequence[float], found: np.ndarray) -> plt.Figure:
    """Test accuracy (S, products, rates) in percent against ηλ, a line for each rate."""
    fig, ax = plt.subplots(figsize=(6.0, 3.6))
    for place, (rate, dash) in enumerate(zip(rates, DASHES)):
        style = {"color": COLORS["batch"], "linestyle": dash, "label": rf"$\eta={rate:g}$"}
        points(ax, products, 100 * found[:, :, place], "o", **style)
    ax.set(xscale="log", xlabel=r"$\eta\lambda$", ylabel="test accuracy (%)")
    name_ticks(ax.set_xticks, products)
    ax.legend(loc="lower left", fontsize=8.5)
    return fig
