"""Figures of the chapter on noisy batch norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots.axes import points
from bnbook.plots.panels import DASHED, line_with_band, shares

NAMES = {"none": "without", "batch": "batch", "noisy": "noisy", "noise": "noise\nalone"}
INKS = ("none", "linf", "l1")  # of the convolutions


def control(
    failed: Mapping[str, np.ndarray],
    ratios: Mapping[str, np.ndarray],
    steps: Sequence[int],
    behind: float,
    start_steps: int,
) -> plt.Figure:
    """Left, trainings that did not start, NORM (S,) of 0 and 1; right, the noise's variance over that of the
    signal, LAYER (1, 3, E), and what it is behind batch norm."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.6), gridspec_kw={"width_ratios": (1, 1.3)})
    events = {(NAMES[norm], norm): values for norm, values in failed.items()}
    shares(left, events, [NAMES[norm] for norm in failed], f"not started after {start_steps} steps (%)")
    for (layer, curve), ink in zip(ratios.items(), INKS):
        line_with_band(right, steps, curve, color=COLORS[ink], label=f"convolution {layer}")
    right.axhline(behind, color=COLORS["noisy"], linewidth=1.2, label="behind batch norm (γ = 1)")
    right.set(yscale="log", xlabel="training step")
    right.set_title("variance of the noise / of the activations", fontsize=10)
    right.legend(fontsize=8)
    right.minorticks_off()
    return fig


def strength(found: Mapping[str, Mapping[float, np.ndarray]], chance: float) -> plt.Figure:
    """Accuracy in per cent, (S,), by the strength of the noise (0: none), behind batch norm and alone."""
    fig, ax = plt.subplots(figsize=(6.6, 3.3))
    least = 0.03  # where "none" stands on the logarithmic axis
    for norm, by_strength in found.items():
        at = [strength or least for strength in sorted(by_strength)]
        values = np.stack([by_strength[strength] for strength in sorted(by_strength)], axis=1)
        points(ax, at, values, "o-", color=COLORS[norm], label=LABELS[norm])
    ax.axhline(chance, color=COLORS["theory"], linewidth=0.8, linestyle=DASHED, zorder=0)
    ticks = sorted({strength for by_strength in found.values() for strength in by_strength} - {0.0})
    ax.set(xscale="log", xlabel="strength of the noise (1: the paper's)", ylabel="mean batch accuracy (%)")
    ax.set_xticks([least, *ticks], ["none", *(f"{strength:g}" for strength in ticks)])
    ax.minorticks_off()
    ax.legend(fontsize=9)
    return fig
