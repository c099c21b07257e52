"""Where panels stand and how large words are, on a page and on a phone.

A drawing asks `subplots` or `cells` for its panels. On a phone its columns stand below each other, narrow, and share the
axes that they share on a page; words are broken into lines, and no letter is smaller than can be read there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.legend import Legend
from matplotlib.text import Text

WIDTH = 4.1  # inches: a phone shows them nearly as they are
HIGHEST = 8.2  # inches for all panels on a phone, which is two screens
PANEL, LOWEST = 2.1, 1.05  # inches: how high one of several panels is there at most, and at least
MANY = 6  # panels; more stand two side by side
LEAST = 9.0  # points on the page: smaller letters are not read
#: Points: a little under the width of the text in a window of 1280 pixels, and on a phone of 390; what is wider is shrunk.
COLUMN, PHONE_COLUMN = 552.0, 270.0
ROW = 16  # letters in a line of a row's name
LINE = 0.22  # inches: a line of a legend, or of a row's name
WORDS = re.compile(r"(?:\$[^$]*\$|\S)+")  # a formula is not broken at its spaces

_narrow = False


@contextmanager
def on_a_phone(narrow: bool = True) -> Iterator[None]:
    """In it, drawings are made for a phone."""
    global _narrow
    before, _narrow = _narrow, narrow
    try:
        yield
    finally:
        _narrow = before


def is_narrow() -> bool:
    """Whether what is drawn now is for a phone."""
    return _narrow


def settle(fig: plt.Figure) -> None:
    """Put the panels where they will stand: what is asked of places holds until something is `moved`."""
    if getattr(fig, "bnbook_settled", False):
        return
    if engine := fig.get_layout_engine():
        engine.execute(fig)  # a third of what drawing takes
    else:
        fig.draw_without_rendering()
    fig.bnbook_settled = True


def moved(fig: plt.Figure) -> None:
    """Something changed that takes another room: the panels stand elsewhere when they are asked again."""
    fig.bnbook_settled = False


# ---- Panels ----------------------------------------------------------------------------------------------------------


def subplots(
    rows: int = 1,
    columns: int = 1,
    *,
    figsize: tuple[float, float] | None = None,
    sharex: bool | str = False,
    sharey: bool | str = False,
    squeeze: bool = True,
    height_ratios: Sequence[float] | None = None,
    width_ratios: Sequence[float] | None = None,
) -> tuple[plt.Figure, Any]:
    """`plt.subplots`; on a phone the columns stand below each other, two side by side where panels are many, and
    axes that are shared are shared there."""
    figsize = figsize or tuple(plt.rcParams["figure.figsize"])
    if not _narrow:
        share = dict(sharex=sharex, sharey=sharey, squeeze=squeeze)
        ratios = dict(width_ratios=width_ratios, height_ratios=height_ratios)
        return plt.subplots(rows, columns, figsize=figsize, **share, **ratios)
    across = 1 if rows * columns <= MANY else min(columns, 2)
    blocks = -(-columns // across)
    each = min(figsize[1] / rows, PANEL, max(HIGHEST / (rows * blocks), LOWEST))
    fig = plt.figure(figsize=(WIDTH, rows * blocks * each + 0.6 if rows * columns > 1 else figsize[1]))
    ratios = list(height_ratios) * blocks if height_ratios is not None else None
    places = fig.add_gridspec(rows * blocks, across, height_ratios=ratios)
    axes = np.empty((rows, columns), dtype=object)
    for column in range(columns):
        for row in range(rows):
            first = {True: axes[0, 0], "all": axes[0, 0], "row": axes[row, 0], "col": axes[0, column]}
            shared = {"sharex": first.get(sharex), "sharey": first.get(sharey)}
            ax = fig.add_subplot(places[(column // across) * rows + row, column % across], **shared)
            if sharex in (True, "col") and row + 1 < rows:
                ax.tick_params(labelbottom=False)
            if sharey in (True, "row") and column % across:
                ax.tick_params(labelleft=False)
            axes[row, column] = ax
    fig.bnbook_blocks = (axes, across)
    return fig, axes if not squeeze else axes[0, 0] if axes.size == 1 else axes.squeeze()


def cells(
    count: int, columns: int, size: tuple[float, float], *, sharex: bool = False, sharey: bool = False
) -> tuple[plt.Figure, list[plt.Axes]]:
    """So many panels in reading order, `columns` in a row on a page; `size` of the whole there. The numbers of a shared
    axis stand at the last panel of each column, and at the first of each row."""
    columns = (1 if count <= MANY else 2) if _narrow else min(columns, count)
    rows = -(-count // columns)
    if _narrow:
        size = (WIDTH, rows * min(PANEL, max(HIGHEST / rows, LOWEST)) + 0.6)
    fig = plt.figure(figsize=size)
    axes = fig.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False).flat
    for ax in axes[count:]:
        ax.remove()
    for ax in axes[count - columns : count]:
        ax.tick_params(labelbottom=True)
    return fig, list(axes[:count])


def name_rows(ax: plt.Axes, names: Sequence[str], places: Sequence[float] | None = None) -> None:
    """Names of rows at their places, else at 0, 1, …; on a phone in lines of few letters, all panels as high as they
    take."""
    if _narrow:
        names = [_in_lines(name, ROW) for name in names]
        lines = [name.count("\n") + 1 for name in names]
        apart = 0.9 * LINE * max((one + other) / 2 for one, other in zip(lines, [*lines[1:], 1]))
        high = (apart * len(names) + 0.7) * ax.get_gridspec().nrows
        ax.figure.set_figheight(max(ax.figure.get_figheight(), high))
    ax.set_yticks(range(len(names)) if places is None else places, names)


def last_of_columns(axes: Sequence[plt.Axes]) -> list[plt.Axes]:
    """Of `cells`, those with no panel below."""
    columns = axes[0].get_gridspec().ncols
    return list(axes[-columns:])


# ---- Letters ---------------------------------------------------------------------------------------------------------


def letters(ax: plt.Axes) -> float:
    """The least size of letters in points that is readable where the page shrinks the figure."""
    wide = ax.figure.get_figwidth()
    return LEAST * max(1.0, wide * 72 / (PHONE_COLUMN if wide <= WIDTH else COLUMN))


def legible(fig: plt.Figure) -> None:
    """Enlarge letters that are smaller than that."""
    if not fig.axes:
        return
    least = letters(fig.axes[0])
    for text in fig.findobj(Text):
        if text.get_fontsize() < least:
            text.set_fontsize(least)
    for ax in fig.axes:
        for axis in (ax.xaxis, ax.yaxis):
            numbers = axis.get_ticklabels()  # made anew whenever the axis changes
            if numbers and numbers[0].get_fontsize() <= least:
                axis.set_tick_params(labelsize=least)


# ---- What a phone asks for beside narrow panels ----------------------------------------------------------------------


def fit(fig: plt.Figure) -> None:
    """Before lines are named: titles in as many lines as they need, names of rows at each block of panels."""
    if blocks := getattr(fig, "bnbook_blocks", None):
        _name_blocks(*blocks)
    legends = [child for owner in (fig, *fig.axes) for child in owner.get_children()]
    for legend in [child for child in legends if isinstance(child, Legend)]:
        legend.set_in_layout(False)  # one wider than the drawing would leave the panel no room
    _break_titles(fig)


def refit(fig: plt.Figure) -> None:
    """After lines are named: legends that are left stand above, and texts that meet in two lines."""
    _legend_above(fig)
    _break_titles(fig)
    for ax in fig.axes:
        written = [text for text in ax.texts if text.get_visible() and text.get_text()]
        for one, other in combinations(written, 2):
            if one.get_window_extent().overlaps(other.get_window_extent()):
                longer = max(one, other, key=lambda text: text.get_window_extent().width)
                longer.set_text("\n".join(_even(WORDS.findall(longer.get_text()), 2)))


def _name_blocks(axes: np.ndarray, across: int) -> None:
    """The name of a row, which stands at the first of its panels, at the first of each block of columns."""
    for row in axes:
        for ax in row[::across][1:]:
            if not ax.get_ylabel():
                ax.set_ylabel(row[0].get_ylabel())


def _legend_above(fig: plt.Figure) -> None:
    """The legends of the whole figure, and that of a single panel, as one above the panels, entries below each other."""
    own = [ax.get_legend() for ax in fig.axes if ax.get_legend()]
    legends = [*fig.legends, *(own if len(own) == 1 else [])]
    for legend in set(own) - set(legends):
        legend.set_in_layout(True)
        moved(fig)
    if not legends:
        return
    known, title = {}, None
    for legend in legends:
        known |= dict(zip([text.get_text() for text in legend.get_texts()], legend.legend_handles))
        title, size = title or legend.get_title().get_text() or None, legend.get_texts()[0].get_fontsize()
        legend.remove()
    for ax in fig.axes:
        drawn = dict(zip(*reversed(ax.get_legend_handles_labels())))
        known |= {words: line for words, line in drawn.items() if words in known}
    fig.set_figheight(fig.get_figheight() + LINE * (len(known) + bool(title)))
    moved(fig)
    style = dict(title=title, loc="outside upper center", fontsize=size)
    fig.legend(list(known.values()), list(known), **style)


def _break_titles(fig: plt.Figure) -> None:
    settle(fig)
    for ax in fig.axes:
        middle = _middle(ax)
        beside = [
            abs(_middle(one) - middle)
            for one in fig.axes
            if one.bbox.y0 < ax.bbox.y1 and ax.bbox.y0 < one.bbox.y1
        ]
        pitches = [0.95 * pitch for pitch in beside if pitch > 1]
        across = min([1.9 * min(middle, fig.bbox.x1 - middle), *pitches])
        for words in (ax.title, ax.xaxis.label):
            _broken(words, across, "width")
        _broken(ax.yaxis.label, ax.bbox.height, "height")


def _middle(ax: plt.Axes) -> float:
    return (ax.bbox.x0 + ax.bbox.x1) / 2


def _broken(text: Text, room: float, side: str) -> None:
    """Break the text into lines no longer than room pixels, as few as it takes: its letters are about as wide in each."""
    if (longest := getattr(text.get_window_extent(), side)) > room:
        letters = max(map(_letters, text.get_text().split("\n")))
        text.set_text(_in_lines(text.get_text(), letters * room / longest))
        moved(text.figure)


def _in_lines(text: str, most: float) -> str:
    """The text in as few lines of so many letters as it takes, all about as long."""
    words = WORDS.findall(text)
    return "\n".join(_even(words, len(_filled(words, most))))


def _even(words: list[str], lines: int) -> list[str]:
    """The words in so many lines or fewer, the longest as short as can be."""
    room = max(map(_letters, words))
    while len(found := _filled(words, room)) > lines:
        room += 1
    return found


def _filled(words: list[str], room: float) -> list[str]:
    """The words in lines of no more letters than room, the first ones full."""
    found = words[:1]
    for word in words[1:]:
        longer = f"{found[-1]} {word}"
        found[-1:] = [longer] if _letters(longer) <= room else [found[-1], word]
    return found


def _letters(line: str) -> int:
    """About how many are seen: a command of a formula is one."""
    return len(re.sub(r"[${}^_]", "", re.sub(r"\\[a-z]+", "x", line)))
