"""The report's figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from bnbook.report.report import Report

INKS = ("#0072b2", "#d55e00")  # apart for every kind of colour vision
MARKS = ("o", "s")


def draw(reports: Sequence[Report]) -> Figure:
    """Loss and relative change of the gradient against the step along it; cosine of the covariate shift and
    gradient norm by layer."""
    figure = Figure(figsize=(8.0, 5.6), layout="constrained")
    (loss, change), (cosine, gradient) = figure.subplots(2, 2)
    for report, ink, mark in zip(reports, INKS, MARKS, strict=False):
        style = {"color": ink, "marker": mark, "markersize": 4, "label": report.name}
        if report.landscape:
            seen = report.landscape
            steps = (seen.steps / report.learning_rate).cpu().numpy()
            loss.plot(steps, seen.loss.cpu().numpy(), **style)
            loss.axhline(report.loss, color=ink, linewidth=0.8, linestyle=":")
            change.plot(steps, (seen.gradient_distance / seen.start_norm).cpu().numpy(), **style)
        if report.shift:
            cosine.plot(np.arange(1, len(report.shift.names) + 1), report.shift.cosine.cpu().numpy(), **style)
        if report.gradients:
            gradient.plot(np.arange(1, len(report.gradients.names) + 1), report.gradients.weight, **style)
    along = "step along the gradient, in learning rates"
    loss.set(title="loss (dotted: where it stands)", xlabel=along)
    change.set(title="change of the gradient over its norm", xlabel=along)
    cosine.set(title="covariate shift: cosine of G and G′", xlabel="layer", ylim=(None, 1.02))
    gradient.set(title="gradient norm of the weights", xlabel="layer")
    if reports[0].gradients:
        gradient.set_yscale("log")
    if len(reports) > 1:
        loss.legend(frameon=False)
    for axes in (loss, change, cosine, gradient):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
