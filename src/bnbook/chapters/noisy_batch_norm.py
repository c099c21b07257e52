"""Does it help by keeping inputs steady? What is drawn of trainings with Algorithm 1's noise."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import vgg
from bnbook.chapters.shared import CLASSES
from bnbook.chapters.vgg import tag
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.panels import Panel, compare, fans
from bookpress.results import Results

NORMS = ("none", "batch", "noisy", "noise")
STRONG, WEAK = (2.0, 4.0), (0.1, 0.3)  # further strengths: behind batch norm and alone
NAMES = {"none": "without", "batch": "batch", "noisy": "noisy", "noise": "noise\nalone"}
LINES = ("-", "--", ":")  # of the convolutions, which are all of the plain network


def curves(results: Results) -> plt.Figure:
    """Accuracy in per cent over the training, of its batches and of test images."""
    x = {
        "batches": vgg.batch_steps(parameters_of(results).steps),
        "test": vgg.plain_arm(results).checkpoints(),
    }
    titles = {"batches": "training batches (%)", "test": "test images (%)"}
    panels = [Panel(curve=f"{name}.{{}}", x=x[name], title=title) for name, title in titles.items()]
    words = dict(xlabel="training step", columns=2, sharex=True, marks_y={"guessing": 100 / CLASSES})
    return compare(points_of(results, "curves"), panels, NORMS, figsize=(5.8, 3.3), **words)


def activations(results: Results) -> plt.Figure:
    """The distribution of a unit of three convolutions over the training."""
    rows = [f"convolution {layer}" for layer in vgg.PLACED]
    return fans(points_of(results, "activations"), vgg.plain_arm(results).checkpoints(), rows)


def moments(results: Results) -> plt.Figure:
    """How far mean and variance move from step to step, and what the noise by itself would move."""
    titles = {"batch_mean": "mean, successive batches", "batch_variance": "variance, successive batches"}
    titles |= {"update_mean": "mean, same images", "update_variance": "variance, same images"}
    panels = []
    for name, title in titles.items():
        alone = float(results[f"noise_alone.{name.split('_')[1]}_change"][0])
        panels.append(Panel(curve=f"{name}.{{}}", title=title, marks_y={"the noise by itself": alone}))
    words = dict(
        x=np.array(vgg.plain_arm(results).instruments.probe_steps) + 1, xlabel="training step + 1", log="xy"
    )
    return compare(
        points_of(results, "moments"), panels, NORMS, figsize=(5.8, 6.0), columns=2, sharex=True, **words
    )


def control(results: Results) -> plt.Figure:
    """Left, trainings that did not start; right, the noise's variance over that of the signal, and what it is
    behind batch norm."""
    steps = parameters_of(results).start_steps
    events = {
        norm: dict(x=[place], y=results[f"not_started.{norm}"][:, None], look="o")
        for place, norm in enumerate(NORMS)
    }
    points, x = points_of(results, "control"), vgg.plain_arm(results).checkpoints()
    arms = {
        layer: dict(color="none", look=dash, label=f"convolution {layer}")
        for layer, dash in zip(points, LINES)
    }
    behind = np.full(len(x), float(results["closed.m_variance"][0]))
    arms["behind"] = dict(color="noisy", y=behind, linewidth=1.2, label="behind batch norm (γ = 1)")
    left = dict(
        ylabel=f"not started after {steps} steps (%)",
        ticks=dict(enumerate(NAMES.values())),
        yticks=range(0, 101, 20),
        xlim=(-0.6, len(NORMS) - 0.4),
        ylim=(-3, 124),  # room for the words above
        marks_y=printed.NO_START,
    )
    right = dict(x=x, log="y", xlabel="training step", ylabel="noise over signal")
    panels = [
        Panel(title="Does a training start?", arms=events, by="shares", **left),
        Panel(curve="{}", title="variance of the noise / of the activations", arms=arms, **right),
    ]
    fig = compare(points, panels, figsize=(7.8, 3.6), width_ratios=(1, 1.3), legend="none")
    fig.axes[1].legend()
    return fig


def strength(results: Results) -> plt.Figure:
    """Accuracy over the first steps by the strength of the noise, behind batch norm and alone."""
    least, arms = 0.03, {}  # where "none" stands on the logarithmic axis
    for norm, plain, strengths in (("noisy", "batch", (1.0, *STRONG)), ("noise", "none", (*WEAK, 1.0))):
        names = [f"{plain}.x0", *(f"{norm}.{tag(k, 'x')}" for k in strengths)]
        values = np.stack([results[f"first_steps.{name}"] for name in names], axis=1)
        arms[norm] = dict(x=[least, *strengths], y=values, label=LABELS[norm])
    ticks = {least: "none"} | {strength: f"{strength:g}" for strength in (*WEAK, 1.0, *STRONG)}
    panel = Panel(
        title="How much noise can a training stand?", by="points", look="o-", times=100, log="x", ticks=ticks
    )
    words = dict(xlabel="strength of the noise", ylabel="mean batch accuracy (%)")
    marks = dict(marks_x={"paper's noise": 1.0}, marks_y={"guessing": 100 / CLASSES})
    return compare(results, [panel], arms, figsize=(6.6, 3.3), **words, **marks)
