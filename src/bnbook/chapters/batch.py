"""What changes when the batch does? The page's figure."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS, points_of
from bnbook.plots.panels import Panel, compare
from bookpress.results import Results

#: What a result's name is made of -> words, ink, marks and line.
LINES = {
    "batch.{}.running": ("batch norm, running averages", COLORS["batch"], "o-"),
    "batch.{}.precise": ("batch norm, precise averages", COLORS["batch"], "s--"),
    "batch.{}.own": ("batch norm, by the batch", COLORS["batch"], "^:"),
    "group.{}.running": ("group norm", COLORS["part"], "D-"),
}


def errors(results: Results) -> plt.Figure:
    """Test error in per cent against the batch size m, "error.NORM.mM.BY" (S,): means with their intervals."""
    sizes, curves = (2, 8, 32, 128), points_of(results, "errors")
    arms = {}
    for place, (name, (words, ink, look)) in enumerate(LINES.items()):
        values = np.stack([curves["error." + name.format(f"m{m}")] for m in sizes], axis=1)
        beside = np.array(sizes) * 1.03 ** (place - 1.5)  # so that intervals do not hide one another
        arms[name] = dict(x=beside, y=values, color=ink, look=look, label=words)
    words = dict(
        title="What does a small batch cost?", xlabel="batch size m", ylabel="test error in per cent"
    )
    return compare(
        curves, [Panel(by="points", times=100, log="x", ticks=sizes, **words)], arms, figsize=(6.8, 3.9)
    )
