"""How curved is a fresh network's loss? Its largest Fisher eigenvalue, in the four ways to treat the
statistics of batch norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
from torch import Tensor

from bnbook.chapters.mean_field import NETS, TOLERANCE, drawn, see_population
from bnbook.figures import COLORS
from bnbook.meanfield import Convolutional, FullyConnected
from bnbook.plots.axes import points
from bnbook.probes.fisher import LargestEigenvalue, largest_eigenvalue

#: Name -> normalizer, statistics of the probe, and the equations that are right for it.
CASES = {
    "none": ("none", "batch", "corrected"),
    "detached": ("batch", "detached", "corrected"),
    "population": ("batch", "population", "corrected"),
    "through": ("batch", "batch", "through_batch"),
}


def eigenvalue_in(
    case: str,
    architecture: FullyConnected | Convolutional,
    seed: int,
    inputs: Tensor,
    further: Tensor | None = None,
    *,
    outputs: int | str = 0,
    gamma: float = 1.0,
) -> LargestEigenvalue:
    """λ_max of the weights' Fisher matrix of a fresh network, for a case of `CASES`.

    inputs (m, ...): those of the matrix; further (n, ...): those of the population's statistics.
    """
    norm, statistics, _ = CASES[case]
    network = drawn(architecture, norm, seed, gamma)
    if statistics == "population":
        see_population(network, further)
    return largest_eigenvalue(network, inputs, outputs, statistics=statistics, tolerance=TOLERANCE)


# ---- Figures ----------------------------------------------------------------------------------------------

Curves = Mapping[str, np.ndarray]
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


def figure_one(momentum: float, measured: Curves, curves: Curves) -> plt.Figure:
    """λ_max and 2 (1 + μ) / λ_max against γ, a row a network: curves "gamma" and "LINE.NET" (1, γ), measured
    "NET.CASE" (S,) at γ = 1."""
    fig, axes = plt.subplots(2, 2, figsize=(7.8, 6.4), sharex=True)
    for row, (net, title) in zip(axes, NETS.items()):
        for ax, of_lambda in zip(row, (lambda value: value, lambda value: 2 * (1 + momentum) / value)):
            for name, (words, dash, color) in LINES.items():
                line = of_lambda(curves[f"{name}.{net}"][0])
                ax.plot(curves["gamma"][0], line, dash, color=color, label=words)
            for case, (_, mark, color) in MARKS.items():
                scale = np.ones_like(AT) if case == "none" else AT**2
                values = of_lambda(measured[f"{net}.{case}"][:, None] * scale)
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


def sweeps(places: Mapping[str, Sequence[int]], labels: Mapping[str, str], curves: Curves) -> plt.Figure:
    """λ_max against width, inputs and outputs: "SWEEP.CASE" (S, X) and "SWEEP_theory.CASE" (1, X)."""
    fig, axes = plt.subplots(1, len(places), figsize=(8.6, 3.3))
    for ax, (name, at) in zip(axes, places.items()):
        for case, (words, _, color) in MARKS.items():
            style = {"color": color, "markersize": 4.5, "capsize": 2, "label": words}
            points(ax, at, curves[f"{name}.{case}"], "o", **style)
            ax.plot(at, curves[f"{name}_theory.{case}"][0], color=color)
        ax.set(xscale="log", yscale="log", xlabel=labels[name])
        ax.set_xticks(at, [str(place) for place in at], fontsize=8)
        ax.minorticks_off()
    axes[0].set_ylabel(r"$\lambda_{\max}$, γ = 1")
    handles, words = axes[0].get_legend_handles_labels()
    fig.legend(handles, words, loc="outside lower center", ncols=3, fontsize=9)
    return fig
