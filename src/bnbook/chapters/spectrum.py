"""Smooth in which mode? The page's figure."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import LABELS, parameters_of, points_of
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

#: Arm -> ink, dash and words: batch norm has one ink, whatever its statistics.
LINES = {
    "none": ("none", "-", LABELS["none"]),
    "batch": ("batch", "-", "statistics of the batch"),
    "constant": ("batch", "--", "held constant"),
    "running": ("batch", ":", "running averages"),
}
LINEAR = 0.05  # the axis is linear below, logarithmic beyond
SMOOTH = 3  # places, standard deviation


def densities(results: Results) -> plt.Figure:
    """Density of the Hessian's eigenvalues on the axis asinh(λ / 0.05), "MODE.DEPTH" (S, X): mean over the seeds,
    smoothed over SMOOTH places, for near zero few nodes of the quadrature stand for many eigenvalues."""
    depths, found = parameters_of(results).depths, points_of(results, "densities")
    places = np.linspace(np.arcsinh(-10 / LINEAR), np.arcsinh(150 / LINEAR), 121)
    bell, panels = np.exp(-((np.arange(-4 * SMOOTH, 4 * SMOOTH + 1) / SMOOTH) ** 2) / 2), []
    for name, depth in zip(("shallow", "deep"), depths):
        arms = {}
        for arm, (ink, dash, words) in LINES.items():
            mean = np.convolve(found[f"{arm}.{name}"].mean(axis=0), bell / bell.sum(), mode="same")
            arms[arm] = dict(y=np.maximum(mean, 1e-12), color=ink, look=dash, label=words)
        panels.append(Panel(arms=arms, title=f"{depth} layers"))
    values = (-10, -1, -0.1, 0, 0.1, 1, 10, 100)
    ticks = {np.arcsinh(at / LINEAR): f"{at:g}".replace("-", "−") for at in values}
    words = dict(x=places, ticks=ticks, xlim=(places[0], places[-1]), log="y", ylim=(1e-5, 2))
    words |= dict(xlabel="eigenvalue", ylabel="density")
    return compare(found, panels, figsize=(8.0, 4.0), sharey=True, **words)
