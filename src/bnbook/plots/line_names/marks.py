"""Marks: a thin dashed line with its words, where a source prints a number or a curve has its yardstick."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D

from bnbook.pipeline.inks import PALETTE
from bnbook.plots.line_names.places import Place, letters, places_of, write

NEUTRAL = PALETTE["printed"][0]
DASHED = (0, (4, 3))
REACH = 0.4  # of the axes' width: so far back from its end a curve's slope is taken
PREFIX = "_mark: "  # a label that begins with _ is in no legend


def mark(ax: plt.Axes, words: str, *, x: float | None = None, y: float | None = None, **line) -> None:
    """A line across the axes at x or at y; its words are written beside it when the figure is saved."""
    label = {"label": PREFIX + words} if words else {}
    style = dict(color=NEUTRAL, linewidth=1.0, linestyle=DASHED, zorder=0) | label | line
    if x is not None:
        ax.axvline(x, **style)
    else:
        ax.axhline(y, **style)


def marks(ax: plt.Axes, x: Mapping[str, float] | None = None, y: Mapping[str, float] | None = None) -> None:
    """A mark for each of the words at their places."""
    for words, place in (x or {}).items():
        mark(ax, words, x=place)
    for words, place in (y or {}).items():
        mark(ax, words, y=place)


def mark_curve(ax: plt.Axes, x, y, words: str) -> None:
    """The same along a curve."""
    style = dict(color=NEUTRAL, linewidth=1.0, linestyle=DASHED, zorder=0)
    ax.plot(x, y, label=PREFIX + words, **style)


def name_marks(fig: plt.Figure) -> None:
    """Write the words of each mark at a free place beside it; where none is free, at its end, unless another
    panel has them."""
    marked = [(ax, line) for ax in fig.axes for line in ax.lines if line.get_label().startswith(PREFIX)]
    if not marked:
        return
    fig.draw_without_rendering()
    written, left = set(), []
    for ax, line in marked:
        words = line.get_label().removeprefix(PREFIX)
        free = [place for place in places_of(ax, line, words) if not _on_legend(ax, place)]
        if free:
            write(ax, line, free[0])
            written.add(words)
        else:
            left.append((ax, line, words))
    for ax, line, words in left:
        if words not in written:
            _at_end(ax, line, words)
            written.add(words)


def _on_legend(ax: plt.Axes, place: Place) -> bool:
    if ax.get_legend() is None:
        return False
    box = ax.get_legend().get_window_extent()
    return place.meets(Place((box.x0, box.y0, box.x1, box.y1), "", 0.0), 2.0)


def _at_end(ax: plt.Axes, line: Line2D, words: str) -> None:
    """Along an upright line at its top, else along its right end, above it, at its slope there."""
    seen = line.get_transform().transform(line.get_xydata())
    xy = ax.transAxes.inverted().transform(seen)
    x, y = xy[-1]
    if not -1e-6 <= min(x, y) <= max(x, y) <= 1 + 1e-6:
        return  # the axes end before it
    style = dict(transform=ax.transAxes, color=line.get_color(), fontsize=letters(ax), in_layout=False)
    if np.ptp(xy[:, 0]) < 1e-9:
        ax.text(x, 0.99, words, rotation=90, ha="right", va="top", **style)
    else:
        before = seen[np.flatnonzero(xy[:, 0] <= x - REACH)[-1:]]
        across, up = seen[-1] - (before if len(before) else seen[:1])[0]
        slope = dict(rotation=np.degrees(np.arctan2(up, across)), rotation_mode="anchor")
        ax.text(x - 0.01, y, words, ha="right", va="bottom", **slope, **style)
