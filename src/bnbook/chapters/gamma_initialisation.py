"""Should γ start small? The curvature at the start, and learning curves short enough to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import torch

from bnbook.chapters.mean_field import sample_inputs
from bnbook.data import Dataset, normalise
from bnbook.figures import COLORS, parameters_of, points_of
from bnbook.plots.layout import subplots
from bnbook.probes.fisher import largest_eigenvalue
from bnbook.training.curves import moving_mean
from bnbook.training.first_gamma import ScaleArm
from bookpress.intervals import mean_and_interval
from bookpress.results import Results

#: Steps that a learning curve is averaged over, and points of it that are kept.
WINDOW, POINTS = 25, 100
#: Of λ_max by the Lanczos iteration, relative.
TOLERANCE = 1e-3


def tag(network: str, gamma: float) -> str:
    """What names of results end in: ("vgg16", 0.1) -> "vgg16.g0_1"."""
    return f"{network}.g" + f"{gamma:g}".replace(".", "_")


def first_eigenvalue(arm: ScaleArm, seed: int, dataset: Dataset, inputs: int) -> float:
    """λ_max of the untrained network's Fisher matrix: one output, weights, gradients through the batch of
    `inputs` images, other images for every seed."""
    torch.manual_seed(seed)
    model = arm.model(dataset).train()
    images = sample_inputs(dataset.train_images, (), seed, inputs)
    found = largest_eigenvalue(
        model, normalise(images, dataset), outputs=0, statistics="batch", tolerance=TOLERANCE
    )
    return float(found)


def learning_curve(accuracy: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moving mean over `WINDOW` steps of the batch accuracy (S, T), at most `POINTS` points of it: the steps,
    counted from 1, and the means (S, points)."""
    steps = accuracy.shape[1]
    smooth = moving_mean(accuracy, min(WINDOW, max(1, steps // 3)))
    kept = np.unique(np.linspace(0, steps - 1, min(POINTS, steps)).round().astype(int))
    return kept + 1, smooth[:, kept]


# ---- Figures ----------------------------------------------------------------------------------------------

RATE, MOMENTUM = 0.1, 0.9  # of the paper's trainings, section 6.5
NAMES = {"vgg16": "VGG-16", "resnet": "PreAct-ResNet18"}


def learning_curves(
    networks: Sequence[str], gammas: Sequence[float], curves: Mapping[str, np.ndarray]
) -> plt.Figure:
    """Batch accuracy against the step, a panel a network, a line with its band for each first γ: "steps"
    (1, T), "NETWORK.gGAMMA" (S, T)."""
    fig, axes = subplots(1, len(networks), figsize=(8, 3.4), sharey=True)
    shades = plt.cm.viridis(np.linspace(0.0, 0.75, len(gammas)))
    at = curves["steps"][0]
    for ax, network in zip(axes, networks):
        for gamma, shade in zip(gammas, shades):
            mean, half = mean_and_interval(curves[tag(network, gamma)])
            ax.plot(at, mean, color=shade, label=f"γ = {gamma:g}")
            ax.fill_between(at, mean - half, mean + half, color=shade, alpha=0.2, linewidth=0)
        ax.set(title=NAMES[network], xlabel="step")
    axes[0].set_ylabel("batch accuracy")
    axes[-1].legend(fontsize=9.5)
    return fig


def eigenvalues(
    networks: Sequence[str], gammas: Sequence[float], found: Mapping[str, np.ndarray]
) -> plt.Figure:
    """Geometric mean of λ_max at the start, "NETWORK.gGAMMA" (S,), against γ, and a line like γ²."""
    fig, ax = subplots(figsize=(6.2, 3.4))
    for network, mark, up in zip(networks, "os", (7, -16)):
        means = np.exp([np.log(found[tag(network, gamma)]).mean() for gamma in gammas])
        ax.plot(gammas, means, mark + "-", color=COLORS["batch"])
        style = {"textcoords": "offset points", "color": COLORS["batch"], "fontsize": 9.5, "ha": "right"}
        ax.annotate(NAMES[network], (gammas[-1], means[-1]), (6, up), **style)
    middle = np.exp(np.mean([np.log(found[tag(network, 1.0)]).mean() for network in networks]))
    ax.plot(gammas, middle * np.array(gammas) ** 2, ":", color=COLORS["theory"])
    style = {"textcoords": "offset points", "fontsize": 9.5}
    ax.annotate("like γ²", (gammas[0], middle * gammas[0] ** 2), (10, -4), **style)
    critical = 2 * (1 + MOMENTUM) / RATE
    ax.axhline(critical, color=COLORS["printed"], linewidth=1, linestyle=(0, (4, 3)), zorder=0.9)
    place = {"xycoords": ax.get_yaxis_transform(), "va": "center", "color": COLORS["printed"]}
    ax.annotate(f"paper: its rate\n{RATE:g} is critical", (1.0, critical), (4, 0), **style, **place)
    ax.set(xscale="log", yscale="log", xlabel="first γ", ylabel=r"$\lambda_{\max}$ at the start")
    ax.set_title("Does the curvature fall with γ?")
    ax.minorticks_off()
    ax.margins(y=0.15)
    return fig


# ---- Each figure of the page, from the results of its run -----------------------------------------------


def _draw_curves(results: Results) -> plt.Figure:
    return learning_curves(("vgg16", "resnet"), parameters_of(results).gammas, points_of(results, "curves"))


def _draw_eigenvalue(results: Results) -> plt.Figure:
    return eigenvalues(("vgg16", "resnet"), parameters_of(results).gammas, points_of(results, "eigenvalue"))


FIGURES = {"curves": _draw_curves, "eigenvalue": _draw_eigenvalue}
