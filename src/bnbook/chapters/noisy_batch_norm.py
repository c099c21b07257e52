"""Does it help by keeping inputs steady? What is trained with Algorithm 1's noise, and what is drawn of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters import vgg
from bnbook.figures import COLORS, LABELS, parameters_of, points_of
from bnbook.plots import printed
from bnbook.plots.axes import points
from bnbook.plots.layout import subplots
from bnbook.plots.names import letters, marks
from bnbook.plots.panels import fans, line_with_band, panels, shares
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
    levels = {panel: {"guessing": 100 / CLASSES} for panel in titles}
    return panels(points_of(results, "curves"), x, titles, NORMS, columns=2, levels=levels)


def activations(results: Results) -> plt.Figure:
    """The distribution of a unit of three convolutions over the training."""
    rows = [f"convolution {layer}" for layer in vgg.PLACED]
    return fans(points_of(results, "activations"), _long(results).checkpoints(), rows)


def moments(results: Results) -> plt.Figure:
    """How far mean and variance move from step to step, and what the noise by itself would move."""
    titles = {"batch_mean": "mean, successive batches", "batch_variance": "variance, successive batches"}
    titles |= {"update_mean": "mean, same images", "update_variance": "variance, same images"}
    alone = {moment: float(results[f"noise_alone.{moment}_change"][0]) for moment in vgg.MOMENTS}
    levels = {name: {"the noise by itself": alone[name.split("_")[1]]} for name in titles}
    words = dict(xlabel="training step + 1", log="xy", columns=2, levels=levels)
    x = np.array(_long(results).probe_steps) + 1
    return panels(points_of(results, "moments"), x, titles, NORMS, **words)


def control(results: Results) -> plt.Figure:
    """Left, trainings that did not start; right, the noise's variance over that of the signal, and what it is
    behind batch norm."""
    fig, (left, right) = subplots(1, 2, figsize=(7.8, 3.6), width_ratios=(1, 1.3))
    events = {(NAMES[norm], norm): results[f"not_started.{norm}"] for norm in NORMS}
    steps = parameters_of(results).start_steps
    shares(left, events, list(NAMES.values()), f"not started after {steps} steps (%)")
    left.set_ylim(-3, 124)  # room for the words above
    left.set_yticks(range(0, 101, 20))
    marks(left, y=printed.NO_START)
    for (layer, curve), dash in zip(points_of(results, "control").items(), LINES):
        style = dict(color=COLORS["none"], linestyle=dash, label=f"convolution {layer}")
        line_with_band(right, _long(results).checkpoints(), curve, **style)
    behind = float(results["closed.m_variance"][0])
    right.axhline(behind, color=COLORS["noisy"], linewidth=1.2, label="behind batch norm (γ = 1)")
    right.set(yscale="log", xlabel="training step", ylabel="noise over signal")
    left.set_title("Does a training start?", fontsize=10.5)
    right.set_title("variance of the noise / of the activations", fontsize=10.5)
    right.legend(fontsize=letters(right))
    right.minorticks_off()
    return fig


def strength(results: Results) -> plt.Figure:
    """Accuracy over the first steps by the strength of the noise, behind batch norm and alone."""
    fig, ax = subplots(figsize=(6.6, 3.3))
    least = 0.03  # where "none" stands on the logarithmic axis
    for norm, plain, strengths in (("noisy", "batch", (1.0, *STRONG)), ("noise", "none", (*WEAK, 1.0))):
        names = [f"{plain}.x0", *(f"{norm}.{tag(k)}" for k in strengths)]
        values = 100 * np.stack([results[f"first_steps.{name}"] for name in names], axis=1)
        points(ax, [least, *strengths], values, "o-", color=COLORS[norm], label=LABELS[norm])
    marks(ax, x={"paper's noise": 1.0}, y={"guessing": 100 / CLASSES})
    ticks = (*WEAK, 1.0, *STRONG)
    ax.set(xscale="log", xlabel="strength of the noise", ylabel="mean batch accuracy (%)")
    ax.set_title("How much noise can a training stand?")
    ax.set_xticks([least, *ticks], ["none", *(f"{strength:g}" for strength in ticks)])
    ax.minorticks_off()
    ax.legend()
    return fig
