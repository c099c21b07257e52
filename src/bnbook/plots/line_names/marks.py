"""Marks: a thin dashed line with its words, where a source prints a number or a curve has its yardstick."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

from bnbook.plots.line_names.places import Place, letters, places_of, write
from bookpress.pipeline.inks import PALETTE

NEUTRAL = PALETTE["printed"][0]
DASHED = (0, (4, 3))
OTHERS = ((0, (1, 2)), (0, (6, 2, 1, 2)), (0, (8, 4)))  # of further marks in a legend
PREFIX = "_mark: "  # a label that begins with _ is in no legend


def mark(ax: plt.Axes, words: str, *, x: float | None = None, y: float | None = None, **line) -> None:
    """A line across the axes at x or at y; its words are written beside it when the figure is saved."""
    label = {"label": PREFIX + words} if words else {}
    style = dict(color=NEUTRAL, linewidth=1.0, linestyle=DASHED, zorder=0.9) | label | line
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
    style = dict(color=NEUTRAL, linewidth=1.0, linestyle=DASHED, zorder=0.9)
    ax.plot(x, y, label=PREFIX + words, **style)


def name_marks(fig: plt.Figure) -> None:
    """Write the words of each mark at a free place beside it; where none is free and no other panel has them,
    in the legend of its panel."""
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
    keys: dict[plt.Axes, dict[str, Line2D]] = {}
    for ax, line, words in left:
        if words not in written and _is_seen(ax, line):
            written.add(words)
            keys.setdefault(ax, {})[words] = line
    for ax, named in keys.items():
        for dashes, words in zip(OTHERS, list(named)[1:]):  # which is which?
            for line in [line for _, line in marked if line.get_label() == PREFIX + words]:
                line.set_linestyle(dashes)
        _into_legend(ax, named)


def _into_legend(ax: plt.Axes, named: Mapping[str, Line2D]) -> None:
    old = ax.get_legend()
    handles, names = [*named.values()], [*named]
    style = dict(fontsize=letters(ax))
    if old is not None:
        handles, names = old.legend_handles + handles, [text.get_text() for text in old.get_texts()] + names
        style = dict(fontsize=old.get_texts()[0].get_fontsize(), title=old.get_title().get_text() or None)
    ax.legend(handles, names, **style)


def _on_legend(ax: plt.Axes, place: Place) -> bool:
    if ax.get_legend() is None:
        return False
    box = ax.get_legend().get_window_extent()
    return place.meets(Place((box.x0, box.y0, box.x1, box.y1), "", 0.0), 2.0)


def _is_seen(ax: plt.Axes, line: Line2D) -> bool:
    """Whether the axes go as far as its end."""
    end = ax.transAxes.inverted().transform(line.get_transform().transform(line.get_xydata()))[-1]
    return bool(-1e-6 <= end.min() <= end.max() <= 1 + 1e-6)
