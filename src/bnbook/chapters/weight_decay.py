"""Is weight decay a learning rate? The page's figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, log_band, parameters_of, points_of
from bnbook.plots.axes import power
from bnbook.plots.layout import is_narrow, subplots
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

DASHES = ("-", "--", ":")  # of the learning rates, the smallest first
#: What a pair of recipes is trained with -> ink, dash and words: batch norm has one ink, whatever its ε.
PAIRS = {
    "batch": ("batch", "-", r"batch norm, $\varepsilon=0$"),
    "eps": ("batch", "--", r"$\varepsilon=10^{-5}$"),
    "none": ("none", "-", "without batch norm"),
}


def pairs(results: Results) -> plt.Figure:
    """How far answers are apart by step: "schedule.NORM" and "scaled.NORM" (S, T), a line for each seed."""
    points = {name: np.maximum(values, 1e-17) for name, values in points_of(results, "pairs").items()}
    arms = {
        name: dict(color=ink, look=dash, label=words, alpha=0.8) for name, (ink, dash, words) in PAIRS.items()
    }
    titles = {"schedule.{}": "decay, or a growing rate"}
    titles["scaled.{}"] = r"$(w,\eta,\lambda)$, or $(cw,c^2\eta,\lambda/c^2)$"
    words = dict(xlabel="step", ylabel="difference of the answers", ylim=(1e-17, 1e3), marks_y={"": 1e-9})
    words |= dict(x=range(len(points["scaled.batch"][0])), log="y", by="seeds")
    return compare(points, titles, arms, figsize=(8.0, 3.6), sharey=True, **words)


def angles(results: Results) -> plt.Figure:
    """Degrees a step, "with.pROW.eCOLUMN" and "without.pROW.eCOLUMN" (S, X), a dash for each rate."""
    own, curves = parameters_of(results), points_of(results, "angles")
    rates, products, steps = own.rates, own.products, curves["steps"][0]
    fig, axes = subplots(1, 2, figsize=(8.0, 4.2), sharey=True)
    middle = len(products) // 2
    for ax, (name, arm) in zip(axes, (("with", "batch"), ("without", "none"))):
        for row, product in enumerate(products):
            if name == "without" and row != middle:
                continue
            expected = np.degrees((2 * product) ** 0.5)
            for column, (rate, dash) in enumerate(zip(rates, DASHES)):
                label = rf"$\eta={rate:g}$" if row == middle else None
                values = curves[f"{name}.p{row}.e{column}"]
                log_band(ax, steps, values, color=COLORS[arm], linestyle=dash, label=label)
            ax.axhline(expected, color=COLORS["theory"], linewidth=1)
            if is_narrow() and name == "with" and row == middle:
                continue  # no room between the others; the other panel names it
            below = is_narrow() and row < middle
            words = {"textcoords": "offset points", "fontsize": 8.5, "va": "top" if below else "bottom"}
            place, off = (steps[0], expected), (0, -2 if below else 2)
            ax.annotate(rf"$\eta\lambda=$ {power(product)}", place, off, color=COLORS["theory"], **words)
        ax.set(xscale="log", yscale="log", ylim=(0.03, 30), title=f"{name} batch norm", xlabel="step")
        ax.legend(loc="lower center", fontsize=8.5)
    axes[0].set_ylabel("degrees a step")
    return fig


def accuracy_by_product(results: Results) -> plt.Figure:
    """Test accuracy (S, products, rates) in percent against ηλ, a line for each rate."""
    own, found = parameters_of(results), points_of(results, "accuracy")["grid"]
    arms = {
        f"{rate:g}": dict(y=found[:, :, place], color="batch", look=f"o{dash}", label=rf"$\eta={rate:g}$")
        for place, (rate, dash) in enumerate(zip(own.rates, DASHES))
    }
    words = dict(xlabel=r"$\eta\lambda$", ylabel="test accuracy (%)", log="x", by="points", times=100)
    return compare({}, [Panel(x=own.products, ticks=own.products, **words)], arms, figsize=(6.0, 3.6))
