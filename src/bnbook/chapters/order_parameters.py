"""Can six numbers a layer describe a network? The figures."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.chapters.mean_field import ARMS, DASHES, THEORY, Curves
from bnbook.figures import COLORS, LABELS, band
from bnbook.plots.axes import name_ticks, points

#: Inputs -> words, mark, and what fills it (None: the ink of the arm).
INPUTS = {
    "gaussian": ("Gaussian inputs", "o", None),
    "images": ("images", "s", "white"),
    "centred": ("images, centred pixel by pixel", "^", None),
}


def ratios(names: Sequence[str], curves: Curves) -> plt.Figure:
    """Measured over theory, "NORM.KIND" (S, names), a panel for each norm."""
    fig, axes = plt.subplots(2, 1, figsize=(7.4, 5.6), sharex=True, sharey=True)
    for ax, norm in zip(axes, ARMS):
        ax.axhspan(0.9, 1.1, color="#000000", alpha=0.07, linewidth=0)
        ax.axhline(1, color=COLORS["theory"], linewidth=0.8)
        for shift, (kind, (label, marker, face)) in zip((-0.22, 0, 0.22), INPUTS.items()):
            style = {"markersize": 4.5, "capsize": 2, "linewidth": 1.2, "label": label}
            style |= {"color": COLORS[norm], "markerfacecolor": face}
            points(ax, np.arange(len(names)) + shift, curves[f"{norm}.{kind}"], marker, **style)
        ax.set_ylabel("measured / corrected")
        ax.set_title(LABELS[norm], loc="left")
    axes[1].set_xticks(range(len(names)), names)
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.08))
    return fig


def largest_eigenvalue(
    gammas: np.ndarray, theory: Curves, bound: dict, through: np.ndarray, momentum: float
) -> plt.Figure:
    """The bound on λ_max and the learning rate 2 (1 + μ) / λ_max against γ.

    theory: "none", "printed", "corrected" (1, G); bound at γ = 1: (norm, kind) -> (S,); through: the same
    with gradients through the statistics, (S,).
    """
    fig, axes = plt.subplots(1, 2, figsize=(7.4, 4.3))
    at = np.array([0.5, 1, 2, 3, 4, 5])
    for ax, of_lambda in zip(axes, (lambda bound: bound, lambda bound: 2 * (1 + momentum) / bound)):
        for name, dash, color, words in (
            ("none", "-", "none", "without batch norm"),
            ("printed", "--", "batch", "with, printed"),
            ("corrected", "-", "batch", "with, corrected"),
        ):
            ax.plot(gammas, of_lambda(theory[name][0]), dash, color=COLORS[color], label=f"theory, {words}")
        for kind, shift in (("gaussian", -0.03), ("images", 0.03)):
            words, marker, face = INPUTS[kind]
            for norm in ARMS:
                values = bound[norm, kind][:, None] * (at**2 if norm == "batch" else np.ones_like(at))
                label = f"measured, {words}" if norm == "batch" else None
                style = {"color": COLORS[norm], "markersize": 5, "capsize": 2, "markerfacecolor": face}
                points(ax, at + shift, of_lambda(values), marker, label=label, **style)
        line = of_lambda(through[:, None] * gammas**2).mean(axis=0)
        ax.plot(gammas, line, ":", label="measured, through statistics", **THEORY)
        ax.set(yscale="log", xlabel=r"$\gamma$")
    axes[0].set(title="(a)", ylabel=r"lower bound on $\lambda_{\max}$", ylim=(10, None))
    axes[1].set(title="(b)", ylabel=r"critical learning rate $\eta_*$", ylim=(None, 1))
    fig.legend(*axes[0].get_legend_handles_labels(), ncols=2, loc="outside lower center", fontsize=8.5)
    return fig


def convergence(
    widths: Sequence[int], errors: Curves, batches: Sequence[int], excess: np.ndarray, predicted
) -> plt.Figure:
    """Errors (S, widths) by norm, and the bound's excess (S, batches) beside what theory says, (batches,)."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.6))
    for norm in ARMS:
        points(left, widths, errors[norm], "o", color=COLORS[norm], label=LABELS[norm])
    guide = errors["none"].mean(axis=0)[0] * np.sqrt(widths[0] / np.array(widths))
    left.plot(widths, guide, ":", label=r"$\propto 1/\sqrt{N}$", **THEORY)
    left.set(xlabel="units of a layer $N$", ylabel="relative error of one network")
    points(right, batches, excess, "o", color=COLORS["batch"], label="measured")
    right.plot(batches, predicted, color=COLORS["corrected"], label="corrected for finite $m$")
    guide = excess.mean(axis=0)[0] * batches[0] / np.array(batches)
    right.plot(batches, guide, ":", label=r"$\propto 1/m$", **THEORY)
    right.set(xlabel="number of inputs $m$", ylabel="bound, relative excess")
    for ax, ticks in ((left, widths), (right, batches)):
        ax.set(xscale="log", yscale="log")
        low, high = ax.get_ylim()
        name_ticks(ax.set_xticks, ticks)
        rough = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
        name_ticks(ax.set_yticks, [tick for tick in rough if low <= tick <= high])
        ax.legend(loc="lower left")
    return fig


def depth(curves: Curves) -> plt.Figure:
    """Mean square gradients in layers 1 to L: measured "none" and "batch" (S, L), theory "theory.NAME"
    (1, L)."""
    fig, ax = plt.subplots(figsize=(7.2, 3.8))
    layers = np.arange(1, curves["batch"].shape[1] + 1)
    for norm in ARMS:
        style = {"color": COLORS[norm], "marker": "o", "linestyle": ""}
        band(ax, layers, curves[norm], label=f"measured, {LABELS[norm]}", **style)
    for equations, dash in DASHES.items():
        label = f"with batch norm, {equations}"
        ax.plot(layers, curves[f"theory.{equations}"][0], dash, color=COLORS[equations], label=label)
    ax.plot(layers, curves["theory.none"][0], ":", color=COLORS["none"], label="without, theory")
    ax.set(yscale="log", xlabel="layer $l$", ylabel=r"mean square gradient $\tilde q^{\,l}$")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return fig
