"""The panels of a figure that Matplotlib drew: where each stands, its words, its vertical axis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from bnbook.pipeline.pictures import inks
from bnbook.pipeline.pictures.boxes import Box, of_line

SVG = "{http://www.w3.org/2000/svg}"
COLOUR_BAR = 30.0  # an axis narrower than this stays with what stands left of it
TEXT = "text"  # the ink of words that have none of their own
RAISED = "scale(0.7)"  # letters of an exponent
APART = 3.0  # points that two panels of a column, or of a row, may be out of line

LINE = re.compile(r"translate\(([-\d.]+) ([-\d.]+)\)\s*(?:rotate\((-?[\d.]+)\)\s*)?scale\(([\d.]+) -[\d.]+\)")
MOVED = re.compile(r"translate\(([-\d.]+) ([-\d.]+)\)(?: scale\(([\d.]+)\))?")


@dataclass(frozen=True)
class Panel:
    """One pair of axes: its group, the rectangle that it frames, and all that it shows."""

    group: Element
    frame: Box
    shown: Box

    @property
    def is_bar(self) -> bool:
        return self.frame.right - self.frame.left < COLOUR_BAR

    def axes(self, side: str) -> list[Element]:
        """Its axis x or y, of two where another is drawn over it."""
        last = {"x": "[13579]", "y": "[02468]"}[side]
        return [g for g in self.group if re.fullmatch(rf"matplotlib\.axis_\d*{last}", g.get("id", ""))]

    def numbers(self, side: str) -> list[Element]:
        """The texts at the ticks of an axis."""
        return [text for tick in self._ticks(side) for text in texts(tick)]

    def label(self, side: str) -> Element | None:
        """What an axis is called."""
        own = (g for axis in self.axes(side) for g in axis if g.get("id", "").startswith("text_"))
        return next((text for text in own if around(text)), None)

    def title(self) -> Element | None:
        """What stands above it."""
        own = ((g, around(g)) for g in self.group if g.get("id", "").startswith("text_"))
        return next((text for text, box in own if box and box.bottom < self.frame.top + APART), None)

    def ticks(self, side: str) -> set[float]:
        """The places of the ticks of an axis."""
        found = self._ticks(side)
        lines = [box_of(p.get("d", "")) for tick in found for p in tick.iter(f"{SVG}path") if p.get("style")]
        marks = [float(use.get(side)) for tick in found for use in tick.iter(f"{SVG}use") if use.get(side)]
        return {
            round(at) for at in [*marks, *(line.top if side == "y" else line.left for line in lines if line)]
        }

    def in_powers(self) -> bool:
        """Whether the numbers of its vertical axis are powers."""
        return any(
            RAISED in use.get("transform", "") for n in self.numbers("y") for use in n.iter(f"{SVG}use")
        )

    def _ticks(self, side: str) -> list[Element]:
        return [g for axis in self.axes(side) for g in axis if g.get("id", "").startswith(f"{side}tick_")]

    def names(self) -> dict[str, list[Element]]:
        """The words that stand beside its lines, by their ink."""
        own = [(g, around(g)) for g in self.group if g.get("id", "").startswith("text_")]
        found: dict[str, list[Element]] = {}
        for group, box in own:
            if box and self.frame.top < (box.top + box.bottom) / 2 < self.frame.bottom:
                for ink in inks_of([group]) or {TEXT}:
                    found.setdefault(ink, []).append(group)
        return found


def panels(figure: Element) -> list[Panel]:
    """The panels of the group of a figure."""
    found = []
    for group in figure:
        ground = group.find(f"{SVG}g/{SVG}path")
        frame = box_of(ground.get("d", "")) if ground is not None else None
        if group.get("id", "").startswith("axes_") and frame:
            shown = frame
            for text in texts(group):
                shown = shown.with_(around(text) or frame)
            found.append(Panel(group, frame, shown))
    return found


def parts_of(found: list[Panel]) -> list[list[Panel]]:
    """What a phone shows one after the other: panels that all have a title row by row, as one reads, others
    column by column; a colour bar stays with its panel."""
    beside: list[list[Panel]] = []
    for panel in sorted(found, key=lambda each: each.frame.left):
        last = beside[-1] if beside else []
        if last and (panel.is_bar or panel.frame.left < max(each.frame.right for each in last) - APART):
            last.append(panel)
        else:
            beside.append([panel])
    own = [panel for panel in found if not panel.is_bar]
    mixed = any(_are_beside(one, other) for same in beside for one in same for other in same)
    if len(beside) > 1 and all(panel.title() is not None for panel in own) or mixed:
        own.sort(key=lambda each: (round(each.frame.top), each.frame.left))
        return [[panel, *_bars(panel, found)] for panel in own]
    return beside


def _bars(panel: Panel, found: list[Panel]) -> list[Panel]:
    """The colour bars between a panel and the next of its row."""
    row = [each for each in found if _are_level(each, panel) and each.frame.left > panel.frame.right]
    end = min((each.frame.left for each in row if not each.is_bar), default=float("inf"))
    return [each for each in row if each.is_bar and each.frame.left < end]


def _are_beside(one: Panel, other: Panel) -> bool:
    return not other.is_bar and one.frame.right < other.frame.left and _are_level(one, other)


def _are_level(one: Panel, other: Panel) -> bool:
    return min(one.frame.bottom, other.frame.bottom) > max(one.frame.top, other.frame.top)


def texts(group: Element) -> Iterator[Element]:
    """Each text in a group."""
    return (each for each in group.iter(f"{SVG}g") if each.get("id", "").startswith("text_"))


def size(text: Element) -> float:
    """Of a text's letters, in points; zero where it has none."""
    return max((100 * float(line[4]) for line in _lines(text)), default=0.0)


def around(text: Element) -> Box | None:
    """About where a text stands, from the places of its letters."""
    found: Box | None = None
    for line in text.iter(f"{SVG}g"):
        place = LINE.match(line.get("transform", ""))
        letters = [use.get("transform", "") for use in line.iter(f"{SVG}use")]
        if not place or not letters:
            continue
        offsets = [float(m[1]) for each in letters if (m := re.match(r"translate\(([-\d.]+)", each))]
        x, y, angle, unit = (float(number or 0) for number in place.groups())
        box = of_line(x, y, unit, offsets, angle)
        found = found.with_(box) if found else box
    return found


def inks_of(groups: Iterable[Element]) -> set[str]:
    """What groups draw with, but for the colour of the ground."""
    styles = (part.get("style", "") for group in groups for part in group.iter())
    return {ink for style in styles for ink in inks.INK.findall(style)} - {inks.LIGHT_GROUND}


def moved(group: Element) -> tuple[float, float, float]:
    """How a group is moved and enlarged."""
    found = MOVED.match(group.get("transform", ""))
    return (float(found[1]), float(found[2]), float(found[3] or 1)) if found else (0.0, 0.0, 1.0)


def box_of(outline: str) -> Box | None:
    """Around the points of a path."""
    numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", outline)]
    if len(numbers) < 4:
        return None
    return Box(min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2]))


def _lines(text: Element) -> Iterator[re.Match]:
    places = (LINE.match(line.get("transform", "")) for line in text.iter(f"{SVG}g"))
    return (place for place in places if place)


def figure(root: Element) -> Element:
    """The group of all that Matplotlib drew."""
    return next(group for group in root if group.get("id", "").startswith("figure_"))


def parsed(svg: str) -> Element:
    return ElementTree.fromstring(svg.encode())
