"""Figures of the page on least squares in length and direction, of recorded results alone."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.length_direction import METHODS, draw_ratios
from bnbook.figures import points_of
from bnbook.plots.panels import Panel, compare

RACERS = ("direction", "gradient_descent", "accelerated")
PANELS = {
    "the linear rate": {
        "direction": "apart: direction, the theorem",
        "gradient_descent": "theory: plain gradient descent",
    },
    "the Rayleigh quotient": {
        "printed": "printed: parenthesis mended",
        "charitable": "part: eigenvalues, exponent, too",
        "corrected": "corrected: corrected",
    },
}


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Left over right side of the theorem, and of the bound of the Rayleigh quotient."""
    return draw_ratios(results, PANELS, (-8, 8))


def conditioning(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """The excess (S, T) of each method at condition number 100, and the steps (S, conditions) it needs."""
    points = points_of(results, "conditioning")
    (steps,), (conditions,) = points["step"], points["condition"]
    arms = {name: METHODS[name] for name in RACERS}
    bound = points["excess.direction"][:, 0].mean() * (1 - 1 / 100) ** (2 * steps)
    law = {"law": dict(y=bound, look=":", color="theory", label=r"$(1-\mu/L)^{2t}$")}
    dots = {name: style | dict(marker="o") for name, style in arms.items()}
    left = dict(title="condition number 100", xlabel="step $t$", ylabel="relative excess")
    right = dict(
        title="to a relative excess of $10^{-8}$", xlabel=r"condition number $L/\mu$", ylabel="steps"
    )
    panels = [
        Panel(curve="excess.{}", arms=arms | law, x=steps, ylim=(1e-9, 2), log="y", **left),
        Panel(curve="needed.{}", arms=dots, x=conditions, ticks=conditions, log="xy", **right),
    ]
    return compare(points, panels, figsize=(7.4, 3.7), by="geometric", legend="each")
