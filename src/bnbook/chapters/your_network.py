"""Measure your own network: the figure and its points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator

from bnbook.figures import points_of
from bnbook.plots.panels import Panel, compare
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
    arms = {arm: dict(color=ink, linewidth=1, label=words) for arm, (ink, words) in ARMS.items()}
    above = dict(xlabel="step, in learning rates", ylabel="loss along the gradient")
    whole = dict(also=lambda ax: ax.xaxis.set_major_locator(MaxNLocator(integer=True)))
    below = dict(xlabel="layer", ylabel="gradient norm of the layer", log="y", **whole)
    panels = [
        [Panel(curve=f"loss.{name}.{{}}", x=f"steps.{name}", title=name, **above) for name in names],
        [Panel(curve=f"gradient.{name}.{{}}", **below) for name in names],
    ]
    return compare(drawn, panels, arms, figsize=(8.0, 5.3), by="seeds")
