"""Figure of the chapter on what changes when the batch does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS
from bnbook.plots.axes import name_ticks, points

#: What a result's name is made of -> words, ink, marks and line.
LINES = {
    "batch.{}.running": ("batch norm, running averages", COLORS["batch"], "o-"),
    "batch.{}.precise": ("batch norm, precise averages", COLORS["batch"], "s--"),
    "batch.{}.own": ("batch norm, by the batch", COLORS["batch"], "^:"),
    "group.{}.running": ("group norm", COLORS["part"], "D-"),
}


def errors(sizes: Sequence[int], curves: Mapping[str, np.ndarray]) -> plt.Figure:
    """Test error in per cent against the batch size m, "error.NORM.mM.BY" (S,): means with their intervals."""
    fig, ax = plt.subplots(figsize=(6.8, 3.9))
    for place, (name, (words, ink, marks)) in enumerate(LINES.items()):
        values = np.stack([curves["error." + name.format(f"m{m}")] for m in sizes], axis=1)
        beside = np.array(sizes) * 1.03 ** (place - 1.5)  # so that intervals do not hide one another
        points(ax, beside, 100 * values, marks, color=ink, label=words, markersize=4.5)
    ax.set(xscale="log", xlabel="batch size m", ylabel="test error in per cent")
    ax.set_title("What does a small batch cost?")
    name_ticks(ax.set_xticks, sizes)
    ax.legend(fontsize=9.5)
    return fig
