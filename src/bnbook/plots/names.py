"""Words beside what they name: lines, marks and legends, each at a free place of a drawing.

The names of lines stand beside the lines in place of a legend, all or nothing: a legend stays where one of its entries
is no line or finds no place. A mark is a thin dashed line with its words, where a source prints a number or a curve has
its yardstick. Legends that lie on what is drawn move to a free corner, or below their panel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import to_hex, to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from bnbook.plots.layout import letters, moved, settle
from bookpress.pipeline.inks import PALETTE

# ---- Where a figure's axes are drawn on, in pixels, and whether a box is free -------------------------------------

SHADE = 0.2  # an area no more opaque than that is a ground on which words may stand


class Ink:
    """What some artists of an axes paint there: whether a box is free is one sum of four numbers."""

    def __init__(self, ax: plt.Axes, artists: Iterable[Artist]):
        renderer = RendererAgg(*map(int, ax.figure.bbox.size), ax.figure.dpi)
        for artist in artists:
            artist.draw(renderer)
        (left, bottom), (right, top) = np.asarray(ax.bbox.get_points(), dtype=int).clip(0)
        alpha = np.asarray(renderer.buffer_rgba())[::-1, :, 3]
        painted = alpha[bottom : top + 1, left : right + 1].T > 0
        self.origin, self.point = np.array([left, bottom]), ax.figure.dpi / 72
        self.places = np.argwhere(painted) + self.origin  # (K, 2), from left to right
        self.sums = np.pad(painted.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def free(self, boxes: np.ndarray, margin: float) -> np.ndarray:
        """Whether nothing is painted within `margin` points of each of the boxes (M, 4)."""
        wide = boxes + margin * self.point * np.array([-1, -1, 1, 1])
        low, high = np.floor(wide[:, :2] - self.origin), np.ceil(wide[:, 2:] - self.origin)
        edges = (np.clip(ends, 0, np.array(self.sums.shape) - 1).astype(int).T for ends in (low, high))
        (a, b), (c, d) = edges
        return self.sums[c, d] - self.sums[a, d] - self.sums[c, b] + self.sums[a, b] == 0


def with_bars(ax: plt.Axes, line: Line2D) -> list[Artist]:
    """A line and its error bars."""
    bars = (each.lines for each in ax.containers if isinstance(each, ErrorbarContainer))
    return next(([own, *caps, *lines] for own, caps, lines in bars if own is line), [line])


def others(ax: plt.Axes, own: Sequence[Artist]) -> list[Artist]:
    """All artists that a name or a legend must keep away from: bands and pale areas are none."""
    seen = [*ax.lines, *ax.collections, *ax.texts, *([ax.get_legend()] if ax.get_legend() else [])]
    seen += [p for p in ax.patches if max(p.get_facecolor()[3], p.get_edgecolor()[3]) > SHADE]
    grounds = (PolyCollection, QuadMesh)
    return [each for each in seen if each not in own and not isinstance(each, grounds)]


# ---- Free places for the name of a line beside it -----------------------------------------------------------------

GAP = 1.5  # points between a name and its own line
CLEAR = 3.6  # points between a name and anything else
PLACES = 150  # of a line, at most, beside which its name is tried
BEST = 25  # of a name's free places, which are tried together with the others'


@dataclass(frozen=True)
class Place:
    """Where a name may stand: its box in pixels, its words, how little it is liked."""

    box: tuple[float, float, float, float]  # left, bottom, right, top
    words: str
    cost: float

    def meets(self, other: Place, apart: float) -> bool:
        (a, b, c, d), (left, bottom, right, top) = self.box, other.box
        return a < right + apart and left < c + apart and b < top + apart and bottom < d + apart


def places_of(ax: plt.Axes, line: Line2D, label: str) -> list[Place]:
    """Free places of a name, the most liked first: far from everything else, near the end of its line, on no band
    of another colour."""
    own = with_bars(ax, line)
    mine, rest = Ink(ax, own), Ink(ax, others(ax, own))
    bands = [each for each in ax.collections if isinstance(each, PolyCollection) and not _alike(each, line)]
    bands, frame, found = Ink(ax, bands), ax.bbox, []
    for words in sorted({label, _in_two(label)}, key=len):
        boxes, costs = _beside(mine.places, *_extent(ax, words), GAP * mine.point)
        inside = (boxes[:, :2] >= (frame.x0 + 2, frame.y0 + 2)) & (boxes[:, 2:] <= (frame.x1, frame.y1))
        keep = inside.all(axis=1) & mine.free(boxes, 0.0) & rest.free(boxes, CLEAR)
        boxes, costs = boxes[keep], costs[keep]
        costs = costs - sum(0.12 * rest.free(boxes, room) for room in (8, 12, 18, 26))
        costs = costs + 0.3 * (frame.x1 - boxes[:, 2]) / frame.width + 0.2 * ("\n" in words)
        costs = costs + 0.4 * ~bands.free(boxes, 0.0)
        found += [Place(tuple(boxes[at]), words, float(costs[at])) for at in np.argsort(costs)[:BEST]]
    return sorted(found, key=lambda place: place.cost)


def _alike(band: PolyCollection, line: Line2D) -> bool:
    """Whether a band has the colour of a line."""
    return len(band.get_facecolor()) and np.allclose(band.get_facecolor()[0][:3], to_rgb(line.get_color()))


def write(ax: plt.Axes, line: Line2D, place: Place) -> None:
    """The words at their place in the line's colour."""
    left, bottom, right, top = place.box
    x, y = ax.transAxes.inverted().transform(((left + right) / 2, (bottom + top) / 2))
    style = dict(color=line.get_color(), fontsize=letters(ax), linespacing=1.05, in_layout=False)
    ax.text(x, y, place.words, transform=ax.transAxes, ha="center", va="center", **style)


