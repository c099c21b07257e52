"""How curved is a fresh network's loss? The four ways to treat the statistics of batch norm, and the figures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import NETS
from bnbook.figures import COLORS
from bnbook.plots.axes import points
from bnbook.plots.layout import subplots
from bnbook.results import Results

#: Name -> normalizer, statistics of the probe, and the equations that are right for it.
CASES = {
    "none": ("none", "batch", "corrected"),
    "detached": ("batch", "detached", "corrected"),
    "population": ("batch", "population", "corrected"),
    "through": ("batch", "batch", "through_batch"),
}

# ---- Figures ----------------------------------------------------------------------------------------------

LINES = {
    "none.printed": ("without, printed", "--", COLORS["none"]),
    "none.corrected": ("without, corrected", "-", COLORS["none"]),
    "batch.printed": ("with, printed", "--", COLORS["batch"]),
    "batch.corrected": ("with, corrected", "-", COLORS["batch"]),
    "batch.through_batch": ("with, through the batch", ":", COLORS["theory"]),
}
MARKS = {
    "none": ("without batch norm", "o", COLORS["none"]),
    "detached": ("constant statistics", "s", COLORS["batch"]),
    "through": ("through the batch", "D", COLORS["theory"]),
}
AT = np.array([0.5, 1, 2, 3, 4, 5])  # γ of the points; measured at 1


def figure_one(results: Results) -> plt.Figure:
    """λ_max and 2 (1 + μ) / λ_max against γ, a row a network: lines of the equations, points measured at γ = 1."""
    gammas, (momentum,) = results["curve.figure_one.gamma"][0], results["curve.figure_one.momentum"]
    fig, axes = subplots(2, 2, figsize=(7.8, 6.4), sharex=True)
    for row, (net, title) in zip(axes, NETS.items()):
        for ax, of_lambda in zip(row, (lambda value: value, lambda value: 2 * (1 + momentum) / value)):
            for name, (words, dash, color) in LINES.items():
                line = of_lambda(np.broadcast_to(results[f"curve.figure_one.{name}.{net}"][0], gammas.shape))
                ax.plot(gammas, line, dash, color=color, label=words)
            for case, (_, mark, color) in MARKS.items():
                scale = np.ones_like(AT) if case == "none" else AT**2
                values = of_lambda(results[f"value.{net}.gaussian.{case}"][:, None] * scale)
                style = {"color": color, "markersize": 4.5, "capsize": 2, "markerfacecolor": "white"}
                points(ax, AT, values, mark, **style)
            ax.set(yscale="log")
        row[0].set(title=title, ylabel=r"$\lambda_{\max}$")
        row[1].set(title=title, ylabel=r"$\eta_*$")
    for ax in axes[1]:
        ax.set_xlabel(r"$\gamma$")
    handles, words = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, words, loc="outside lower center", ncols=3, fontsize=9)
    return fig


def sweeps(results: Results) -> plt.Figure:
    """λ_max against width, inputs and outputs, and the lines of theory."""
    labels = {"width": "units N", "inputs": "inputs m", "outputs": "outputs"}
    fig, axes = subplots(1, len(labels), figsize=(8.6, 3.3))
    for ax, (name, label) in zip(axes, labels.items()):
        at = results[f"curve.sweeps.{name}"][0]
        for case, (words, _, color) in MARKS.items():
            style = {"color": color, "markersize": 4.5, "capsize": 2, "label": words}
            points(ax, at, results[f"curve.sweeps.{name}.{case}"], "o", **style)
            ax.plot(at, results[f"curve.sweeps.{name}_theory.{case}"][0], color=color)
        ax.set(xscale="log", yscale="log", xlabel=label)
        ax.set_xticks(at, [f"{place:.0f}" for place in at], fontsize=8)
        ax.minorticks_off()
    axes[0].set_ylabel(r"$\lambda_{\max}$, γ = 1")
    handles, words = axes[0].get_legend_handles_labels()
    fig.legend(handles, words, loc="outside lower center", ncols=3, fontsize=9)
    return fig
