"""Figures of the chapter on division by other norms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots import printed
from bnbook.plots.axes import points, power
from bnbook.plots.line_names.marks import marks
from bnbook.plots.line_names.places import letters
from bnbook.plots.panels import legend_below, line_with_band, without_minor_ticks

Curves = Mapping[str, np.ndarray]
NAMES = LABELS | {"none": "no normalization", "batch": "batch norm"}
NORMS = ("none", "batch", "l1", "l2", "linf")


def division(curves: Curves, offsets: Sequence[float]) -> plt.Figure:
    """Average norm and deviation of the output by the input's mean: size.NORM, deviation.NORM (1, X)."""
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.0), sharex=True)
    titles = {"size": "average ℓp norm of the output", "deviation": "standard deviation of the output"}
    for ax, (name, title) in zip(axes, titles.items()):
        for norm in (norm for norm in NORMS if f"{name}.{norm}" in curves):
            ax.plot(offsets, curves[f"{name}.{norm}"][0], color=COLORS[norm], label=NAMES[norm])
        ax.set(title=title, xlabel="mean of the input, in standard deviations", ylim=(0, 1.35))
        ax.legend(fontsize=letters(ax))
    return fig


def performance(
    vgg: Curves, steps: Sequence[int], linear: Curves, linear_steps: Sequence[float], chance: float
) -> plt.Figure:
    """Left batch accuracy in per cent of the VGG network, right loss of the linear one: NORM (1, 3, X)."""
    fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.6))
    for ax, x, curves in zip(axes, (steps, linear_steps), (vgg, linear)):
        for norm in NORMS:
            line_with_band(ax, x, curves[norm], color=COLORS[norm], label=NAMES[norm])
        ax.set(xlabel="training step")
    axes[0].set(title="VGG", ylabel="training accuracy (%)", ylim=(0, 102))
    marks(axes[0], y={"guessing": chance})
    axes[1].set(title="deep linear", ylabel="loss, share of answering zero")
    axes[1].set(xscale="log", yscale="log", ylim=(0.02, 3))
    legend_below(fig, axes[0], len(NORMS))
    return fig


def matched(curves: Curves, steps: Sequence[float], rates: Mapping[str, float], paper: float) -> plt.Figure:
    """A panel a norm: its loss NORM beside batch norm's, batch, and that at the matched rate, batch.NORM."""
    fig, axes = plt.subplots(1, len(rates), figsize=(8.2, 3.3), sharey=True)
    for ax, (norm, rate) in zip(axes, rates.items()):
        line_with_band(ax, steps, curves[norm], color=COLORS[norm], label=f"{NAMES[norm]}, {power(paper)}")
        style = dict(color=COLORS["batch"])
        if rate != paper:
            label = f"batch norm, {power(rate)}"
            line_with_band(ax, steps, curves[f"batch.{norm}"], label=label, **style)
            style["linestyle"] = ":"
        line_with_band(ax, steps, curves["batch"], label=f"batch norm, {power(paper)}", **style)
        ax.set(xscale="log", yscale="log", xlabel="training step", title=f"{NAMES[norm]} at {power(paper)}")
        ax.legend(fontsize=letters(ax), loc="lower left")
    axes[0].set_ylabel("loss, share of answering zero")
    return without_minor_ticks(fig)


def landscape(curves: Curves, x: Sequence[float]) -> plt.Figure:
    """Above the range of the loss, from low.NORM to high.NORM (1, P), their logarithms, a panel a norm; below
    gradient_change.NORM and smoothness.NORM (1, 3, P)."""
    fig = plt.figure(figsize=(8.4, 5.4))
    rows = fig.add_gridspec(2, 1, height_ratios=(1, 1.25))
    upper = rows[0].subgridspec(1, len(NORMS)).subplots(sharey=True)
    lower = rows[1].subgridspec(1, 2).subplots()
    middle = np.nanmedian(np.asarray(curves["high.batch"], dtype=float))
    for ax, norm in zip(upper, NORMS):
        edges = (np.asarray(curves[f"{edge}.{norm}"], dtype=float)[0] for edge in ("low", "high"))
        low, high = (np.exp(np.minimum(edge, middle + 14)) for edge in edges)  # about to overflow
        ax.plot(x, high - low, color=COLORS[norm])  # as a band on this axis its width would be no range
        ax.set(xscale="log", yscale="log")
        ax.set_title(NAMES[norm], fontsize=10.5)
    upper[0].set_ylabel("range of\nthe loss")
    titles = {"gradient_change": "change of the gradient", "smoothness": "effective β"}
    for ax, (name, title) in zip(lower, titles.items()):
        for norm in NORMS:
            line_with_band(ax, x, curves[f"{name}.{norm}"], color=COLORS[norm], label=NAMES[norm])
        usual = np.nanmedian(np.asarray(curves[f"{name}.batch"], dtype=float)[0, 1])
        bottom, top = ax.get_ylim()
        ax.set(xscale="log", yscale="log", title=title, xlabel="training step")
        ax.set_ylim(max(ax.get_ylim()[0], usual / 1e5), min(top, usual * 1e6))
    legend_below(fig, lower[0], len(NORMS))
    return without_minor_ticks(fig)


def by_rate(speeds: Mapping[str, np.ndarray], rates: Sequence[float]) -> plt.Figure:
    """Accuracy of the VGG network over its first steps in per cent, NORM (S, rates)."""
    fig, ax = plt.subplots(figsize=(6.2, 3.3))
    for place, norm in enumerate(NORMS):
        beside = np.array(rates) * 1.03 ** (place - 2)
        style = dict(color=COLORS[norm], label=NAMES[norm], markersize=4, capsize=2)
        points(ax, beside, speeds[norm], "o-", **style)
    ax.set(xscale="log", xlabel="learning rate", ylabel="mean batch accuracy (%)")
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.set_title("Does a larger learning rate change the order?")
    marks(ax, x=printed.RATE)
    legend_below(fig, ax, len(NORMS))
    return without_minor_ticks(fig)
