"""Does it train faster? What is drawn of it."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import vgg
from bnbook.chapters.shared import CLASSES
from bnbook.chapters.vgg import FIGURE, PAIR, tag
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.panels import Panel, compare, fans
from bookpress.results import Results


def curves(results: Results) -> plt.Figure:
    """Accuracy in per cent over the training, of its batches and of test images, at the paper's two rates."""
    own, guessing = parameters_of(results), {"guessing": 100 / CLASSES}
    panels = []
    for name, words in {"batches": "training batches (%)", "test": "test images (%)"}.items():
        x = vgg.batch_steps(own.steps) if name == "batches" else vgg.plain_arm(results).checkpoints()
        for rate in FIGURE:
            there = name == "test" and rate == FIGURE[0] and (own.width, own.steps) == printed.SIZE
            levels = guessing | (printed.ACCURACIES if there else {})  # where the paper's accuracies belong
            title = f"{words},\nlearning rate {rate:g}"
            panels.append(Panel(curve=f"{name}_{tag(rate)}.{{}}", x=x, title=title, marks_y=levels))
    words = dict(columns=2, sharex=True, xlabel="training step")
    return compare(points_of(results, "curves"), panels, PAIR, figsize=(5.8, 6.0), **words)


def starts(results: Results) -> plt.Figure:
    """Trainings that did not start, with exact intervals; the rates stand at equal distances."""
    rates = parameters_of(results).rates
    arms = {
        norm: dict(
            x=np.arange(len(rates)) + apart,
            y=np.stack([results[f"not_started.{tag(rate)}.{norm}"] for rate in rates], axis=1),
            label=LABELS[norm],
        )
        for norm, apart in zip(PAIR, (-0.09, 0.09))
    }
    worse = {
        words: np.interp(np.log(at), np.log(rates), range(len(rates))) for words, at in printed.WORSE.items()
    }
    panel = Panel(
        title="Which trainings do not start?",
        xlabel="learning rate",
        ylabel="trainings that did not start (%)",
        ticks={place: f"{rate:g}" for place, rate in enumerate(rates)},
        xlim=(-0.6, len(rates) - 0.4),
        marks_x=worse,
    )
    return compare(results, [panel], arms, figsize=(7.2, 3.6), by="shares", look="o", legend="below")


def by_rate(results: Results) -> plt.Figure:
    """Batch accuracy in per cent, averaged over the training, against the rate."""
    rates, title = parameters_of(results).rates, "Which learning rate trains best?"
    panel = Panel(curve="{}", x=rates, ticks=rates, title=title, look="o-", log="x", ylim=(0, None))
    words = dict(xlabel="learning rate", ylabel="mean batch accuracy (%)")
    marks = dict(marks_x=printed.RATE, marks_y={"guessing": 100 / CLASSES})
    return compare(points_of(results, "rates"), [panel], PAIR, figsize=(6.8, 3.3), **words, **marks)


def activations(results: Results) -> plt.Figure:
    """The distribution of a unit of three convolutions over the training."""
    names = {
        f"{norm}.{tag(rate)}": f"{LABELS[norm]},\nlearning rate {rate:g}" for rate in FIGURE for norm in PAIR
    }
    rows = [f"convolution {layer}" for layer in vgg.PLACED]
    return fans(points_of(results, "activations"), vgg.plain_arm(results).checkpoints(), rows, names)


def moments(results: Results) -> plt.Figure:
    """How far mean and variance move from checkpoint to checkpoint, at three places of a layer."""
    titles = {
        f"checkpoint_{moment}_{place}.{{}}": f"{moment},\n{words}"
        for moment in vgg.MOMENTS
        for place, words in vgg.WORDS.items()
    }
    words = dict(
        x=vgg.plain_arm(results).checkpoints()[1:], log="y", columns=3, sharex=True, xlabel="training step"
    )
    return compare(points_of(results, "moments"), titles, PAIR, figsize=(8.4, 6.0), **words)


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
