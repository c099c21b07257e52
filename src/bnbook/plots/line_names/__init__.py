"""Names of lines beside the lines, in place of a legend, each at a free place next to its own line.

All or nothing: a legend stays where one of its entries is no line or finds no place. Then each line that
`marks.mark` drew is named, which no legend knows.
"""

from __future__ import annotations

from itertools import islice

import matplotlib.pyplot as plt
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from bnbook.plots.line_names.marks import name_marks
from bnbook.plots.line_names.places import Place, places_of, write

__all__ = ["name_lines"]


def name_lines(fig: plt.Figure) -> None:
    """Replace each legend whose entries are lines by their names, in the first axes with room; name marks."""
    _name_entries(fig)
    name_marks(fig)


def _name_entries(fig: plt.Figure) -> None:
    wanted = [(legend, found) for legend, axes in _legends(fig) if (found := _entries(legend, axes))]
    if not wanted:
        return
    for legend, _ in wanted:
        _show(legend, False)
    fig.draw_without_rendering()
    for legend, found in wanted:
        for ax, lines in found:
            places = _together([places_of(ax, line, label) for label, line in lines.items()])
            if places:
                for line, place in zip(lines.values(), places):
                    write(ax, line, place)
                legend.remove()
                break
        else:
            _show(legend, True)


def _show(legend: Legend, shown: bool) -> None:
    legend.set_visible(shown)
    legend.set_in_layout(shown)


def _entries(legend: Legend, axes: list[plt.Axes]) -> list[tuple[plt.Axes, dict[str, Line2D]]]:
    """The axes that have a line for each of its entries, and these lines; none where it has a title, or where
    it serves several panels, which a phone shows one by one, and lines of one colour, whose names do not tell
    them apart elsewhere."""
    labels = [text.get_text() for text in legend.get_texts()]
    if legend.get_title().get_text() or len(set(labels)) < len(labels):
        return []
    found = [(ax, lines) for ax in axes if (lines := _lines(ax, labels))]
    colours = {to_hex(line.get_color()) for _, lines in found[:1] for line in lines.values()}
    return found if len(axes) == 1 or len(colours) == len(labels) else []


def _legends(fig: plt.Figure) -> list[tuple[Legend, list[plt.Axes]]]:
    own = [(ax.get_legend(), [ax]) for ax in fig.axes if ax.get_legend()]
    return own + [(legend, list(fig.axes)) for legend in fig.legends]


def _lines(ax: plt.Axes, labels: list[str]) -> dict[str, Line2D] | None:
    """The line of each label, or None where these axes lack one or paint areas by a colour scale."""
    if any(isinstance(child, QuadMesh) for child in ax.collections) or ax.images:
        return None
    found: dict[str, Line2D] = {}
    for handle, label in zip(*ax.get_legend_handles_labels()):
        line = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
        if isinstance(line, Line2D):
            found.setdefault(label, line)
    return {label: found[label] for label in labels} if set(labels) <= set(found) else None


def _together(choices: list[list[Place]]) -> list[Place]:
    """A place for each name such that no two meet, those with the fewest choices first; none at all where
    one finds none."""
    order = sorted(range(len(choices)), key=lambda name: len(choices[name]))

    def go_on(taken: dict[int, Place]) -> dict[int, Place] | None:
        if len(taken) == len(order):
            return taken
        name = order[len(taken)]
        free = (p for p in choices[name] if not any(p.meets(other, 3.0) for other in taken.values()))
        for place in islice(free, 3):
            if (found := go_on(taken | {name: place})) is not None:
                return found
        return None

    found = go_on({})
    return [] if found is None else [found[name] for name in range(len(choices))]
