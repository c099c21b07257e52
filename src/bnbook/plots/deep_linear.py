"""Figures of the chapter on the deep linear network along its learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.line_names.marks import marks
from bnbook.plots.line_names.places import letters
from bnbook.plots.panels import legend_below, line_with_band, without_minor_ticks
from bnbook.studies.deep_linear.plan import tag

Curves = Mapping[str, np.ndarray]
PAIR, PAPER = ("none", "batch"), 1e-6
#: l2 normalization runs on batch norm's very curve: dashed, it leaves that visible; the others are like it.
ON_ANOTHER = {"l2": (0, (3, 3)), "l1": (0, (4, 2)), "linf": (0, (4, 2))}


def losses(curves: Curves, best: Mapping[str, float]) -> plt.Figure:
    """Loss over the training: left at the paper's rate, right each norm at its best."""
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    for norm, rate in best.items():
        labels = (LABELS[norm], f"{LABELS[norm]}, {power(rate)}")
        for ax, name, label in zip(axes, ("paper", "best"), labels):
            style = dict(color=COLORS[norm], label=label, linestyle=ON_ANOTHER.get(norm, "-"))
            line_with_band(ax, curves["step"][0], curves[f"{name}.{norm}"], **style)
    for ax, title in zip(axes, (f"at the paper's rate, {power(PAPER)}", "each at its best rate")):
        ax.set(xscale="log", yscale="log", title=title, xlabel="training step", ylim=(0.01, 3))
        ax.legend(loc="lower left", fontsize=letters(ax))
    axes[0].set_ylabel("loss, share of answering zero")
    return without_minor_ticks(fig)


def by_rate(curves: Curves, rates: Mapping[str, Sequence[float]]) -> plt.Figure:
    """Above the final loss, below the share that diverged, against the rate."""
    fig, axes = plt.subplots(2, 1, figsize=(6.8, 5.2), sharex=True, height_ratios=(1.7, 1))
    for norm, own in rates.items():
        style = dict(color=COLORS[norm], label=LABELS[norm], marker="o", markersize=3.5)
        style["linestyle"] = ON_ANOTHER.get(norm, "-")
        if norm in ("l1", "linf"):
            axes[0].plot(own, curves[f"loss.{norm}"][0, 1], **style)
        else:
            line_with_band(axes[0], np.array(own), curves[f"loss.{norm}"], **style)
        axes[1].plot(own, curves[f"diverged.{norm}"][0], **style)
    for ax in axes:
        marks(ax, x=printed.LINEAR_RATE | printed.DIVERGES)
    axes[0].set(xscale="log", yscale="log", ylabel="final loss, share")
    axes[0].set_title("Which learning rate leaves the least, and which diverges?")
    legend_below(fig, axes[0], 3)
    axes[1].set(ylabel="diverged", xlabel="learning rate", ylim=(-0.05, 1.05))
    return without_minor_ticks(fig)


def plateaus(curves: Curves, rates: Sequence[float]) -> plt.Figure:
    """Left, directions fitted by rate, a cross off every plateau; right, what is left of each direction."""
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.4))
    for norm in PAIR:
        rank, near, left = (np.asarray(curves[f"{name}.{norm}"]) for name in ("rank", "near", "left"))
        apart = (0.07 if norm == "batch" else -0.07) + 0.05 * np.linspace(-1, 1, len(rank))
        for column, rate in enumerate(rates):
            style = dict(color=COLORS[norm], alpha=0.6, markersize=4)
            x, on = np.log10(rate) + apart, near[:, column] == 1
            dot = dict(marker="o", label=LABELS[norm]) if rate == PAPER else dict(marker=".")
            axes[0].plot(x, np.where(on, rank[:, column], np.nan), linestyle="none", **dot, **style)
            axes[0].plot(x, np.where(on, np.nan, rank[:, column]), "x", **style)
        directions = np.arange(1, left.shape[1] + 1)
        axes[1].plot(directions, left.T, ".", color=COLORS[norm], alpha=0.35, markersize=4)
        axes[1].plot(directions, np.nanmedian(left, axis=0), color=COLORS[norm], label=LABELS[norm])
    axes[0].set(xlabel="log₁₀ of the learning rate", ylabel="directions fitted, k", ylim=(-0.5, 9.5))
    axes[1].set(xlabel="singular direction of A, strongest first", ylabel="share of it left", ylim=(0, 3))
    axes[1].set_yscale("symlog", linthresh=1e-3)
    marks(axes[0], x={name: np.log10(rate) for name, rate in printed.LINEAR_RATE.items()})
    axes[0].set_title("How many directions are fitted?", fontsize=10.5)
    axes[1].set_title(f"What is left of each at {power(PAPER)}?", fontsize=10.5)
    for ax in axes:
        ax.legend(fontsize=letters(ax))
    return without_minor_ticks(fig)


