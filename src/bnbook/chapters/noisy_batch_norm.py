"""Does it help by keeping inputs steady? What is trained with Algorithm 1's noise, and what is drawn of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import vgg
from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.panels import Panel, compare, fans, shares
from bnbook.training.arm import Arm
from bookpress.results import Results

NORMS = ("none", "batch", "noisy", "noise")
WIDTHS = {"n_mu": 0.5, "n_sigma": 1.25, "r_mu": 0.1, "r_sigma": 0.1}  # the paper's
STRONG, WEAK = (2.0, 4.0), (0.1, 0.3)  # further strengths: behind batch norm and alone
READINGS = {
    "layer": {"per": "layer"},
    "variance": {"spread": "variance"},
    "layer_variance": {"per": "layer", "spread": "variance"},
}


def stronger(times: float) -> dict[str, float]:
    """Algorithm 1 with every random part so many times as wide."""
    return {name: times * width for name, width in WIDTHS.items()} | {
        "n_sigma": 1 + (WIDTHS["n_sigma"] - 1) * times
    }


def tag(strength: float) -> str:
    """0.3 -> "x0_3", as result names have it."""
    return f"x{strength:g}".replace(".", "_")


def arms(settings: Mapping[str, Any]) -> dict[str, dict[str, Arm]]:
    """What is trained, by its use and its name: long, NORM with the ladder's instruments; watched, NORM with its
    distributions; starts, NORM and noise.READING; first, NORM.STRENGTH and NORM.READING."""
    width = settings["width"]
    long = vgg.of_ladder(NORMS, width, settings)
    long["noise"] = vgg.moments_only(long["noise"])  # the control is not on the ladder

    def short(norm: str, steps: int, options: Mapping[str, Any]) -> Arm:
        own = dict(steps=steps, evaluate_every=0, options=tuple(sorted(options.items())))
        return vgg.unprobed(norm, width, settings, **own)

    starts = {norm: (norm, {}) for norm in NORMS}
    starts |= {f"noise.{name}": ("noise", options) for name, options in READINGS.items()}
    first = {
        f"{norm}.{name}": (norm, options)
        for norm, strengths in (("noisy", STRONG), ("noise", WEAK))
        for name, options in ({tag(k): stronger(k) for k in strengths} | READINGS).items()
    }
    return {
        "long": long,
        "watched": {norm: vgg.watched(norm, width, settings, vgg.PLACED) for norm in NORMS},
        "starts": {name: short(norm, settings["start_steps"], own) for name, (norm, own) in starts.items()},
        "first": {name: short(norm, settings["sweep_steps"], own) for name, (norm, own) in first.items()},
    }


# ---- Figures, of the results of a run ---------------------------------------------------------------------

CLASSES = 10  # of every set that the page may be run on
NAMES = {"none": "without", "batch": "batch", "noisy": "noisy", "noise": "noise\nalone"}
LINES = ("-", "--", ":")  # of the convolutions, which are all of the plain network


def _long(results: Results) -> vgg.PlacedArm:
    """The plain network's training, for the steps of its checkpoints and probes."""
    return vgg.of_ladder(("none",), parameters_of(results).width, results.header["parameters"])["none"]


def curves(results: Results) -> plt.Figure:
    """Accuracy in per cent over the training, of its batches and of test images."""
    x = {"batches": vgg.batch_steps(parameters_of(results).steps), "test": _long(results).checkpoints()}
    titles = {"batches": "training batches (%)", "test": "test images (%)"}
    panels = [Panel(curve=f"{name}.{{}}", x=x[name], title=title) for name, title in titles.items()]
    words = dict(xlabel="training step", columns=2, sharex=True, marks_y={"guessing": 100 / CLASSES})
    return compare(points_of(results, "curves"), panels, NORMS, figsize=(5.8, 3.3), **words)


def activations(results: Results) -> plt.Figure:
    """The distribution of a unit of three convolutions over the training."""
    rows = [f"convolution {layer}" for layer in vgg.PLACED]
    return fans(points_of(results, "activations"), _long(results).checkpoints(), rows)


def moments(results: Results) -> plt.Figure:
    """How far mean and variance move from step to step, and what the noise by itself would move."""
    titles = {"batch_mean": "mean, successive batches", "batch_variance": "variance, successive batches"}
    titles |= {"update_mean": "mean, same images", "update_variance": "variance, same images"}
    panels = []
    for name, title in titles.items():
        alone = float(results[f"noise_alone.{name.split('_')[1]}_change"][0])
        panels.append(Panel(curve=f"{name}.{{}}", title=title, marks_y={"the noise by itself": alone}))
    words = dict(x=np.array(_long(results).probe_steps) + 1, xlabel="training step + 1", log="xy")
    return compare(
        points_of(results, "moments"), panels, NORMS, figsize=(5.8, 6.0), columns=2, sharex=True, **words
    )


def control(results: Results) -> plt.Figure:
    """Left, trainings that did not start; right, the noise's variance over that of the signal, and what it is
    behind batch norm."""
    steps = parameters_of(results).start_steps

    def starts(ax: plt.Axes) -> None:
        events = {(NAMES[norm], norm): results[f"not_started.{norm}"] for norm in NORMS}
        shares(ax, events, list(NAMES.values()), f"not started after {steps} steps (%)")
        ax.set(ylim=(-3, 124), yticks=range(0, 101, 20))  # room for the words above

    points, x = points_of(results, "control"), _long(results).checkpoints()
    arms = {
        layer: dict(color="none", look=dash, label=f"convolution {layer}")
        for layer, dash in zip(points, LINES)
    }
    behind = np.full(len(x), float(results["closed.m_variance"][0]))
    arms["behind"] = dict(color="noisy", y=behind, linewidth=1.2, label="behind batch norm (γ = 1)")
    left = dict(ylabel=f"not started after {steps} steps (%)", marks_y=printed.NO_START)
    right = dict(x=x, log="y", xlabel="training step", ylabel="noise over signal")
    panels = [
        Panel(title="Does a training start?", also=starts, **left),
        Panel(curve="{}", title="variance of the noise / of the activations", arms=arms, **right),
    ]
    fig = compare(points, panels, figsize=(7.8, 3.6), width_ratios=(1, 1.3), legend="none")
    fig.axes[1].legend()
    return fig


def strength(results: Results) -> plt.Figure:
    """Accuracy over the first steps by the strength of the noise, behind batch norm and alone."""
    least, arms = 0.03, {}  # where "none" stands on the logarithmic axis
    for norm, plain, strengths in (("noisy", "batch", (1.0, *STRONG)), ("noise", "none", (*WEAK, 1.0))):
        names = [f"{plain}.x0", *(f"{norm}.{tag(k)}" for k in strengths)]
        values = np.stack([results[f"first_steps.{name}"] for name in names], axis=1)
        arms[norm] = dict(x=[least, *strengths], y=values, label=LABELS[norm])
    ticks = {least: "none"} | {strength: f"{strength:g}" for strength in (*WEAK, 1.0, *STRONG)}
    panel = Panel(
        title="How much noise can a training stand?", by="points", look="o-", times=100, log="x", ticks=ticks
    )
    words = dict(xlabel="strength of the noise", ylabel="mean batch accuracy (%)")
    marks = dict(marks_x={"paper's noise": 1.0}, marks_y={"guessing": 100 / CLASSES})
    return compare(results, [panel], arms, figsize=(6.6, 3.3), **words, **marks)
