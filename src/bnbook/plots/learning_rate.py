"""Figures of the chapter on the critical learning rate: where trainings break, and where theories say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS
from bnbook.plots.axes import in_factors, in_powers
from bnbook.plots.critical_rate import NETS, SETS, Panels

Curves = Mapping[str, np.ndarray]
LINES = {
    "from0": ("paper: η* as printed", "--", COLORS["printed"]),
    "from1": ("paper: η* as printed, from 1", "-.", COLORS["printed"]),
    "corrected": ("corrected", "-", COLORS["corrected"]),
    "through_batch": ("through the batch", ":", COLORS["theory"]),
}
MARKS = {
    "from0": ("paper: η* as printed", "o", COLORS["printed"]),
    "corrected": ("corrected", "s", COLORS["corrected"]),
    "through_batch": ("through the batch", "D", COLORS["theory"]),
    "own": ("its own largest eigenvalue", "1", COLORS["theory"]),
    "readout": ("its own readout", "*", COLORS["theory"]),
}
ORDERS = 3  # decades of η over which "the theory matches the experiments": caption of the paper's Figure 2


def titles(panels: Panels) -> dict[str, str]:
    """What names end in -> network and set in words."""
    return {suffix: f"{NETS[net]}, {SETS.get(name, name)}" for (name, net), suffix in panels.items()}


def grid(panels: Panels) -> tuple[plt.Figure, dict[str, plt.Axes]]:
    """A row for each set, a panel for each network, titled; what names end in -> its axes."""
    rows = -(-len(panels) // 2)
    fig, axes = plt.subplots(rows, 2, figsize=(7.8, 3.2 * rows + 0.5), sharex=True, squeeze=False)
    for ax in axes[-1]:
        ax.set_xlabel(r"$\gamma$")
    for ax in axes[:, 0]:
        ax.set_ylabel(r"learning rate $\eta$")
    for ax in axes.flat:
        in_powers(ax.yaxis)
    found = dict(zip(panels.values(), axes.ravel()))
    for suffix, words in titles(panels).items():
        found[suffix].set_title(words, fontsize=10.5)
    return fig, found


def boundary(panels: Panels, gammas: Sequence[float], measured: Curves, curves: Curves) -> plt.Figure:
    """log10 of critical rates against γ: measured P (S, γ); curves "gamma" and "LINE.P" (1, fine)."""
    fig, axes = grid(panels)
    for suffix, ax in axes.items():
        for name, (words, dash, color) in LINES.items():
            if name != "from1" or "conv" in suffix:
                line = curves[f"{name}.{suffix}"][0]
                ax.plot(curves["gamma"][0], line, dash, color=color, label=words)
        found = measured[suffix]
        style = {"color": COLORS["batch"], "markersize": 4, "alpha": 0.7, "label": "measured"}
        ax.plot(np.tile(gammas, len(found)), found.ravel(), "o", **style)
        _orders(ax, found.max(), gammas[-1])
    handles, words = list(axes.values())[-1].get_legend_handles_labels()
    fig.legend(handles, words, loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


def _orders(ax: plt.Axes, top: float, last: float) -> None:
    """The orders of magnitude that the paper prints, as a scale right of the last γ, down from the largest
    rate."""
    style = {"color": COLORS["printed"], "linewidth": 1.0, "linestyle": (0, (4, 3)), "marker": "_"}
    ax.plot([1.06 * last] * 2, [top - ORDERS, top], **style)
    place = {"ha": "right", "va": "top", "color": COLORS["printed"], "fontsize": 9.5}
    ax.text(1.04 * last, top, "paper: three orders\nof magnitude", **place)


def offsets(panels: Panels, margin: float, curves: Curves) -> plt.Figure:
    """log10 of the measured over each predicted rate, "PREDICTION.P" (S,), a row a network and set."""
    fig, ax = plt.subplots(figsize=(7.2, 0.9 + 0.5 * len(panels)))
    ax.axvspan(-margin, margin, color="0.9")
    for row, suffix in enumerate(panels.values()):
        for place, (name, (words, mark, color)) in enumerate(MARKS.items()):
            values = curves[f"{name}.{suffix}"]
            height = np.full(len(values), -row - 0.12 * (place - 2))
            ax.plot(values, height, mark, color=color, markersize=5, label=words if row == 0 else None)
    ax.set_yticks([-row for row in range(len(panels))], list(titles(panels).values()))
    in_factors(ax.xaxis, (0.7, 1, 1.4, 2, 3, 4, 6, 10))
    ax.set_xlabel("measured over predicted critical rate")
    ax.set_title("Which prediction is nearest to where training breaks?")
    fig.legend(loc="outside lower center", ncols=3, fontsize=9.5)
    return fig


def hidden_alone(panels: Panels, curves: Curves) -> plt.Figure:
    """Loss by step, "all.P" and "hidden.P" (S, T), a line a restart, all of networks with batch norm."""
    rows = -(-len(panels) // 2)
    fig, axes = plt.subplots(
        rows, 2, figsize=(7.4, 2.5 * rows + 0.5), sharex=True, sharey=True, squeeze=False
    )
    arms = (("all", "all weights", "--"), ("hidden", "hidden weights alone", "-"))
    for ax, (suffix, title) in zip(axes.flat, titles(panels).items()):
        for name, words, dash in arms:
            style = {"color": COLORS["batch"], "linewidth": 1.2, "linestyle": dash}
            for place, loss in enumerate(curves[f"{name}.{suffix}"]):
                ax.plot(loss, label=words if place == 0 else None, **style)
        ax.set(yscale="log")
        ax.set_title(title, fontsize=10.5)
    for ax in axes[-1]:
        ax.set_xlabel("step")
    for ax in axes[:, 0]:
        ax.set_ylabel("loss")
    handles, words = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, words, loc="outside lower center", ncols=2, fontsize=9.5)
    return fig


def without_batch_norm(variances: Sequence[float], measured: np.ndarray, curves: Curves) -> plt.Figure:
    """log10 of critical rates (S, V) against σ_w²; curves "variance", "from0" and "corrected" (1, fine)."""
    fig, ax = plt.subplots(figsize=(6.2, 3.3))
    x = np.tile(variances, len(measured))
    ax.plot(x, measured.ravel(), "o", color=COLORS["none"], markersize=4, label="measured")
    for name in ("from0", "corrected"):
        words, dash, color = LINES[name]
        ax.plot(curves["variance"][0], curves[name][0], dash, color=color, label=words)
    ax.set(xlabel=r"variance of the first weights, $\sigma_w^2$", ylabel=r"learning rate $\eta$")
    in_powers(ax.yaxis)
    ax.set_title("Where does a network without batch norm break?")
    ax.legend(fontsize=9.5)
    return fig
