"""Figures of the chapter on gradient explosion."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, log_band, mean_and_interval
from bnbook.plots.axes import name_ticks, points

Curves = dict[str, np.ndarray]
#: Words, mark, and where the words stand beside a point: all four have batch norm, and so its ink.
NONLINEARITIES = {
    "relu": ("ReLU", "o", (0, 11)),
    "tanh": ("tanh", "s", (0, 12)),
    "linear": ("linear", "D", (0, 10)),
    "zigzag": ("zigzag", "^", (-28, 0)),
}
#: Where batch norm stands -> words, ink, mark with dash.
KINDS = {
    "batch": ("batch norm in every layer", COLORS["batch"], "o-"),
    "residual": ("the same with skip connections", COLORS["skip"], "s--"),
    "none": ("no batch norm", COLORS["none"], "D-"),
    "one": ("one batch norm, in the middle", COLORS["one"], "^-."),
}
PLACES = {
    "batch": ("every layer", COLORS["batch"], "o-"),
    "one_last": ("the last only", COLORS["one"], ">:"),
    "one_middle": ("the middle one only", COLORS["one"], "^-."),
    "one_first": ("the first only", COLORS["one"], "<--"),
    "none": ("none", COLORS["none"], "D-"),
}
THEORY = {"color": COLORS["theory"]}


def rates(sizes: Sequence[int], measured: Curves, at: np.ndarray, theory: Curves) -> plt.Figure:
    """Growth of the squared gradient against the batch size: measured (S, sizes), theory (1, at) by name."""
    fig, ax = plt.subplots(figsize=(7.2, 4.4))
    ink = {"color": COLORS["batch"]}
    middle = len(sizes) // 2
    for name, (words, mark, beside) in NONLINEARITIES.items():
        ax.plot(at, theory[name][0], linewidth=1.2, zorder=1, **ink)
        points(ax, sizes, measured[name], mark, markersize=5, capsize=2.5, **ink)
        place = (sizes[middle], measured[name][:, middle].mean())
        style = {"textcoords": "offset points", "ha": "center", "va": "center", "fontsize": 10}
        ax.annotate(words, place, beside, annotation_clip=False, **style, **ink)
    limit = math.pi / (math.pi - 1)
    for value, text, dash, size in (
        (limit, r"$\frac{\pi}{\pi-1}$", "--", 13),
        (limit**0.5, "its root", ":", 9),
    ):
        ax.axhline(value, linewidth=0.9, linestyle=dash, zorder=0.9, **THEORY)
        beside = {"textcoords": "offset points", "va": "center", "annotation_clip": False}
        ax.annotate(text, (2048, value), (7, 0), fontsize=size, **beside)
    ax.set(xscale="log", yscale="log", xlim=(6.3, 2048), ylim=(0.95, 8), xlabel="batch size $m$")
    ax.set_ylabel(r"growth per layer, $\lambda_m$ (squared gradient)")
    name_ticks(ax.set_xticks, sizes)
    name_ticks(ax.set_yticks, [1, 1.2, 1.5, 2, 3, 4, 6])
    return fig


def layers(norms: Curves, one_layer: float, skipped: np.ndarray) -> plt.Figure:
    """Norms (S, hidden layers) by kind; theory: the factor of one layer, and the profile of skip
    connections."""
    fig, ax = plt.subplots(figsize=(7.2, 4.2))
    index = np.arange(1, norms["batch"].shape[1] + 1)
    for kind in ("batch", "residual", "none"):
        label, color, _ = KINDS[kind]
        log_band(ax, index, norms[kind], color=color, label=label)
    start = 25 if len(index) >= 40 else (len(index) + 1) // 2  # where theory is set to agree
    height = {kind: np.exp(np.log(values).mean(0))[start - 1] for kind, values in norms.items()}
    line = height["batch"] * one_layer ** (start - index)
    ax.plot(index, line, ":", label=r"theory, $\lambda_{64}^{1/2}$ a layer", **THEORY)
    line = height["residual"] * skipped / skipped[start - 1]
    ax.plot(index[1:], line[1:], "--", label="theory, skip connections", **THEORY)
    ax.set(yscale="log", xlabel="layer", ylabel=r"$\|\partial\ell/\partial W^l\|$")
    ax.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    return fig


def one_or_many(depths: Sequence[int], first: Curves, rough: Curves) -> plt.Figure:
    """First layer's squared gradient and roughness of the loss, (S, depths) by place of batch norm."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 4.0))
    for kind, (label, color, look) in PLACES.items():
        style = {"color": color, "marker": look[0], "linestyle": look[1:], "markersize": 4}
        log_band(left, depths, np.sqrt(first[kind]), label=label, **style)
        if kind in rough:
            log_band(right, depths, rough[kind], **style)
    left.set_ylabel(r"first layer's $\|\partial\ell/\partial W^1\|$")
    right.set_ylabel("change of the gradient per distance")
    for ax in (left, right):
        ax.set(yscale="log", xlabel="hidden layers", xticks=depths)
    style = {"alignment": "left", "fontsize": 9}  # a phone shows the left of it first
    fig.legend(title="batch norm after", ncols=5, loc="outside upper center", **style)
    return fig


def turning(turned: np.ndarray, steps: Sequence[int]) -> plt.Figure:
    """How far a step turns each hidden layer, (S, steps, layers)."""
    fig, ax = plt.subplots(figsize=(7.2, 4.0))
    shades = plt.cm.viridis(np.linspace(0, 0.9, len(steps)))
    for k, (step, shade) in enumerate(zip(steps, shades)):
        log_band(ax, np.arange(1, turned.shape[2] + 1), turned[:, k], color=shade, label=f"step {step}")
    ax.set(yscale="log", xlabel="layer", ylabel=r"$\eta\,\|\partial\ell/\partial W^l\|\,/\,\|W^l\|$")
    ax.legend(ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig


def training(rates: Sequence[float], depths: dict[str, int], accuracy: Curves) -> plt.Figure:
    """Shares of right answers (S, rates) by "SIZE.KIND", a panel for each size."""
    fig, axes = plt.subplots(1, len(depths), figsize=(7.8, 3.6), sharey=True)
    for ax, (size, depth) in zip(axes, depths.items()):
        for kind, (label, color, look) in KINDS.items():
            mean, half = mean_and_interval(accuracy[f"{size}.{kind}"])
            ax.plot(rates, mean, look, markersize=4, color=color, label=label)
            ax.fill_between(rates, mean - half, mean + half, color=color, alpha=0.18, linewidth=0)
        ax.axhline(0.1, color=COLORS["printed"], linewidth=0.8, linestyle=":")
        ax.set(xscale="log", xlabel="learning rate", title=f"{depth} layers", ylim=(0, 1))
    axes[0].set_ylabel("share of right answers")
    handles, names = axes[0].get_legend_handles_labels()
    fig.legend(handles, names, ncols=2, loc="outside lower center", fontsize=9.5)
    return fig
