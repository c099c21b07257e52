"""Further figures on the deep linear network: what a layer puts out, and how all hangs on rate and depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.deep_linear import PAIR, PAPER
from bnbook.plots.line_names.marks import marks
from bnbook.plots.line_names.places import letters
from bnbook.plots.panels import FANS, legend_below, without_minor_ticks
from bnbook.studies.deep_linear.plan import tag

Curves = Mapping[str, np.ndarray]
LINES = ("-", "--", ":", "-.", (0, (6, 1)))
#: Mark and colour of a verdict in the map.
MARKS = {
    "reproduced": ("+", COLORS["corrected"]),
    "yes": ("+", COLORS["corrected"]),
    "not reproduced": ("−", COLORS["wrong"]),
    "no": ("−", COLORS["wrong"]),
    "mixed": ("±", COLORS["part"]),
    "partly refuted, rest open": ("∓", COLORS["part"]),
    "open": ("?", COLORS["printed"]),
    "diverged": ("", COLORS["grid"]),
}


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
            if norm == "none":
                words = f"paper: σ around {printed.SIGMA:g}" if place == 0 else ""
                marks(ax, y={words: printed.SIGMA})
                marks(ax, y={"": -printed.SIGMA})
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
            mark, shade = MARKS[word]
            ax.add_patch(plt.Rectangle((column - 0.46, row - 0.44), 0.92, 0.88, color=shade))
            ax.text(column, row, mark, color="white", ha="center", va="center", fontsize=10)
    ax.set(xlim=(-0.5, len(rates) - 0.5), ylim=(max(1, len(words)) - 0.5, -0.5), xlabel="learning rate")
    names = [power(rate) + ("\npaper's" if rate == PAPER else "") for rate in rates]
    ax.set_xticks(range(len(rates)), names, fontsize=letters(ax))
    ax.set_yticks(range(len(words)), [_spoken(each) for each in words], fontsize=letters(ax))
    ax.grid(False)
    ax.minorticks_off()
    return fig


def _spoken(claim: str) -> str:
    """dln-plain-almost-no-ics -> plain almost no shift."""
    known = {"ics": "shift", "sigma": "σ", "beta": "β"}
    return " ".join(known.get(word, word) for word in claim.removeprefix("dln-").split("-"))


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
        marks(ax, x=printed.LINEAR_RATE, y={"equal": 1.0})
        finite = [rate for rate, value in zip(rates, middle) if 1e-8 < value < 1e12] or rates
        ax.set(xscale="log", yscale="log", title=title, xlim=(finite[0] / 2, finite[-1] * 2))
        bottom, top = ax.get_ylim()
        ax.set_ylim(max(bottom, 1e-8), min(top, 1e12))
    for ax in axes[:, 0]:
        ax.set_ylabel("without / with batch norm")
    for ax in axes[-1]:
        ax.set_xlabel("learning rate")
    return without_minor_ticks(fig)


def by_depth(curves: Curves, rates: Sequence[float], depths: Sequence[int]) -> plt.Figure:
    """Final loss, cosine and curvature against the number of layers, a line a rate."""
    titles = {"final_loss": "final loss, share", "cosine": "cosine of G and G′", "edge": "curvature × η / 2"}
    fig, axes = plt.subplots(1, 3, figsize=(7.6, 3.3), sharex=True)
    for ax, (name, title) in zip(axes, titles.items()):
        for norm in PAIR:
            for rate, line in zip(rates, LINES):
                style = dict(linestyle=line, marker="o", markersize=3, color=COLORS[norm])
                label = f"{LABELS[norm]}, {power(rate)}"
                ax.plot(depths, curves[f"{name}.{tag(rate)}.{norm}"][0], label=label, **style)
        ax.set(xlabel="layers", title=title)
        ax.set_xticks(depths)
        marks(ax, x=printed.DEPTH)
        if name != "cosine":
            ax.set_yscale("log")
    legend_below(fig, axes[0], 2)
    return without_minor_ticks(fig)
