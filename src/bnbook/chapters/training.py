"""Does it train faster? Starts and speeds by the learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import vgg
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.layout import subplots
from bnbook.plots.names import mark, marks
from bnbook.plots.panels import fans, line_with_band, panels, shares
from bnbook.training.curves import guessing, moving_mean, started, steps_to_reach
from bookpress.results import Results

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
    fig, ax = subplots(figsize=(7.2, 3.6))
    events = {(f"{rate:g}", norm): values for (rate, norm), values in failed.items()}
    shares(ax, events, [f"{rate:g}" for rate in rates], "trainings that did not start (%)")
    for words, rate in printed.WORSE.items():
        mark(ax, words, x=np.interp(np.log(rate), np.log(rates), np.arange(len(rates))))
    ax.set(xlabel="learning rate", title="Which trainings do not start?")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.08), ncols=2)
    return fig


def by_rate(curves: Curves, rates: Sequence[float], chance: float) -> plt.Figure:
    """Batch accuracy in per cent, averaged over the training, against the rate: NORM (1, 3, rates)."""
    fig, ax = subplots(figsize=(6.8, 3.3))
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
    fig, ax = subplots(figsize=(6.8, 3.3))
    for name, curve in curves.items():
        norm, kind = name.split(".")
        label = f"{LABELS[norm]}, {kind.capitalize()}"
        style = dict(color=COLORS[norm], linestyle="-" if kind == "glorot" else "--", label=label)
        line_with_band(ax, steps, curve, **style)
    ax.set(xlabel="training step", ylabel="training accuracy (%)", ylim=(0, None))
    ax.set_title("Do the first weights decide how soon a training starts?")
    ax.legend()
    return fig


# ---- Each figure of the page, from the results of its run -----------------------------------------------


CLASSES = 10  # of every set that the page may be run on


def _draw_curves(results: Results) -> plt.Figure:
    own, titles, x = parameters_of(results), {}, {}
    for name, words in {"batches": "training batches (%)", "test": "test images (%)"}.items():
        for rate in FIGURE:
            titles[panel := f"{name}_{tag(rate)}"] = f"{words},\nlearning rate {rate:g}"
            x[panel] = vgg.batch_steps(own.steps)
            if name == "test":
                x[panel] = vgg.of_ladder(("none",), own.width, results.header["parameters"])[
                    "none"
                ].checkpoints()
    levels = {panel: {"guessing": 100 / CLASSES} for panel in titles}
    if (own.width, own.steps) == printed.SIZE:  # where the paper's accuracies belong
        levels[f"test_{tag(FIGURE[0])}"] |= printed.ACCURACIES
    return panels(points_of(results, "curves"), x, titles, ARMS, columns=2, levels=levels)


def _draw_starts(results: Results) -> plt.Figure:
    rates = parameters_of(results).rates
    found = {(rate, norm): results[f"not_started.{tag(rate)}.{norm}"] for norm in ARMS for rate in rates}
    return starts(found, rates)


def _draw_rates(results: Results) -> plt.Figure:
    return by_rate(points_of(results, "rates"), parameters_of(results).rates, 100 / CLASSES)


def _draw_activations(results: Results) -> plt.Figure:
    own = parameters_of(results)
    steps = vgg.of_ladder(("none",), own.width, results.header["parameters"])["none"].checkpoints()
    names = {
        f"{norm}.{tag(rate)}": f"{LABELS[norm]},\nlearning rate {rate:g}" for rate in FIGURE for norm in ARMS
    }
    rows = [f"convolution {layer}" for layer in vgg.PLACED]
    return fans(points_of(results, "activations"), steps, rows, names)


def _draw_moments(results: Results) -> plt.Figure:
    own = parameters_of(results)
    x = vgg.of_ladder(("none",), own.width, results.header["parameters"])["none"].checkpoints()[1:]
    titles = {
        f"checkpoint_{moment}_{place}": f"{moment},\n{words}"
        for moment in vgg.MOMENTS
        for place, words in vgg.WORDS.items()
    }
    return panels(points_of(results, "moments"), x, titles, ARMS, log="y")


def _draw_initial(results: Results) -> plt.Figure:
    steps = vgg.batch_steps(parameters_of(results).start_steps, 30)
    return initial(points_of(results, "initial"), steps)


ARMS, FIGURE = ("none", "batch"), (0.1, 0.5)  # the rates of the paper's figure
FIGURES = {
    "curves": _draw_curves,
    "starts": _draw_starts,
    "rates": _draw_rates,
    "activations": _draw_activations,
    "moments": _draw_moments,
    "initial": _draw_initial,
}
