"""A figure of one panel, or of one column, once more for a phone: narrow, its letters as large as before."""

from __future__ import annotations

import re
from itertools import combinations

import cloudpickle
import matplotlib.pyplot as plt
from matplotlib.legend import Legend
from matplotlib.text import Text

from bnbook.plots.line_names import name_lines
from bnbook.plots.ticks import thin_numbers

WIDTH = 4.1  # inches: a phone shows them nearly as they are
ROWS = 0.3  # of the width at most, for the names of rows
LINE = 0.22  # inches: a line of a legend
WORDS = re.compile(r"(?:\$[^$]*\$|\S)+")  # a formula is not broken at its spaces


def narrowed(fig: plt.Figure) -> plt.Figure | None:
    """A copy WIDTH inches wide, its words in as many lines as they need; None for a figure with panels side
    by side, which a phone shows one by one, or one that is narrow already."""
    panels = [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]
    if len(panels) != 1 and not _one_column(panels) or fig.get_figwidth() < 1.1 * WIDTH:
        return None
    shown = plt.get_fignums()
    copy = cloudpickle.loads(cloudpickle.dumps(fig))
    for number in set(plt.get_fignums()) - set(shown):
        plt.close(number)  # a copy that pyplot knows would be shown below the cell
    copy.set_figwidth(WIDTH)
    legends = [child for owner in (copy, *copy.axes) for child in owner.get_children()]
    for legend in [child for child in legends if isinstance(child, Legend)]:
        legend.set_in_layout(False)  # one wider than the drawing would leave the panel no room
    for ax in copy.axes:
        _break_rows(ax, ROWS * copy.bbox.width)
    _break_titles(copy)
    name_lines(copy)
    _legend_above(copy)
    _break_titles(copy)
    for ax in copy.axes:
        _apart(ax)
    return copy


def _one_column(panels: list[plt.Axes]) -> bool:
    places = [ax.get_subplotspec() for ax in panels]
    return None not in places and len({(each.colspan.start, each.colspan.stop) for each in places}) == 1


def _legend_above(fig: plt.Figure) -> None:
    """The legends whose lines have no names beside them as one above the panel, its entries below each
    other."""
    legends = [
        each for owner in (fig, *fig.axes) for each in owner.get_children() if isinstance(each, Legend)
    ]
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
    style = dict(title=title, loc="outside upper center", fontsize=size)
    fig.legend(list(known.values()), list(known), **style)


def _break_rows(ax: plt.Axes, room: float) -> None:
    """Names of rows, no longer than room pixels, in as many lines as it takes."""
    names = ax.get_yticklabels()  # asked again they would be as they were
    if any(name.get_window_extent().width > room for name in names):
        for name in names:
            _broken(name, room, "width")
        written = [name.get_text() for name in names]
        ax.set_yticks(ax.get_yticks(), written)


def _break_titles(fig: plt.Figure) -> None:
    titles = [words for ax in fig.axes for words in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    for _ in range(4):  # lines that are added take room from the panel
        before = [words.get_text() for words in titles]
        fig.draw_without_rendering()
        for ax in fig.axes:
            middle = (ax.bbox.x0 + ax.bbox.x1) / 2
            for words in (ax.title, ax.xaxis.label):
                _broken(words, 1.9 * min(middle, fig.bbox.x1 - middle), "width")
            _broken(ax.yaxis.label, ax.bbox.height, "height")
        if before == [words.get_text() for words in titles]:
            return


def _broken(text: Text, room: float, side: str) -> None:
    """Break the text into lines no longer than room pixels, as few as it takes."""
    words = WORDS.findall(text.get_text())
    for lines in range(1, len(words) + 1):
        if getattr(text.get_window_extent(), side) <= room:
            return
        text.set_text("\n".join(_even(words, lines)))


def _even(words: list[str], lines: int) -> list[str]:
    """The words in so many lines or fewer, the longest as short as can be."""
    room = max(map(_letters, words))
    while len(found := _filled(words, room)) > lines:
        room += 1
    return found


def _filled(words: list[str], room: int) -> list[str]:
    """The words in lines of no more letters than room, the first ones full."""
    found = words[:1]
    for word in words[1:]:
        longer = f"{found[-1]} {word}"
        found[-1:] = [longer] if _letters(longer) <= room else [found[-1], word]
    return found


def _letters(line: str) -> int:
    """About how many are seen: a command of a formula is one."""
    return len(re.sub(r"[${}^_]", "", re.sub(r"\\[a-z]+", "x", line)))


def _apart(ax: plt.Axes) -> None:
    """Break the longer of two texts that meet in two lines."""
    written = [text for text in ax.texts if text.get_visible() and text.get_text()]
    for one, other in combinations(written, 2):
        if one.get_window_extent().overlaps(other.get_window_extent()):
            longer = max(one, other, key=lambda text: text.get_window_extent().width)
            longer.set_text("\n".join(_even(WORDS.findall(longer.get_text()), 2)))
    thin_numbers(ax)
