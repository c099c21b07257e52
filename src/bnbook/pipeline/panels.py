"""A figure's columns of panels, which stack on a phone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
#: A letter's width in units of its font, where the next one does not tell.
LETTER = 62.0
ROOM = 3.0  # points around what a column shows
COLOUR_BAR = 30.0  # an axis narrower than this stays with what stands left of it


@dataclass(frozen=True)
class Box:
    """A rectangle in points: left, top, right, bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def with_(self, other: Box) -> Box:
        return Box(
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
        )


@dataclass(frozen=True)
class Columns:
    """Size of a figure, and for each of its columns the spans that show it, left to right; none where it
    cannot be taken apart.

    A column whose vertical axis has no labels of its own has two: the labels of the axis that it shares, and
    itself. The narrow drawing of a figure of one panel stands in for columns.
    """

    width: float
    height: float
    spans: tuple[tuple[tuple[float, float], ...], ...]
    narrow: tuple[float, float] | None = None


@dataclass(frozen=True)
class Panel:
    """What one pair of axes frames, all that it shows, and whether its vertical axis is labelled."""

    frame: Box
    shown: Box
    labelled: bool


def columns(svg: str) -> Columns:
    """The columns of a Matplotlib figure that can stand alone, left to right.

    It cannot be taken apart where a legend or title belongs to the whole, or where what belongs to two
    columns overlaps.
    """
    root = ElementTree.fromstring(svg.encode())
    width, height = (float(edge) for edge in root.attrib["viewBox"].split()[2:])
    whole = next(group for group in root if group.get("id", "").startswith("figure_"))
    parts = {group.get("id", "").rpartition("_")[0] for group in whole}
    panels = [_panel(group) for group in whole if group.get("id", "").startswith("axes_")]
    if parts - {"axes", "patch"} or not all(panels):
        return Columns(width, height, ())
    found: list[list[Panel]] = []
    for panel in sorted(panels, key=lambda each: each.frame.left):
        last = found[-1] if found else []
        beside = last and panel.frame.left < max(each.frame.right for each in last) - ROOM
        if beside or found and panel.frame.right - panel.frame.left < COLOUR_BAR:
            last.append(panel)
        else:
            found.append([panel])
    edges = [
        (min(each.shown.left for each in one) - ROOM, max(each.shown.right for each in one) + ROOM)
        for one in found
    ]
    apart = all(one[1] - 2 * ROOM <= other[0] + ROOM for one, other in zip(edges, edges[1:]))
    if len(found) < 2 or not apart:
        return Columns(width, height, ())
    spans, labels = [], None
    for one, (left, right) in zip(found, edges):
        own = (max(0.0, left), min(width, right))
        if any(each.labelled for each in one):
            labels = (own[0], min(each.frame.left for each in one))
            spans.append((own,))
        else:
            spans.append((labels, own) if labels else (own,))
    return Columns(width, height, tuple(spans))


def _panel(axes: ElementTree.Element) -> Panel | None:
    frame = _frame(axes)
    if frame is None:
        return None
    shown = frame
    for letters in _texts(axes):
        shown = shown.with_(letters)
    return Panel(frame, shown, _labelled(axes))


def _frame(axes: ElementTree.Element) -> Box | None:
    """The rectangle of the axes' own ground."""
    ground = axes.find(f"{SVG}g/{SVG}path")
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", ground.get("d", ""))] if ground is not None else []
    if len(numbers) < 8:
        return None
    return Box(min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2]))


def _labelled(axes: ElementTree.Element) -> bool:
    """Whether the vertical axis has numbers or a title."""
    own = [group for group in axes if re.fullmatch(r"matplotlib\.axis_\d+", group.get("id", ""))]
    vertical = own[1::2]
    return any(group.get("id", "").startswith("text_") for axis in vertical for group in axis.iter(f"{SVG}g"))


def _texts(axes: ElementTree.Element) -> list[Box]:
    """About where each text stands, from the places of its letters."""
    found = []
    for group in axes.iter(f"{SVG}g"):
        if not group.get("id", "").startswith("text_"):
            continue
        for line in group.iter(f"{SVG}g"):
            place = re.match(
                r"translate\(([-\d.]+) ([-\d.]+)\)\s*(?:rotate\((-?[\d.]+)\)\s*)?scale\(([\d.]+)",
                line.get("transform", ""),
            )
            letters = [use.get("transform", "") for use in line.iter(f"{SVG}use")]
            if not place or not letters:
                continue
            offsets = [float(m[1]) for t in letters if (m := re.match(r"translate\(([-\d.]+)", t))]
            x, y, size = float(place[1]), float(place[2]), float(place[4])
            long, high = size * (max(offsets, default=0.0) + LETTER), size * 75
            if place[3] and abs(float(place[3])) == 90:
                found.append(Box(x - high, y - long, x + 0.2 * high, y))
            else:
                found.append(Box(x, y - high, x + long, y + 0.2 * high))
    return found
