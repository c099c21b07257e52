"""Further figures on the deep linear network: what a layer puts out, and how all hangs on rate and depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots.deep_linear import DASHED, PAIR, PAPER, tag
from bnbook.plots.panels import FANS

Curves = Mapping[str, np.ndarray]
LINES = ("-", "--", ":", "-.", (0, (6, 1)))
#: Mark and colour of a verdict in the map.
MARKS = {
    "reproduced": ("+", COLORS["corrected"]),
    "not reproduced": ("−", COLORS["wrong"]),
    "mixed": ("±", COLORS["noise"]),
    "at most partly": ("∓", COLORS["noise"]),
    "diverged": ("", COLORS["grid"]),
}
OPEN = ("?", COLORS["printed"])


def activations(curves: Curves, steps: np.ndarray, layers: Sequence[int]) -> plt.Figure:
    """Fans of quantiles NORM (1, P, len(layers), 7) of one unit's output, a row a norm, a column a layer."""
    fig, axes = plt.subplots(2, len(layers), figsize=(7.6, 4.2), sharex=True, sharey="row", squeeze=False)
    x = np.maximum(steps, 0.7)
    for row, norm in zip(axes, PAIR):
        for place, (ax, layer) in enumerate(zip(row, layers)):
            spread = np.asarray(curves[norm])[0, :, place]
            for a, b, opacity in FANS:
                style = dict(color=COLORS[norm], alpha=opacity, linewidth=0)
                ax.fill_between(x, spread[:, a], spread[:, b], **style)
            ax.plot(x, spread[:, 3], color=COLORS["theory"], linewidth=1)
            ax.set(xscale="log", title=f"layer {layer}" if norm == "none" else None)
        row[0].set_ylabel(LABELS[norm])
    for ax in axes[-1]:
        ax.set_xlabel("training step")
        ax.minorticks_off()
    return fig


def verdicts(words: Mapping[str, Sequence[str]], rates: Sequence[float]) -> plt.Figure:
    """A row a claim, a column a rate, a mark a verdict."""
    fig, ax = plt.subplots(figsize=(7.4, 0.9 + 0.3 * max(1, len(words))))
    for row, found in enumerate(words.values()):
        for column, word in enumerate(found):
            mark, shade = MARKS.get(word, OPEN)
            ax.add_patch(plt.Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, color=shade))
            ax.text(column, row, mark, color="white", ha="center", va="center", fontsize=10)
    ax.set(xlim=(-0.5, len(rates) - 0.5), ylim=(max(1, len(words)) - 0.5, -0.5), xlabel="learning rate")
    ax.set_xticks(range(len(rates)), [f"{rate:.0e}" for rate in rates], fontsize=8, rotation=30)
    ax.set_yticks(range(len(words)), [each.removeprefix("dln-") for each in words], fontsize=8.5)
    ax.grid(False)
    ax.get_xticklabels()[list(rates).index(PAPER)].set_fontweight("bold")
    ax.minorticks_off()
    return fig


def effects(curves: Curves, rates: Sequence[float]) -> plt.Figure:
    """Without over with batch norm by rate, a panel a measure; hollow: most plain networks diverged."""
    titles = {
        "final_loss": "final loss",
        "loss_range": "range of the loss",
        "gradient_change": "change of gradient",
        "smoothness": "effective β",
    }
    fig, axes = plt.subplots(2, 2, figsize=(7.4, 5.0), sharex=True)
    for ax, (name, title) in zip(axes.flat, titles.items()):
        low, middle, high = np.clip(np.asarray(curves[name])[0], 1e-30, 1e30)
        ax.vlines(rates, low, high, color=COLORS["theory"], linewidth=1)
        for rate, value, hollow in zip(rates, middle, np.asarray(curves["hollow"])[0]):
            face = "white" if hollow else COLORS["theory"]
            ax.plot(rate, value, "o", color=COLORS["theory"], markerfacecolor=face, markersize=4)
        ax.axhline(1, color=COLORS["theory"], linewidth=0.8, linestyle=DASHED)
        ax.set(xscale="log", yscale="log", title=title, xlim=(rates[0] / 2, rates[-1] * 2))
        bottom, top = ax.get_ylim()
        ax.set_ylim(max(bottom, 1e-8), min(top, 1e12))
        ax.minorticks_off()
    for ax in axes[:, 0]:
        ax.set_ylabel("without / with batch norm")
    for ax in axes[-1]:
        ax.set_xlabel("learning rate")
    return fig


def by_depth(curves: Curves, rates: Sequence[float], depths: Sequence[int]) -> plt.Figure:
    """Final loss, cosine and curvature against the number of layers, a line a rate."""
    titles = {"final_loss": "final loss, share", "cosine": "cosine of G and G′", "edge": "curvature × η / 2"}
    fig, axes = plt.subplots(1, 3, figsize=(7.6, 3.3), sharex=True)
    for ax, (name, title) in zip(axes, titles.items()):
        for norm in PAIR:
            for rate, line in zip(rates, LINES):
                style = dict(linestyle=line, marker="o", markersize=3, color=COLORS[norm])
                label = f"{LABELS[norm]}, {rate:.0e}"
                ax.plot(depths, curves[f"{name}.{tag(rate)}.{norm}"][0], label=label, **style)
        ax.set(xlabel="layers", title=title)
        ax.set_xticks(depths)
        if name != "cosine":
            ax.set_yscale("log")
        ax.minorticks_off()
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8.5)
    return fig
