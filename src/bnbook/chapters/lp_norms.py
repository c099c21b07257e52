"""Must it be the variance? What is trained with other norms, the linear network's numbers, and what is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import vgg as networks
from bnbook.chapters.vgg import PLACED, tag
from bnbook.curves import over_training, share_of_training
from bnbook.deep_linear import LinearArm, probed_arm, spread_probes
from bnbook.deep_linear import summaries as of
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import power
from bnbook.plots.layout import WIDTH, is_narrow
from bnbook.plots.panels import Panel, compare, fans, legend_below, line_with_band, without_minor_ticks
from bnbook.probes.activations import moment_change
from bnbook.training.arm import Arm
from bookpress.results import Results

NORMS = ("none", "batch", "l1", "l2", "linf")
LP = NORMS[2:]
PAPER = 1e-6  # the deep linear network's rate


def straight(norm: str, settings: Mapping[str, Any], rate: float = PAPER) -> LinearArm:
    """The deep linear network with its instruments."""
    return probed_arm(norm, rate, steps=settings["linear_steps"], depth=settings["linear_depth"])


def arms(settings: Mapping[str, Any]) -> dict[str, dict[Any, Arm | LinearArm]]:
    """What is trained, by its use: vgg, NORM and noisy with instruments; watched, NORM with its distributions;
    further, batch and linf alone; sweep, (NORM, RATE), first steps; linear, NORM."""
    width = settings["width"]
    vgg = networks.of_ladder(("none", "batch", "noisy"), width, settings)
    some = networks.of_ladder(LP, width, settings)  # the moments and distributions in one
    some = {norm: replace(networks.smoothed(arm), activation_layers=PLACED) for norm, arm in some.items()}
    own = {norm: networks.watched(norm, width, settings, PLACED) for norm in ("none", "batch")}
    short = dict(steps=settings["sweep_steps"], evaluate_every=0)
    return {
        "vgg": vgg | some,
        "watched": own | some,
        "further": {norm: networks.unprobed(norm, width, settings) for norm in ("batch", "linf")},
        "sweep": {
            (norm, rate): networks.unprobed(norm, width, settings, learning_rate=rate, **short)
            for norm in NORMS
            for rate in settings["sweep_rates"]
        },
        "linear": {norm: straight(norm, settings) for norm in NORMS},
    }


# ---- Numbers of the deep linear network with ℓp normalizations --------------------------------------------

Arrays = dict[str, np.ndarray]
EXAMPLES = LinearArm.examples
MEASURES = ("loss_range", "gradient_change", "smoothness")


def linear_numbers(arm: LinearArm, run: Arrays) -> Arrays:
    """final_loss: share of the loss of answering zero at the end; diverged; the medians over the training of
    MEASURES and their natural logarithms, log_NAME; mean_change, variance_change: of what a layer hands on,
    between twenty even parts of the training, median over them."""
    found = {"final_loss": of.loss_share(arm, run)[:, -1], "diverged": of.diverged(run)}
    seen = of.landscape(arm, run)
    for name in MEASURES:
        found[name] = over_training(seen[name], run["probe_step"])
        with np.errstate(divide="ignore"):
            found[f"log_{name}"] = np.log(found[name])
    for name, values in zip(("mean_change", "variance_change"), moved(arm, run)):
        found[name] = lived(values)
    return found


def moved(arm: LinearArm, run: Arrays) -> np.ndarray:
    """Change of mean and variance between even parts of the training, mean over all units: (2, S, T)."""
    steps = run["probe_step"][0]
    regular = np.isin(steps, np.arange(0, steps[-1] + 1, max(1, arm.steps // 20)))
    handed = [run[f"handed_on_{name}"][:, regular, :-1] for name in ("mean", "deviation")]
    mean, deviation = (values.reshape(*values.shape[:2], -1).astype(float) for values in handed)
    with np.errstate(invalid="ignore", over="ignore"):  # shortly before a divergence
        return np.moveaxis(np.array([moment_change(m, v**2) for m, v in zip(mean, deviation)]), 1, 0)


def smoother(plain: tuple[LinearArm, Arrays], other: tuple[LinearArm, Arrays]) -> np.ndarray:
    """Share of the steps at which the other has the smaller β, as far as the plain network lived, (S,)."""
    one, two = (of.landscape(*pair)["smoothness"] for pair in (plain, other))
    return share_of_training(one > two, np.isfinite(plain[1]["start_loss"]), plain[1]["probe_step"][0])


def lived(values: np.ndarray) -> np.ndarray:
    """Median over all axes but the first, NaN (after a divergence, or a unit without spread) left out."""
    rows = np.asarray(values, dtype=float).reshape(len(values), -1)
    return np.array([np.median(row[~np.isnan(row)]) if (~np.isnan(row)).any() else np.nan for row in rows])


# ---- Figures, of the results of a run ---------------------------------------------------------------------

Curves = Mapping[str, np.ndarray]
CLASSES = 10  # of every set that the page may be run on
NAMES = LABELS | {"none": "no normalization", "batch": "batch norm"}


def drawn_steps(steps: Sequence[int]) -> np.ndarray:
    """Which of these steps at which a loss of the linear network is kept are drawn."""
    x = np.maximum(steps, 0.7)
    return np.unique(np.searchsorted(x, np.geomspace(0.7, x[-1], 110)))


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
    return landscape(points_of(results, "vgg"), np.maximum(networks.plain_arm(results).probe_steps, 0.7))


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
        x=np.maximum(networks.plain_arm(results).probe_steps, 0.7),
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
