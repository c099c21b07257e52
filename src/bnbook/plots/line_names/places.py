"""Free places for the name of a line beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from bnbook.plots.line_names.ink import Ink, others, points_of
from bookpress.pipeline.inks import COLUMN, LEAST

GAP = 2.0  # points between a name and its own line
CLEAR = 4.5  # points between a name and anything else
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
    """Free places of a name, the most liked first: far from everything else, near the end of its line."""
    own = points_of(ax, line)
    mine, rest = Ink(ax, own), Ink(ax, others(ax, line))
    gap = GAP + (line.get_markersize() / 2 if line.get_marker() not in ("None", None, "") else 0)
    found = []
    for words in sorted({label, _in_two(label)}, key=len):
        boxes, costs = _beside(own, *_extent(ax, words), gap * ax.figure.dpi / 72)
        frame = ax.bbox
        inside = (boxes[:, :2] >= (frame.x0 + 2, frame.y0 + 2)) & (boxes[:, 2:] <= (frame.x1, frame.y1))
        keep = inside.all(axis=1) & mine.free(boxes, 0.0) & rest.free(boxes, CLEAR)
        boxes, costs = boxes[keep], costs[keep]
        costs = costs - sum(0.12 * rest.free(boxes, room) for room in (8, 12, 18, 26))
        costs = costs + 0.3 * (frame.x1 - boxes[:, 2]) / frame.width + 0.2 * ("\n" in words)
        found += [Place(tuple(boxes[at]), words, float(costs[at])) for at in np.argsort(costs)[:BEST]]
    found = [replace(place, cost=place.cost + 0.4 * _on_bands(ax, line, place.box)) for place in found]
    return sorted(found, key=lambda place: place.cost)


def write(ax: plt.Axes, line: Line2D, place: Place) -> None:
    """The words at their place in the line's colour."""
    left, bottom, right, top = place.box
    x, y = ax.transAxes.inverted().transform(((left + right) / 2, (bottom + top) / 2))
    style = dict(color=line.get_color(), fontsize=letters(ax), linespacing=1.05, in_layout=False)
    ax.text(x, y, place.words, transform=ax.transAxes, ha="center", va="center", **style)


def letters(ax: plt.Axes) -> float:
    """Size of a name in points: readable where the page shrinks the figure."""
    return LEAST * max(1.0, ax.figure.get_figwidth() * 72 / COLUMN)


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


def _on_bands(ax: plt.Axes, line: Line2D, box: tuple[float, float, float, float]) -> bool:
    """Whether a name would lie on a band of another colour than its line's."""
    left, bottom, right, top = box
    x, y = np.meshgrid(np.linspace(left, right, 4), np.linspace(bottom, top, 3))
    corners = np.stack([x.ravel(), y.ravel()], axis=1)
    for drawn in ax.collections:
        if not isinstance(drawn, PolyCollection) or not len(drawn.get_facecolor()):
            continue
        if np.allclose(drawn.get_facecolor()[0][:3], to_rgb(line.get_color())):
            continue
        for path in drawn.get_paths():
            if path.transformed(drawn.get_transform()).contains_points(corners).any():
                return True
    return False


def _in_two(label: str) -> str:
    """The label broken at the space nearest to its middle."""
    spaces = [at for at, letter in enumerate(label) if letter == " "]
    if not spaces or len(label) < 12 or "\n" in label:
        return label
    at = min(spaces, key=lambda place: abs(place - len(label) / 2))
    return f"{label[:at]}\n{label[at + 1 :]}"