def covariate_shift(curves: Curves, steps: np.ndarray, rates: Sequence[float]) -> plt.Figure:
    """Cosine and relative difference over the training, and cosine by layer; a column a rate."""
    fig, axes = plt.subplots(3, len(rates), figsize=(7.4, 6.4), sharey="row", squeeze=False)
    x = np.maximum(steps, 0.7)
    for column, rate in zip(axes.T, rates):
        for norm in PAIR:
            style, arm = dict(color=COLORS[norm], label=LABELS[norm]), f"{tag(rate)}.{norm}"
            line_with_band(column[0], x, curves[f"cosine.{arm}"], **style)
            line_with_band(column[1], x, curves[f"relative_shift.{arm}"], **style)
            layers = np.arange(1, curves[f"layer.{arm}"].shape[2] + 1)
            line_with_band(column[2], layers, curves[f"layer.{arm}"], **style)
        column[0].set(xscale="log", ylim=(-1.3, 1.8))
        column[0].set_title(f"learning rate {power(rate)}", fontsize=10.5)
        marks(column[0], y=printed.LINEAR_SHIFT if rate == PAPER else None)
        column[1].set(xscale="log", yscale="log", xlabel="training step")
        column[2].set(xlabel="layer", ylim=(-1.05, 1.05))
    for ax, label in zip(axes[:, 0], ("cosine of G and G′", "‖G − G′‖ / ‖G‖", "cosine, by layer")):
        ax.set_ylabel(label)
    axes[0, 0].legend(fontsize=letters(axes[0, 0]), loc="lower left")
    return without_minor_ticks(fig)


def landscape(curves: Curves, steps: np.ndarray, rates: Sequence[float]) -> plt.Figure:
    """Range of the loss, change of the gradient and β over the training, a row a rate; dashed: 2/η."""
    titles = {
        "loss_range": "range of the loss (share)",
        "gradient_change": "change of the gradient",
        "smoothness": "effective β",
    }
    fig, axes = plt.subplots(len(rates), 3, figsize=(7.6, 2.4 * len(rates)), sharex=True, squeeze=False)
    x = np.maximum(steps, 0.7)
    for row, rate in zip(axes, rates):
        for ax, (name, title) in zip(row, titles.items()):
            for norm in PAIR:
                line_with_band(
                    ax, x, curves[f"{name}.{tag(rate)}.{norm}"], color=COLORS[norm], label=LABELS[norm]
                )
                if name == "smoothness":
                    ax.plot(x, curves[f"local.{tag(rate)}.{norm}"][0, 1], ":", color=COLORS[norm])
            ax.set(xscale="log", yscale="log", title=title if rate == rates[0] else None)
            usual = curves[f"{name}.{tag(rate)}.batch"][0, 1]
            usual = usual[np.isfinite(usual) & (usual > 0)]
            if len(usual):  # a plain network that is about to diverge would need all of the axis
                low, high = ax.get_ylim()
                ax.set_ylim(max(low, usual.min() / 1e4), min(high, usual.max() * 1e8))
        marks(row[2], y={"2 / η": 2 / rate})
        row[0].set_ylabel(f"learning rate {power(rate)}")
    for ax in axes[-1]:
        ax.set_xlabel("training step")
    legend_below(fig, axes[0, 2], 2)
    return without_minor_ticks(fig)
