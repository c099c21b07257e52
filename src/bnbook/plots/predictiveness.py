"""Figures of the chapter on how far a gradient can be trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots import printed
from bnbook.plots.line_names.marks import marks
from bnbook.plots.panels import legend_below, line_with_band, without_minor_ticks

Curves = Mapping[str, np.ndarray]
PAIR = ("none", "batch")
GUESS = {"guessing zero": 1.0}  # its relative error


def errors(curves: Curves, lengths: Sequence[float], steps: Sequence[int]) -> plt.Figure:
    """A column a step of training: above error.STEP.NORM (1, 3, A) against the length in learning rates,
    below relative_error.STEP.NORM against the distance in parameters, distance.STEP.NORM (1, A)."""
    fig, axes = plt.subplots(2, len(steps), figsize=(8.2, 5.4), sharex="row", sharey="row", squeeze=False)
    for column, step in zip(axes.T, steps):
        for norm in PAIR:
            style = dict(color=COLORS[norm], label=LABELS[norm], marker="o", markersize=3)
            line_with_band(column[0], lengths, curves[f"error.{step}.{norm}"], **style)
            far = np.asarray(curves[f"distance.{step}.{norm}"])[0]
            line_with_band(column[1], far, curves[f"relative_error.{step}.{norm}"], **style)
        words = dict(xscale="log", yscale="log")
        column[0].set(title=f"step {step:,}", xlabel="multiple of the learning rate", **words)
        column[1].set(xlabel="distance moved, ‖θ − θₐ‖", **words)
        marks(column[0], x=printed.FARTHEST)
        marks(column[1], y=GUESS)
    axes[0, 0].set_ylabel("gradient error")
    axes[1, 0].set_ylabel("error / ‖∇L‖")
    legend_below(fig, axes[0, 0], 2)
    return without_minor_ticks(fig)


def linear_errors(
    curves: Curves, lengths: Sequence[float], rates: Mapping[str, str], steps: Sequence[int]
) -> plt.Figure:
    """A row a rate, a column a step: the relative error RATE.STEP.NORM (1, 3, A) of the linear network."""
    size = (8.2, 2.5 * len(rates) + 0.5)
    fig, axes = plt.subplots(len(rates), len(steps), figsize=size, sharex=True, squeeze=False)
    for row, (rate, words) in zip(axes, rates.items()):
        for ax, step in zip(row, steps):
            for norm in PAIR:
                style = dict(color=COLORS[norm], label=LABELS[norm])
                line_with_band(ax, lengths, curves[f"{rate}.{step}.{norm}"], **style)
            marks(ax, x=printed.LINEAR_FARTHEST, y=GUESS)
            ax.set(xscale="log", yscale="log", ylim=(1e-3, 1e3))
            ax.set_title(f"{words}, step {step:,}", fontsize=10)
    for ax in axes[-1]:
        ax.set_xlabel("multiple of the learning rate")
    axes[0, 0].set_ylabel("error / ‖∇L‖")
    legend_below(fig, axes[0, 0], 2)
    return without_minor_ticks(fig)
