"""The figures of the chapter on what sets the smoothness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots.line_names.marks import marks
from bnbook.plots.panels import line_with_band

DASHES = ((0, (1, 1.2)), (0, (5, 2)), "-")  # the slowest rate first
TITLES = {norm: LABELS[norm] for norm in ("none", "batch")}


def edge(
    curves: Mapping[str, np.ndarray], looks: Sequence[int], rates: Sequence[float], halved: Sequence[int]
) -> plt.Figure:
    """A column an arm: above η λ_max at each rate, top.RATE.NORM (1, 3, P); below λ_max at the largest rate,
    kept.NORM, and after it was halved, halved.NORM."""
    fig, axes = plt.subplots(2, 2, figsize=(7.6, 5.6), sharex=True, sharey="row")
    for (above, below), norm in zip(axes.T, TITLES, strict=True):
        for rate, dash in zip(rates, DASHES):
            style = dict(color=COLORS[norm], linestyle=dash, label=f"η = {rate:g}")
            line_with_band(above, looks, curves[f"top.{_tag(rate)}.{norm}"], **style)
        marks(above, y={"2": 2.0})
        above.set(title=TITLES[norm], ylim=(0, 4))
        above.legend(loc="lower right", fontsize=8.5)
        line_with_band(below, looks, curves[f"kept.{norm}"], color=COLORS[norm], label="rate kept")
        cut = dict(color=COLORS[norm], linestyle=DASHES[1], label="rate halved")
        line_with_band(below, halved, curves[f"halved.{norm}"], **cut)
        marks(below, y={"2/η": 2 / rates[-1], "4/η": 4 / rates[-1]})
        below.set(xlabel="training step", ylim=(0, 6 / rates[-1]))
        below.legend(loc="upper left", fontsize=8.5)
    axes[0, 0].set_ylabel(r"$\eta\,\lambda_{\max}$")
    axes[1, 0].set_ylabel(r"$\lambda_{\max}$")
    return fig


def _tag(rate: float) -> str:
    return f"lr{rate:g}".replace(".", "_")
