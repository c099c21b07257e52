"""Figures of the page on half-spaces, of recorded results alone, and the plane in which two losses are drawn."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.length_direction import FORMS, METHODS, Quadratic, draw_ratios
from bnbook.figures import points_of
from bnbook.plots.panels import Panel, compare

#: The problem of the figure of critical points, in the plane, and where its losses are drawn.
IN_PLANE = Quadratic(np.array([[1.0, 0.35], [0.35, 0.6]]), np.array([0.45, -0.1]))
SIDE = np.linspace(-4, 4, 41)
#: Bounds of the figure of margins.
BOUNDS = {
    "gap": "gap of the direction",
    "length": "slope in the length",
    "direction": "gradient in the direction",
    "combined": "whole gradient",
}
RACERS = ("gdnp", "gradient_descent", "accelerated")


def surfaces(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Losses over the plane (1, W, W), the line of S⁻¹u, and critical points (1, k, 2) on and off it."""
    points = points_of(results, "critical-points")
    line = np.outer(IN_PLANE.direction, (-9, 9))

    def contours(name: str):
        return lambda ax: (
            ax.contour(
                SIDE, SIDE, points[f"{name}.surface"][0], 22, cmap="cividis", linewidths=0.9, zorder=1
            ),
            ax.set(aspect="equal"),
        )

    def arms(name: str) -> dict[str, dict]:
        on_line, away = (points[f"{name}.{where}"].reshape(-1, 2).T for where in ("on_line", "away"))
        dots = dict(markersize=6)
        return {
            "line": dict(
                x=line[0], y=line[1], look="--", color="theory", linewidth=1, label="line of $S^{-1}u$"
            ),
            "on": dict(
                x=on_line[0], y=on_line[1], look="o", color="theory", label="critical, on the line", **dots
            ),
            "off": dict(
                x=away[0], y=away[1], look="D", color="wrong", label="critical, off the line", **dots
            ),
        }

    titles = {"logistic": "logistic loss", "ripple": r"$t-\sqrt{e}\,\sin t$"}
    panels = [Panel(title=words, arms=arms(name), also=contours(name)) for name, words in titles.items()]
    limits = dict(xlim=(SIDE[0], SIDE[-1]), ylim=(SIDE[0], SIDE[-1]))
    words = dict(xlabel=r"$\tilde w_1$", ylabel=r"$\tilde w_2$")
    return compare(points, panels, figsize=(7.4, 3.9), **limits, **words)


def margins(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Left over right side of the bounds on GDNP, printed and corrected."""
    panels = {
        words: {f"{name}_{form}": f"{form}: {form}" for form in FORMS} for name, words in BOUNDS.items()
    }
    return draw_ratios(results, panels, (-8, 8))


def races(results: Mapping[str, np.ndarray]) -> plt.Figure:
    """Relative excess loss (S, T) of each method at some steps."""
    points = {name: np.maximum(values, 1e-15) for name, values in points_of(results, "races").items()}
    words = dict(
        x="step", by="geometric", log="y", ylim=(1e-8, 3), xlabel="step $t$", ylabel="relative excess loss"
    )
    titles = {"gaussian.{}": "Gaussian", "images.{}": "images of two digits"}
    return compare(
        points, titles, {name: METHODS[name] for name in RACERS}, figsize=(7.4, 3.6), sharey=True, **words
    )
