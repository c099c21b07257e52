"""How far can a gradient be trusted? What is drawn of the VGG's errors and of the deep linear network's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.deep_linear import tag
from bnbook.deep_linear import LENGTHS, spread_probes
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.layout import subplots
from bnbook.plots.names import marks
from bnbook.plots.panels import legend_below, line_with_band, panels, without_minor_ticks
from bookpress.results import Results

SHOWN = (0.02, 0.25, 1.0)  # parts of a training at which errors are drawn


def shown(steps: np.ndarray) -> list[int]:
    """Places of the probed steps at which errors are drawn: early, at a quarter, the last."""
    return [int(np.searchsorted(steps, part * steps[-1])) for part in SHOWN]


# ---- Figures ----------------------------------------------------------------------------------------------

Curves = Mapping[str, np.ndarray]
PAIR = ("none", "batch")
AS_LONG = {"error = ‖∇L‖": 1.0}


def errors(curves: Curves, lengths: Sequence[float], steps: Sequence[int]) -> plt.Figure:
    """A column a step of training: above error.STEP.NORM (1, 3, A) against the length in learning rates,
    below relative_error.STEP.NORM against the distance in parameters, distance.STEP.NORM (1, A)."""
    fig, axes = subplots(2, len(steps), figsize=(8.2, 5.4), sharex="row", sharey="row", squeeze=False)
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
        marks(column[1], y=AS_LONG)
    axes[0, 0].set_ylabel("gradient error")
    axes[1, 0].set_ylabel("error / ‖∇L‖")
    legend_below(fig, axes[0, 0], 2)
    return without_minor_ticks(fig)


def linear_errors(
    curves: Curves, lengths: Sequence[float], rates: Mapping[str, str], steps: Sequence[int]
) -> plt.Figure:
    """A row a rate, a column a step: the relative error RATE.STEP.NORM (1, 3, A) of the linear network."""
    size = (8.2, 2.5 * len(rates) + 0.5)
    fig, axes = subplots(len(rates), len(steps), figsize=size, sharex=True, squeeze=False)
    for row, (rate, words) in zip(axes, rates.items()):
        for ax, step in zip(row, steps):
            for norm in PAIR:
                style = dict(color=COLORS[norm], label=LABELS[norm])
                line_with_band(ax, lengths, curves[f"{rate}.{step}.{norm}"], **style)
            marks(ax, x=printed.LINEAR_FARTHEST, y=AS_LONG)
            ax.set(xscale="log", yscale="log", ylim=(1e-3, 1e3))
            ax.set_title(f"{words}, step {step:,}", fontsize=10)
    for ax in axes[-1]:
        ax.set_xlabel("multiple of the learning rate")
    axes[0, 0].set_ylabel("error / ‖∇L‖")
    legend_below(fig, axes[0, 0], 2)
    return without_minor_ticks(fig)


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def vgg_errors(results: Results) -> plt.Figure:
    steps = results["probe_step"][0].astype(int)
    return errors(points_of(results, "vgg"), parameters_of(results).lengths, steps[shown(steps)])


def linear(results: Results) -> plt.Figure:
    steps = np.array(spread_probes(parameters_of(results).linear_steps))
    words = {tag(rate): f"rate {power(rate)}" for rate in (1e-7, 1e-6)}
    return linear_errors(points_of(results, "linear"), LENGTHS, words, steps[shown(steps)])


def rates(results: Results) -> plt.Figure:
    own = parameters_of(results)
    titles = {"error": "gradient error, one step ahead", "relative_error": "error / ‖∇L‖, one step ahead"}
    words = dict(xlabel="learning rate", log="xy", ticks=True, upright=printed.RATE)
    places = sorted([*own.sweep_rates, own.learning_rate])
    return panels(points_of(results, "rates"), places, titles, PAIR, **words)


FIGURES = {"vgg": vgg_errors, "linear": linear, "rates": rates}
