"""Does it train faster? What is trained, and what is drawn of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import vgg
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.layout import subplots
from bnbook.plots.names import mark
from bnbook.plots.panels import Panel, compare, fans, shares
from bnbook.training.arm import Arm
from bookpress.results import Results

ARMS, FIGURE = ("none", "batch"), (0.1, 0.5)  # the rates of the paper's figure
HE = (("init", "meanfield"), ("sigma_b2", 0.0), ("sigma_w2", 2.0))  # weights of variance 2 / fan-in


def tag(rate: float) -> str:
    """0.1 -> "lr0_1", as result names have it."""
    return f"lr{rate:g}".replace(".", "_")


def arms(settings: Mapping[str, Any]) -> dict[str, dict[Any, Arm]]:
    """What is trained, by its use: long, (NORM, RATE), at the page's rate with the ladder's instruments; cropped,
    NORM; watched, (NORM, RATE) with its distributions; starts, (NORM, RATE), and he, NORM, from He's weights."""

    def own(norm: str, **changes: Any) -> Arm:
        return vgg.unprobed(norm, settings["width"], settings, **changes)

    every = [(norm, rate) for norm in ARMS for rate in settings["rates"]]
    figure = [(norm, rate) for rate in FIGURE for norm in ARMS]
    ladder = vgg.of_ladder(ARMS, settings["width"], settings)
    short = dict(steps=settings["start_steps"], evaluate_every=0)
    return {
        "long": {(norm, rate): own(norm, learning_rate=rate) for norm, rate in every}
        | {(norm, settings["learning_rate"]): ladder[norm] for norm in ARMS},
        "cropped": {norm: own(norm, augment=True) for norm in ARMS if settings["augment"]},
        "watched": {
            (norm, rate): vgg.watched(norm, settings["width"], settings, vgg.PLACED, learning_rate=rate)
            for norm, rate in figure
        },
        "starts": {(norm, rate): own(norm, learning_rate=rate, **short) for norm, rate in every},
        "he": {norm: own(norm, options=HE, **short) for norm in ARMS},
    }


def lead(speeds: Mapping[float, np.ndarray], rate: float) -> np.ndarray:
    """By how much the speed (S,) at a rate is above that at the other rate whose mean is best, (S,)."""
    others = [values for other, values in speeds.items() if other != rate]
    return speeds[rate] - max(others, key=np.mean)


# ---- Figures, of the results of a run ---------------------------------------------------------------------

CLASSES = 10  # of every set that the page may be run on


def _checkpoints(results: Results) -> list[int]:
    return vgg.of_ladder(("none",), parameters_of(results).width, results.header["parameters"])[
        "none"
    ].checkpoints()


def curves(results: Results) -> plt.Figure:
    """Accuracy in per cent over the training, of its batches and of test images, at the paper's two rates."""
    own, guessing = parameters_of(results), {"guessing": 100 / CLASSES}
    panels = []
    for name, words in {"batches": "training batches (%)", "test": "test images (%)"}.items():
        x = vgg.batch_steps(own.steps) if name == "batches" else _checkpoints(results)
        for rate in FIGURE:
            there = name == "test" and rate == FIGURE[0] and (own.width, own.steps) == printed.SIZE
            levels = guessing | (printed.ACCURACIES if there else {})  # where the paper's accuracies belong
            title = f"{words},\nlearning rate {rate:g}"
            panels.append(Panel(curve=f"{name}_{tag(rate)}.{{}}", x=x, title=title, marks_y=levels))
    words = dict(columns=2, sharex=True, xlabel="training step")
    return compare(points_of(results, "curves"), panels, ARMS, figsize=(5.8, 6.0), **words)


def starts(results: Results) -> plt.Figure:
    """Trainings that did not start, with exact intervals; the rates stand at equal distances."""
    fig, ax = subplots(figsize=(7.2, 3.6))
    rates = parameters_of(results).rates
    events = {
        (f"{rate:g}", norm): results[f"not_started.{tag(rate)}.{norm}"] for norm in ARMS for rate in rates
    }
    shares(ax, events, [f"{rate:g}" for rate in rates], "trainings that did not start (%)")
    for words, rate in printed.WORSE.items():
        mark(ax, words, x=np.interp(np.log(rate), np.log(rates), np.arange(len(rates))))
    ax.set(xlabel="learning rate", title="Which trainings do not start?")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.08), ncols=2)
    return fig


def by_rate(results: Results) -> plt.Figure:
    """Batch accuracy in per cent, averaged over the training, against the rate."""
    rates, title = parameters_of(results).rates, "Which learning rate trains best?"
    panel = Panel(curve="{}", x=rates, ticks=rates, title=title, look="o-", log="x", ylim=(0, None))
    words = dict(xlabel="learning rate", ylabel="mean batch accuracy (%)")
    marks = dict(marks_x=printed.RATE, marks_y={"guessing": 100 / CLASSES})
    return compare(points_of(results, "rates"), [panel], ARMS, figsize=(6.8, 3.3), **words, **marks)


def activations(results: Results) -> plt.Figure:
    """The distribution of a unit of three convolutions over the training."""
    names = {
        f"{norm}.{tag(rate)}": f"{LABELS[norm]},\nlearning rate {rate:g}" for rate in FIGURE for norm in ARMS
    }
    rows = [f"convolution {layer}" for layer in vgg.PLACED]
    return fans(points_of(results, "activations"), _checkpoints(results), rows, names)


def moments(results: Results) -> plt.Figure:
    """How far mean and variance move from checkpoint to checkpoint, at three places of a layer."""
    titles = {
        f"checkpoint_{moment}_{place}.{{}}": f"{moment},\n{words}"
        for moment in vgg.MOMENTS
        for place, words in vgg.WORDS.items()
    }
    words = dict(x=_checkpoints(results)[1:], log="y", columns=3, sharex=True, xlabel="training step")
    return compare(points_of(results, "moments"), titles, ARMS, figsize=(8.4, 6.0), **words)


def initial(results: Results) -> plt.Figure:
    """Batch accuracy in per cent over the first steps from two kinds of weights."""
    points, steps = points_of(results, "initial"), vgg.batch_steps(parameters_of(results).start_steps, 30)
    arms = {}
    for name in points:
        norm, kind = name.split(".")
        look = "-" if kind == "glorot" else "--"
        arms[name] = dict(color=norm, label=f"{LABELS[norm]}, {kind.capitalize()}", look=look)
    panel = Panel(
        curve="{}", x=steps, title="Do the first weights decide how soon a training starts?", ylim=(0, None)
    )
    return compare(
        points, [panel], arms, figsize=(6.8, 3.3), xlabel="training step", ylabel="training accuracy (%)"
    )
