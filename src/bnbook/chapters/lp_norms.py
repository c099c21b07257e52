"""Must it be the variance? The figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import vgg as networks
from bnbook.chapters.deep_linear import drawn_steps
from bnbook.chapters.vgg import PLACED, tag
from bnbook.deep_linear import LinearArm, spread_probes
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.layout import WIDTH, is_narrow
from bnbook.plots.panels import Panel, compare, fans, legend_below, line_with_band, without_minor_ticks
from bookpress.results import Results

NORMS = ("none", "batch", "l1", "l2", "linf")
LP = NORMS[2:]
PAPER = 1e-6  # the deep linear network's rate


MEASURES = ("loss_range", "gradient_change", "smoothness")


Curves = Mapping[str, np.ndarray]
CLASSES = 10  # of every set that the page may be run on
NAMES = LABELS | {"none": "no normalization", "batch": "batch norm"}


def _linear_steps(results: Results) -> np.ndarray:
    steps = LinearArm(steps=parameters_of(results).linear_steps).loss_steps()
    return np.maximum(steps, 0.7)[drawn_steps(steps)]


LINES = {norm: NAMES[norm] for norm in NORMS}


def division(results: Results) -> plt.Figure:
    """Average norm and deviation of the output by the input's mean."""
    titles = {"size.{}": "average ℓp norm of the output", "deviation.{}": "standard deviation of the output"}
    words = dict(x=np.linspace(0, 3, 31), xlabel="mean of the input, in standard deviations", ylim=(0, 1.35))
    return compare(
        points_of(results, "division"), titles, LINES, figsize=(7.4, 3.0), legend="each", sharex=True, **words
    )


def performance(results: Results) -> plt.Figure:
    """Left batch accuracy in per cent of the VGG network, right loss of the linear one."""
    steps, guessing = networks.batch_steps(parameters_of(results).steps), {"guessing": 100 / CLASSES}
    left = dict(title="VGG", ylabel="training accuracy (%)", ylim=(0, 102), marks_y=guessing)
    right = dict(title="deep linear", ylabel="loss, share of answering zero", log="xy", ylim=(0.02, 3))
    panels = [
        Panel(curve="vgg.{}", x=steps, **left),
        Panel(curve="linear.{}", x=_linear_steps(results), **right),
    ]
    return compare(
        points_of(results, "performance"), panels, LINES, figsize=(7.6, 3.6), xlabel="training step"
    )


def matched(results: Results) -> plt.Figure:
    """A panel a norm: its loss beside batch norm's, and that at the rate at which it should begin alike."""
    rates = {"l2": PAPER} | {norm: results[f"matched_rate.{norm}"][0] for norm in ("l1", "linf")}
    panels = []
    for norm, rate in rates.items():
        own, alike = {norm: dict(y=norm, label=f"{NAMES[norm]}, {power(PAPER)}")}, {}
        if rate != PAPER:
            alike = {"alike": dict(y=f"batch.{norm}", color="batch", label=f"batch norm, {power(rate)}")}
        there = dict(
            y="batch", color="batch", look=":" if alike else "-", label=f"batch norm, {power(PAPER)}"
        )
        panels.append(Panel(title=f"{NAMES[norm]} at {power(PAPER)}", arms=own | alike | {"batch": there}))
    words = dict(
        x=_linear_steps(results), log="xy", xlabel="training step", ylabel="loss, share of answering zero"
    )
    return compare(
        points_of(results, "matched"), panels, figsize=(8.2, 3.3), sharey=True, legend="each", **words
    )


def vgg(results: Results) -> plt.Figure:
    """The landscape of the VGG network over its training."""
    return landscape(
        points_of(results, "vgg"), np.maximum(networks.plain_arm(results).instruments.probe_steps, 0.7)
    )


def linear(results: Results) -> plt.Figure:
    """The same of the linear network."""
    x = np.maximum(spread_probes(parameters_of(results).linear_steps), 0.7)
    return landscape(points_of(results, "linear"), x)


def landscape(curves: Curves, x: Sequence[float]) -> plt.Figure:
    """Above the range of the loss, from low.NORM to high.NORM (1, P), their logarithms, a panel a norm; below
    gradient_change.NORM and smoothness.NORM (1, 3, P)."""
    fig, upper, lower = _two_rows()
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
    legend_below(fig)
    return without_minor_ticks(fig)


def _two_rows() -> tuple[plt.Figure, Sequence[plt.Axes], Sequence[plt.Axes]]:
    """A narrow panel for each norm, of one scale, and two below them; on a phone the two stand below each other."""
    if is_narrow():
        fig = plt.figure(figsize=(WIDTH, 8.6))
        first, *below = fig.add_gridspec(3, 1, height_ratios=(2, 1, 1))
        upper, lower = (
            list(first.subgridspec(2, 3).subplots(sharey=True).flat),
            [fig.add_subplot(each) for each in below],
        )
        upper.pop().remove()  # five norms
        return fig, upper, lower
    fig = plt.figure(figsize=(8.4, 5.4))
    rows = fig.add_gridspec(2, 1, height_ratios=(1, 1.25))
    return fig, rows[0].subgridspec(1, len(NORMS)).subplots(sharey=True), rows[1].subgridspec(1, 2).subplots()


def histograms(results: Results) -> plt.Figure:
    """The distribution of a unit of three convolutions over the training."""
    rows = [f"convolution {layer}" for layer in PLACED]
    return fans(points_of(results, "histograms"), networks.plain_arm(results).checkpoints(), rows, NAMES)


def linear_histograms(results: Results) -> plt.Figure:
    """The same of three layers of the linear network."""
    own = parameters_of(results)
    rows = [f"layer {layer}" for layer in shown_layers(own.linear_depth)]
    return fans(points_of(results, "linear-histograms"), spread_probes(own.linear_steps), rows, NAMES)


def shown_layers(depth: int) -> tuple[int, ...]:
    """The linear layers whose distributions are drawn; behind the last nothing normalizes."""
    return 1, depth // 2 + 1, depth - 1


def shift(results: Results) -> plt.Figure:
    """How far one update moves mean and variance of a unit, at three places of a layer."""
    titles = {
        f"update_{moment}_{place}.{{}}": f"{moment},\n{words}"
        for moment in networks.MOMENTS
        for place, words in networks.WORDS.items()
    }
    words = dict(
        x=np.maximum(networks.plain_arm(results).instruments.probe_steps, 0.7),
        log="xy",
        xlabel="training step",
        sharex=True,
    )
    return compare(points_of(results, "shift"), titles, LINES, figsize=(8.4, 6.0), columns=3, **words)


def by_rate(results: Results) -> plt.Figure:
    """Accuracy of the VGG network over its first steps in per cent, at several learning rates."""
    own = parameters_of(results)
    rates = sorted({*own.sweep_rates, own.learning_rate})
    arms = {
        norm: dict(
            label=NAMES[norm],
            x=np.array(rates) * 1.03 ** (place - 2),  # so that intervals do not hide one another
            y=np.stack([results[f"sweep_speed.{tag(rate)}.{norm}"] for rate in rates], 1),
        )
        for place, norm in enumerate(NORMS)
    }
    words = dict(
        xlabel="learning rate", ylabel="mean batch accuracy (%)", ticks=rates, marks_x=printed.RATE, log="x"
    )
    panel = Panel(title="Does a larger learning rate change the order?", by="points", times=100, look="o-")
    return compare(results, [panel], arms, figsize=(6.2, 3.3), legend="below", **words)
