"""Can six numbers a layer describe a network? What is counted beside the letters, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

from bnbook.chapters.mean_field import ARMS, DASHES, LETTERS, THEORY, letters
from bnbook.figures import COLORS, LABELS, band
from bnbook.plots.axes import name_ticks, points
from bnbook.plots.layout import subplots
from bnbook.results import Results

FORWARD, BACKWARD = ("q", "q_xy", "q_hat", "q_hat_xy"), ("q_tilde", "q_tilde_xy")


def independent_directions(x: Tensor) -> float:
    """(tr C)² / tr C² of the inputs' covariance C: how many equally large directions their differences
    fill."""
    covariance = torch.cov(x.double().T, correction=0)
    return (covariance.trace() ** 2 / covariance.square().sum()).item()


def operations(
    pixels: int,
    seeds: int,
    width: int,
    inputs: int,
    widths: Sequence[int],
    width_seeds: int,
    batches: Sequence[int],
    many_inputs: int,
    deep_layers: int,
    deep_width: int,
) -> int:
    """Additions and multiplications of the chapter on six numbers: four per weight and input, forth and
    back."""

    def one(hidden: int, depth: int, m: int) -> int:
        return 4 * m * sum(a * b for a, b in pairwise([pixels, *[hidden] * (depth - 1), 10]))

    each_seed = 8 * one(width, 4, inputs) + sum(one(width, 4, m) for m in [many_inputs, *batches])
    each_seed += 2 * one(deep_width, deep_layers, inputs)
    return seeds * each_seed + width_seeds * 2 * sum(one(n, 4, inputs) for n in widths)


# ---- Figures ----------------------------------------------------------------------------------------------

#: Inputs -> words, mark, and what fills it (None: the ink of the arm).
INPUTS = {
    "gaussian": ("Gaussian inputs", "o", None),
    "images": ("images", "s", "white"),
    "centred": ("images, centred pixel by pixel", "^", None),
}


def layers(results: Results) -> plt.Figure:
    """The six letters by layer; the readout's activations average over few units."""
    columns = {"activations": (FORWARD, slice(0, -1)), "gradients": (BACKWARD, slice(1, None))}
    return letters(results, "layers", columns)


def images(results: Results) -> plt.Figure:
    """Measured over the corrected theory, letter by letter in the hidden layers, a panel for each norm."""
    hidden = results["curve.images.none.images"].shape[1] // len(FORWARD + BACKWARD)
    names = [f"{LETTERS[each][:-1]}^{l}$" for each in FORWARD + BACKWARD for l in range(1, hidden + 1)]
    fig, axes = subplots(2, 1, figsize=(7.4, 5.6), sharex=True, sharey=True)
    for ax, norm in zip(axes, ARMS):
        ax.axhspan(0.9, 1.1, color="#000000", alpha=0.07, linewidth=0)
        ax.axhline(1, color=COLORS["theory"], linewidth=0.8)
        for shift, (kind, (label, marker, face)) in zip((-0.22, 0, 0.22), INPUTS.items()):
            style = {"markersize": 4.5, "capsize": 2, "linewidth": 1.2, "label": label}
            style |= {"color": COLORS[norm], "markerfacecolor": face}
            values = results[f"curve.images.{norm}.{kind}"]
            points(ax, np.arange(len(names)) + shift, values, marker, **style)
        ax.set_ylabel("measured / corrected")
        ax.set_title(LABELS[norm], loc="left")
    axes[1].set_xticks(range(len(names)), names)
    axes[0].legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.08))
    return fig