def _extent(ax: plt.Axes, words: str) -> tuple[float, float]:
    text = ax.text(0, 0, words, fontsize=letters(ax), linespacing=1.05)
    box = text.get_window_extent()
    text.remove()
    return box.width, box.height


def _beside(own: np.ndarray, width: float, height: float, gap: float) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (M, 4) above, below, right and left of places on a line (K, 2), and how little each is liked."""
    boxes, costs = [], []
    for x, y in own[:: max(1, len(own) // PLACES)]:
        under = own[np.abs(own[:, 0] - x) <= width / 2, 1]
        for left, bottom, cost in (
            (x - width / 2, under.max() + gap, 0.0),
            (x - width / 2, under.min() - gap - height, 0.05),
            (x + 1.5 * gap, y - height / 2, 0.1),
            (x - 1.5 * gap - width, y - height / 2, 0.15),
        ):
            boxes.append((left, bottom, left + width, bottom + height))
            costs.append(cost)
    return np.array(boxes).reshape(-1, 4), np.array(costs)


def _in_two(label: str) -> str:
    """The label broken at the space nearest to its middle."""
    spaces = [at for at, letter in enumerate(label) if letter == " "]
    if not spaces or len(label) < 12 or "\n" in label:
        return label
    at = min(spaces, key=lambda place: abs(place - len(label) / 2))
    return f"{label[:at]}\n{label[at + 1 :]}"


# ---- Marks --------------------------------------------------------------------------------------------------------

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
    settle(fig)
    written, left = set(), []
    for ax, line in marked:
        words = line.get_label().removeprefix(PREFIX)
        if free := places_of(ax, line, words):
            write(ax, line, free[0])
            written.add(words)
        else:
            left.append((ax, line, words))
    keys: dict[plt.Axes, dict[str, Line2D]] = {}
    for ax, line, words in left:
        if words not in written and len(Ink(ax, [line]).places):  # else it lies beyond the axes
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
    moved(ax.figure)


# ---- Names in place of legends ------------------------------------------------------------------------------------


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
    settle(fig)
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
    if (legend.get_visible() and legend.get_in_layout()) != shown:
        moved(legend.figure)
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


# ---- Legends ------------------------------------------------------------------------------------------------------

CORNERS = ("upper right", "upper left", "lower left", "lower right")
LEGEND_CLEAR = 1.0  # points between the box of a legend and what is drawn


def clear_legends(fig: plt.Figure) -> None:
    """Move each legend that lies on lines, marks, bars or words of its own axes; one outside them stays, and
    one with a frame, which hides what is behind it."""
    found = [(ax, ax.get_legend()) for ax in fig.axes if ax.get_legend() is not None]
    found = [(ax, legend) for ax, legend in found if legend.get_visible() and not legend.get_frame_on()]
    if not found:
        return
    settle(fig)
    below = [(ax, legend) for ax, legend in found if not _in_free_corner(ax, legend)]
    heights: dict[int, float] = {}
    for ax, legend in below:
        row = ax.get_subplotspec().rowspan.start if ax.get_subplotspec() else 0
        heights[row] = max(heights.get(row, 0.0), legend.get_window_extent().height)
        _put_below(ax, legend)
    fig.set_figheight(fig.get_figheight() + sum(heights.values()) / fig.dpi)  # the panels stay as high


def _in_free_corner(ax: plt.Axes, legend: Legend) -> bool:
    if _is_free(ax, legend):
        return True
    for corner in CORNERS:  # inside its axes it moves no panel, so nothing is laid out again
        legend.set_bbox_to_anchor(None)
        legend.set_loc(corner)
        if _is_free(ax, legend):
            return True
    return False


def _is_free(ax: plt.Axes, legend: Legend) -> bool:
    box = legend.get_window_extent()
    inside = box.x0 >= ax.bbox.x0 and box.x1 <= ax.bbox.x1
    ink = Ink(ax, others(ax, [legend]))
    return not box.overlaps(ax.bbox) or bool(inside and ink.free(np.array([box.extents]), LEGEND_CLEAR)[0])


def _put_below(ax: plt.Axes, legend: Legend) -> None:
    """Centred below the panel's horizontal axis and what names it."""
    named = ax.xaxis.get_tightbbox()
    drop = ax.bbox.y0 - (named.y0 if named else ax.bbox.y0)
    legend.set_loc("upper center")
    down = ScaledTranslation(0, -drop / ax.figure.dpi, ax.figure.dpi_scale_trans)
    legend.set_bbox_to_anchor((0.5, 0), transform=ax.transAxes + down)
