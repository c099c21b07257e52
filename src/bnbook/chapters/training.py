"""Does it train faster? Starts and speeds by the learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots import printed
from bnbook.plots.line_names.marks import mark, marks
from bnbook.plots.panels import line_with_band, shares
from bnbook.training.curves import guessing, moving_mean, started, steps_to_reach

Arrays = dict[str, np.ndarray]


def tag(rate: float) -> str:
    """0.1 -> "lr0_1", as result names have it."""
    return f"lr{rate:g}".replace(".", "_")


def matched(plain: Arrays, normed: Arrays, classes: int, window: int) -> Arrays:
    """Updates until the mean batch accuracy of `window` steps is the highest that the plain arm ever has, by
    norm, (S,)."""
    curves = {"none": guessing(plain["accuracy"], classes), "batch": guessing(normed["accuracy"], classes)}
    best = moving_mean(curves["none"], window)[:, window - 1 :].max(1)
    return {
        norm: np.array([steps_to_reach(curve, level, window) for curve, level in zip(values, best)])
        for norm, values in curves.items()
    }


def lead(speeds: Mapping[float, np.ndarray], rate: float) -> np.ndarray:
    """By how much the speed (S,) at a rate is above that at the other rate whose mean is best, (S,)."""
    others = [values for other, values in speeds.items() if other != rate]
    return speeds[rate] - max(others, key=np.mean)


def failed(run: Arrays, classes: int) -> np.ndarray:
    """1 where the mean loss of the last sixth of the steps is not 2 % below ln(classes), or is none, (S,)."""
    return (~started(run["loss"], classes)).astype(float)


# ---- Figures ----------------------------------------------------------------------------------------------

Curves = Mapping[str, np.ndarray]


def starts(failed: Mapping[tuple[float, str], np.ndarray], rates: Sequence[float]) -> plt.Figure:
    """Trainings that did not start, (RATE, NORM) -> (S,) of 0 and 1, with exact intervals; the rates
    stand at equal distances."""
    fig, ax = plt.subplots(figsize=(7.2, 3.6))
    events = {(f"{rate:g}", norm): values for (rate, norm), values in failed.items()}
    shares(ax, events, [f"{rate:g}" for rate in rates], "trainings that did not start (%)")
    for words, rate in printed.WORSE.items():
        mark(ax, words, x=np.interp(np.log(rate), np.log(rates), np.arange(len(rates))))
    ax.set(xlabel="learning rate", title="Which trainings do not start?")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.08), ncols=2)
    return fig


def by_rate(curves: Curves, rates: Sequence[float], chance: float) -> plt.Figure:
    """Batch accuracy in per cent, averaged over the training, against the rate: NORM (1, 3, rates)."""
    fig, ax = plt.subplots(figsize=(6.8, 3.3))
    for norm, curve in curves.items():
        style = dict(color=COLORS[norm], label=LABELS[norm], marker="o", markersize=4)
        line_with_band(ax, rates, curve, **style)
    marks(ax, x=printed.RATE, y={"guessing": chance})
    ax.set(xscale="log", xlabel="learning rate", ylabel="mean batch accuracy (%)", ylim=(0, None))
    ax.set_title("Which learning rate trains best?")
    ax.set_xticks(rates, [f"{rate:g}" for rate in rates])
    ax.minorticks_off()
    ax.legend()
    return fig


def initial(curves: Curves, steps: Sequence[int]) -> plt.Figure:
    """Batch accuracy in per cent over the first steps from two kinds of weights, NORM.KIND (1, 3, X)."""
    fig, ax = plt.subplots(figsize=(6.8, 3.3))
    for name, curve in curves.items():
        norm, kind = name.split(".")
        label = f"{LABELS[norm]}, {kind.capitalize()}"
        style = dict(color=COLORS[norm], linestyle="-" if kind == "glorot" else "--", label=label)
        line_with_band(ax, steps, curve, **style)
    ax.set(xlabel="training step", ylabel="training accuracy (%)", ylim=(0, None))
    ax.set_title("Do the first weights decide how soon a training starts?")
    ax.legend()
    return fig
