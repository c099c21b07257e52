"""Figures of the chapter on a textbook's exercises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, band
from bnbook.intervals import mean_and_interval

#: Rows of the overview, from above: exercise, arm, words.
ROWS = (
    ("2", "none", "no batch norm"),
    ("2", "batch", "in all four layers"),
    ("3", "first", "first convolution"),
    ("3", "second", "second convolution"),
    ("3", "third", "first dense layer"),
    ("3", "fourth", "last hidden layer"),
    ("4", "mean", "mean alone"),
    ("4", "variance", "variance alone"),
    ("5", "fixed", "γ and β fixed"),
    ("8 a", "integral", "integral transform"),
    ("8 b", "whitened_maps", "covariance, convolutions"),
    ("8 b", "whitened", "covariance, all layers"),
    ("9", "after", "behind tanh"),
)


def answers(accuracy: Mapping[str, np.ndarray], margin: float) -> plt.Figure:
    """Test accuracy (S,) of each arm in per cent, means and intervals; a band `margin` points about batch norm's."""
    fig, ax = plt.subplots(figsize=(7.4, 6.4))
    middle = 100 * accuracy["batch"].mean()
    ax.axvspan(middle - margin, middle + margin, color=COLORS["grid"], linewidth=0)
    for place, (_, name, _) in enumerate(ROWS):
        mean, half = mean_and_interval(100 * accuracy[name][:, None])
        ink = COLORS[name] if name in ("none", "batch") else COLORS["theory"]
        ax.errorbar(mean, [place], xerr=half, fmt="o", color=ink, capsize=3, markersize=5)
    ax.set_yticks(range(len(ROWS)), [f"{exercise}: {words}" for exercise, _, words in ROWS], fontsize=10)
    ax.set(xlabel="test accuracy, %", ylim=(len(ROWS) - 0.4, -0.6))
    ax.grid(visible=False, axis="y")
    return fig


def rates(
    grid: Sequence[float],
    late: Mapping[str, np.ndarray],
    steps: Sequence[int],
    curves: Mapping[str, np.ndarray],
) -> plt.Figure:
    """Late loss (S, rates) against the rate, and accuracy in per cent (S, looks) on the way at the best one."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.7))
    for name, words in (("batch", "batch norm"), ("none", "no batch norm")):
        band(left, np.array(grid), late[name], label=words, color=COLORS[name])
        band(right, np.array(steps), 100 * curves[name], label=words, color=COLORS[name])
    left.set(xscale="log", xlabel="learning rate", ylabel="loss, late", title="How large may the rate be?")
    right.set(xlabel="step", ylabel="test accuracy, %", title="Each at its best rate")
    left.legend(fontsize=9.5)
    return fig
