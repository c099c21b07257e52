"""Figures of the chapter on noisy batch norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, LABELS
from bnbook.plots import printed
from bnbook.plots.axes import points
from bnbook.plots.line_names.marks import marks
from bnbook.plots.line_names.places import letters
from bnbook.plots.panels import line_with_band, shares

NAMES = {"none": "without", "batch": "batch", "noisy": "noisy", "noise": "noise\nalone"}
LINES = ("-", "--", ":")  # of the convolutions, which are all of the plain network


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
    left.set_ylim(-3, 124)  # room for the words above
    left.set_yticks(range(0, 101, 20))
    marks(left, y=printed.NO_START)
    for (layer, curve), dash in zip(ratios.items(), LINES):
        style = dict(color=COLORS["none"], linestyle=dash, label=f"convolution {layer}")
        line_with_band(right, steps, curve, **style)
    right.axhline(behind, color=COLORS["noisy"], linewidth=1.2, label="behind batch norm (γ = 1)")
    right.set(yscale="log", xlabel="training step")
    left.set_title("Does a training start?", fontsize=10.5)
    right.set_title("variance of the noise / of the activations", fontsize=10.5)
    right.legend(fontsize=letters(right))
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
    marks(ax, x={"paper's noise": 1.0}, y={"guessing": chance})
    ticks = sorted({strength for by_strength in found.values() for strength in by_strength} - {0.0})
    ax.set(xscale="log", xlabel="strength of the noise", ylabel="mean batch accuracy (%)")
    ax.set_title("How much noise can a training stand?")
    ax.set_xticks([least, *ticks], ["none", *(f"{strength:g}" for strength in ticks)])
    ax.minorticks_off()
    ax.legend()
    return fig
