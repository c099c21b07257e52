"""Measure your own network: the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bnbook.figures import COLORS
from bnbook.plots.layout import subplots
from bnbook.report import Report


def side_by_side(reports: Mapping[str, Sequence[Report]]) -> Figure:
    """Three columns (a network each), with its normalizer and without: the loss along the gradient, and the
    gradient by layer; one thin line a seed."""
    figure, axes = subplots(2, len(reports), figsize=(8.0, 5.3), squeeze=False)
    for (above, below), (name, seeds) in zip(axes.T, reports.items(), strict=True):
        drawn = {}
        for report in seeds:
            for one, ink, words in ((report, "batch", "normalized"), (report.beside, "none", "not")):
                steps = one.landscape.steps / one.learning_rate
                above.plot(steps, one.landscape.loss, color=COLORS[ink], linewidth=1)
                layers = np.arange(1, len(one.gradients.names) + 1)
                (drawn[words],) = below.plot(layers, one.gradients.weight, color=COLORS[ink], linewidth=1)
        above.set(title=name, xlabel="step, in learning rates")
        below.set(xlabel="layer", yscale="log")
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        style = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.28), "ncols": 2, "fontsize": 9}
        below.legend(drawn.values(), drawn, **style)
    axes[0, 0].set_ylabel("loss along the gradient")
    axes[1, 0].set_ylabel("gradient norm of the layer")
    return figure
