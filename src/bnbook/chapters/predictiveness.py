"""How far can a gradient be trusted? Errors of the VGG's and the deep linear network's, summed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.deep_linear import tag
from bnbook.chapters.vgg import over_window
from bnbook.deep_linear import LENGTHS, spread_probes
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.layout import subplots
from bnbook.plots.names import marks
from bnbook.plots.panels import legend_below, line_with_band, panels, without_minor_ticks
from bnbook.probes import summaries
from bnbook.probes.over_steps import holds_from, over_training, share_of_training
from bookpress.results import Results

Arrays = dict[str, np.ndarray]
AHEAD = (1, 2, 4, 8, 16)  # learning rates along the gradient
SHOWN = (0.02, 0.25, 1.0)  # parts of a training at which errors are drawn


def at_length(run: Arrays, lengths: Sequence[float], length: float) -> Arrays:
    """Curves (S, P) at one length: error, relative_error and cosine of `summaries.predictiveness`, and
    descends, 1 where a step so long lowers the batch's loss."""
    at = int(np.argmin(np.abs(np.asarray(lengths) - length)))
    found = {name: values[..., at] for name, values in summaries.predictiveness(run, lengths).items()}
    lower = run["landscape_loss"][..., at] < run["start_loss"]
    return found | {"descends": np.where(np.isfinite(run["start_loss"]), lower, np.nan)}


def of_arm(run: Arrays, lengths: Sequence[float], ahead: Sequence[float] = AHEAD) -> Arrays:
    """NAME.xLENGTH: medians over the training, of cosines and descends the means; of the error also over the
    first tenth of the steps, error.xLENGTH.early, and over the second half, .late, each step alike."""
    steps, found = run["probe_step"][0], {}
    end = float(steps[-1])
    for length in ahead:
        for name, values in at_length(run, lengths, length).items():
            mean = name in ("cosine", "descends")
            found[f"{name}.x{length}"] = over_training(values, steps, mean=mean)
            if name == "error":
                for part, window in {"early": (0.0, 0.1 * end), "late": (0.5 * end, end)}.items():
                    found[f"{name}.x{length}.{part}"] = over_window(values, steps, *window)
    return found


def of_pair(plain: Arrays, normed: Arrays, lengths: Sequence[float], rate: float) -> Arrays:
    """better_share: the share of the steps at which the error at 4 learning rates is smaller with batch norm;
    better_from: the probed step from which on it is to the end (∞: not at the last); equal_distance_ratio:
    error without over with it, equally far in parameters, median over the training."""
    steps, alive = plain["probe_step"][0], np.isfinite(plain["start_loss"])
    one, other = (at_length(run, lengths, 4)["error"] for run in (plain, normed))
    ratio = summaries.error_ratio_at_equal_distance(plain, normed, lengths, rate)
    return {
        "better_share": share_of_training(one > other, alive, steps),
        "better_from": holds_from((one > other) | ~alive, steps),
        "equal_distance_ratio": over_training(ratio, steps),
    }


def shown(steps: np.ndarray) -> list[int]:
    """Places of the probed steps at which errors are drawn: early, at a quarter, the last."""
    return [int(np.searchsorted(steps, part * steps[-1])) for part in SHOWN]


# ---- Figures ----------------------------------------------------------------------------------------------

Curves = Mapping[str, np.ndarray]
PAIR = ("none", "batch")
GUESS = {"guessing zero": 1.0}  # its relative error


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
    fig, axes = subplots(len(rates), len(steps), figsize=size, sharex=True, squeeze=False)
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


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_vgg(results: Results) -> plt.Figure:
    steps = results["probe_step"][0].astype(int)
    return errors(points_of(results, "vgg"), parameters_of(results).lengths, steps[shown(steps)])


def _draw_linear(results: Results) -> plt.Figure:
    steps = np.array(spread_probes(parameters_of(results).linear_steps))
    rates = {tag(rate): f"rate {power(rate)}" for rate in (1e-7, 1e-6)}
    return linear_errors(points_of(results, "linear"), LENGTHS, rates, steps[shown(steps)])


def _draw_rates(results: Results) -> plt.Figure:
    own = parameters_of(results)
    titles = {"error": "gradient error, one step ahead", "relative_error": "error / ‖∇L‖, one step ahead"}
    words = dict(xlabel="learning rate", log="xy", ticks=True, upright=printed.RATE)
    rates = sorted([*own.sweep_rates, own.learning_rate])
    return panels(points_of(results, "rates"), rates, titles, PAIR, **words)


FIGURES = {"vgg": _draw_vgg, "linear": _draw_linear, "rates": _draw_rates}
