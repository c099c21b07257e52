"""The figure that every chapter on theorems has: where the margins of many random instances lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

from bnbook.figures import COLORS
from bnbook.studies.theorems.margins import TOLERANCE

EDGES = np.linspace(-1.0125, 1.0125, 82)  # the bin in the middle holds equality


@dataclass(frozen=True)
class Row:
    """One reading of one theorem."""

    label: str
    margins: np.ndarray  # (K,) of `bnbook.studies.theorems.margins.margin`
    corrected: bool = False


def draw_margins(rows: Sequence[Row]) -> plt.Figure:
    """One histogram per row: violated bounds left of zero in red, the others grey (printed) or green
    (corrected).

    Heights are square roots of counts, so that a handful of violations among thousands can be seen.
    """
    fig, ax = plt.subplots(figsize=(7.2, 0.62 * len(rows) + 0.9))
    middle, width = (EDGES[1:] + EDGES[:-1]) / 2, EDGES[1] - EDGES[0]
    for place, row in enumerate(reversed(rows)):
        violated = row.margins < -TOLERANCE
        bad, good = (np.histogram(row.margins[part], EDGES)[0] for part in (violated, ~violated))
        total = np.sqrt(bad + good)
        scale = 0.8 / total.max()
        share_bad = np.divide(bad, bad + good, out=np.zeros(len(bad)), where=bad + good > 0)
        color = COLORS["corrected" if row.corrected else "printed"]
        style = {"width": width, "linewidth": 0, "zorder": 3}
        ax.bar(middle, scale * total * share_bad, bottom=place, color=COLORS["none"], **style)
        ax.bar(
            middle,
            scale * total * (1 - share_bad),
            bottom=place + scale * total * share_bad,
            color=color,
            **style,
        )
        ax.axhline(place, color="#cccccc", linewidth=0.7, zorder=1)
        share = violated.mean()
        words = (
            "none violated"
            if not violated.any()
            else f"{share:.0%} violated"
            if share >= 0.1
            else f"{share:.1%} violated"
        )
        ax.text(
            1.05, place + 0.2, words, va="center", color="#222222" if violated.any() else color, fontsize=10
        )
    ax.axvline(0, color="#222222", linewidth=1, zorder=2)
    ax.set_yticks(np.arange(len(rows)) + 0.2, labels=[row.label for row in reversed(rows)])
    ax.set(xlim=(-1.03, 1.03), ylim=(-0.1, len(rows)), xticks=(-1, -0.5, 0, 0.5, 1))
    ax.set_xlabel("margin: (bound − value) / (|bound| + |value|)")
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    return fig
