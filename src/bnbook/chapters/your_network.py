"""Measure your own network: the figure and its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from bnbook.figures import COLORS, points_of
from bnbook.plots.layout import subplots
from bnbook.report import Report
from bnbook.results import Results

ARMS = {
    "with": ("batch", "normalized"),
    "without": ("none", "not"),
}  # name -> ink, and what a legend calls it


def points(reports: Mapping[str, Sequence[Report]]) -> dict[str, np.ndarray]:
    """Of each network, with its normalizer and without: the loss along the gradient (S, A), its places in learning
    rates (1, A), and the norm of each layer's gradient (S, L)."""
    found = {}
    for name, seeds in reports.items():
        landscape = seeds[0].landscape
        found[f"steps.{name}"] = np.asarray(landscape.steps)[None] / seeds[0].learning_rate
        for arm, chosen in ("with", seeds), ("without", [report.beside for report in seeds]):
            found[f"loss.{name}.{arm}"] = np.stack([one.landscape.loss for one in chosen])
            found[f"gradient.{name}.{arm}"] = np.stack([one.gradients.weight for one in chosen])
    return found


def networks(results: Results) -> plt.Figure:
    """A column for each network, with its normalizer and without: the loss along the gradient, and the gradient by
    layer; one thin line a seed."""
    drawn = points_of(results, "networks")
    names = [key.removeprefix("steps.") for key in drawn if key.startswith("steps.")]
    figure, axes = subplots(2, len(names), figsize=(8.0, 5.3), squeeze=False)
    for (above, below), name in zip(axes.T, names, strict=True):
        lines = {}
        for arm, (ink, words) in ARMS.items():
            gradient = drawn[f"gradient.{name}.{arm}"]
            above.plot(
                drawn[f"steps.{name}"][0], drawn[f"loss.{name}.{arm}"].T, color=COLORS[ink], linewidth=1
            )
            layers = np.arange(1, gradient.shape[1] + 1)
            lines[words], *_ = below.plot(layers, gradient.T, color=COLORS[ink], linewidth=1)
        above.set(title=name, xlabel="step, in learning rates")
        below.set(xlabel="layer", yscale="log")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        style = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.28), "ncols": 2, "fontsize": 9}
        below.legend(lines.values(), lines, **style)
    axes[0, 0].set_ylabel("loss along the gradient")
    axes[1, 0].set_ylabel("gradient norm of the layer")
    return figure