def largest_eigenvalue(results: Results) -> plt.Figure:
    """The bound on λ_max and the learning rate 2 (1 + μ) / λ_max against γ: theory, and what was measured at γ = 1."""
    curves = {name: results[f"curve.lambda_max.{name}"] for name in ("none", "printed", "corrected")}
    gammas, (momentum,) = results["curve.lambda_max.gamma"][0], results["curve.lambda_max.momentum"]
    fig, axes = subplots(1, 2, figsize=(7.4, 4.3))
    at = np.array([0.5, 1, 2, 3, 4, 5])
    for ax, of_lambda in zip(axes, (lambda bound: bound, lambda bound: 2 * (1 + momentum) / bound)):
        for name, dash, color, words in (
            ("none", "-", "none", "without batch norm"),
            ("printed", "--", "batch", "with, printed"),
            ("corrected", "-", "batch", "with, corrected"),
        ):
            line = of_lambda(np.broadcast_to(curves[name][0], gammas.shape))
            ax.plot(gammas, line, dash, color=COLORS[color], label=f"theory, {words}")
        for kind, shift in (("gaussian", -0.03), ("images", 0.03)):
            words, marker, face = INPUTS[kind]
            for norm in ARMS:
                bound = results[f"bound.{norm}.{kind}"]
                values = bound[:, None] * (at**2 if norm == "batch" else np.ones_like(at))
                label = f"measured, {words}" if norm == "batch" else None
                style = {"color": COLORS[norm], "markersize": 5, "capsize": 2, "markerfacecolor": face}
                points(ax, at + shift, of_lambda(values), marker, label=label, **style)
        line = of_lambda(results["curve.lambda_max.through"][:, None] * gammas**2).mean(axis=0)
        ax.plot(gammas, line, ":", label="measured, through statistics", **THEORY)
        ax.set(yscale="log", xlabel=r"$\gamma$")
    axes[0].set(title="(a)", ylabel=r"lower bound on $\lambda_{\max}$", ylim=(10, None))
    axes[1].set(title="(b)", ylabel=r"critical learning rate $\eta_*$", ylim=(None, 1))
    fig.legend(*axes[0].get_legend_handles_labels(), ncols=2, loc="outside lower center", fontsize=8.5)
    return fig


def convergence(results: Results) -> plt.Figure:
    """Errors of single networks by width, and the bound's excess by inputs beside what theory says."""
    curves = {name: results[f"curve.convergence.{name}"] for name in (*ARMS, "excess", "predicted")}
    widths, batches = (results[f"curve.convergence.{name}"][0] for name in ("widths", "batches"))
    fig, (left, right) = subplots(1, 2, figsize=(7.4, 3.6))
    for norm in ARMS:
        points(left, widths, curves[norm], "o", color=COLORS[norm], label=LABELS[norm])
    guide = curves["none"].mean(axis=0)[0] * np.sqrt(widths[0] / widths)
    left.plot(widths, guide, ":", label=r"$\propto 1/\sqrt{N}$", **THEORY)
    left.set(xlabel="units of a layer $N$", ylabel="relative error of one network")
    points(right, batches, curves["excess"], "o", color=COLORS["batch"], label="measured")
    right.plot(batches, curves["predicted"][0], color=COLORS["corrected"], label="corrected for finite $m$")
    guide = curves["excess"].mean(axis=0)[0] * batches[0] / batches
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


def depth(results: Results) -> plt.Figure:
    """Mean square gradients in layers 1 to L, measured and by theory."""
    fig, ax = subplots(figsize=(7.2, 3.8))
    for norm in ARMS:
        values = results[f"curve.depth.{norm}"]
        layers = np.arange(1, values.shape[1] + 1)
        style = {"color": COLORS[norm], "marker": "o", "linestyle": ""}
        band(ax, layers, values, label=f"measured, {LABELS[norm]}", **style)
    for equations, dash in DASHES.items():
        line, label = results[f"curve.depth.theory.{equations}"][0], f"with batch norm, {equations}"
        ax.plot(layers, line, dash, color=COLORS[equations], label=label)
    line = results["curve.depth.theory.none"][0]
    ax.plot(layers, line, ":", color=COLORS["none"], label="without, theory")
    ax.set(yscale="log", xlabel="layer $l$", ylabel=r"mean square gradient $\tilde q^{\,l}$")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return fig
