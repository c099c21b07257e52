"""Figures of the chapter on how far the formula for the largest eigenvalue reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS, log_band
from bnbook.plots.axes import name_ticks, points

SETS = {"mnist": "MNIST", "cifar10": "CIFAR-10", "cifar10-auto": "CIFAR-10"}
SIZES = ("few", "many")


def against_depth(
    depths: Sequence[int], curves: Mapping[str, np.ndarray], inputs: Sequence[int], rule: float
) -> plt.Figure:
    """Largest eigenvalue by depth, a panel a batch size: "NORM.SIZE" (S, depths), and the rule's N / 2π."""
    fig, axes = plt.subplots(1, 2, figsize=(7.8, 3.9), sharey=True)
    for ax, size, m in zip(axes, SIZES, inputs):
        for norm in ("none", "batch"):
            log_band(ax, depths, curves[f"{norm}.{size}"], color=COLORS[norm], marker="o", label=LABELS[norm])
        ax.axhline(rule, color=COLORS["theory"], linewidth=1, linestyle=":", label=r"$N/2\pi$")
        ax.set(yscale="log", xlabel="layers $L$", title=f"batches of {m}", ylim=(rule / 2, None))
        ax.legend(loc="upper left")
        name_ticks(ax.set_xticks, depths)
    axes[0].set_ylabel(r"$\lambda_{\max}$, $\gamma = 1$")
    return fig


def beside_rule(sets: Sequence[str], inputs: Sequence[int], found: Mapping[str, np.ndarray]) -> plt.Figure:
    """Measured over N / 2π for each set and batch size: "one.setK.SIZE" and "whole.setK.SIZE" (S,)."""
    fig, ax = plt.subplots(figsize=(7.2, 3.2))
    cases = [(place, size) for place in range(len(sets)) for size in SIZES]
    for kind, mark, face, words, shift in (
        ("one", "o", COLORS["batch"], "one output, weights", -0.09),
        ("whole", "s", "white", "all outputs, all parameters", 0.09),
    ):
        style = {"color": COLORS["batch"], "markerfacecolor": face, "linestyle": "none", "label": words}
        values = np.stack([found[f"{kind}.set{place}.{size}"] for place, size in cases], axis=1)
        points(ax, np.arange(len(cases)) + shift, values, mark, **style)
    ax.axhline(1, color=COLORS["theory"], linewidth=1, linestyle=":")
    names = [
        f"{SETS.get(sets[place], sets[place])}\n$m$ = {inputs[SIZES.index(size)]}" for place, size in cases
    ]
    ax.set_xticks(range(len(cases)), names)
    ax.set(ylabel=r"$\lambda_{\max}$ over $N\gamma^2/2\pi$", ylim=(0, None))
    ax.legend(loc="upper left")
    return fig
