"""A figure taken apart for a phone: a drawing of each column of panels, and of a legend that belongs to all.

A column shows what it had from its neighbours: the numbers and the name of a vertical axis that a row of
panels shares, a legend that stands in one of them and names what it draws, too, and the names of its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from bnbook.pipeline.boxes import Box
from bnbook.pipeline.legends import fitted, words
from bnbook.pipeline.panels import (
    APART,
    SVG,
    TEXT,
    Panel,
    around,
    columns,
    figure,
    inks_of,
    moved,
    panels,
    parsed,
    size,
    texts,
)

ROOM = 3.0  # points around what a drawing shows
LEGEND = 270.0  # points; about as wide a legend of all columns may always be
ElementTree.register_namespace("", SVG.strip("{}"))
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def parts(svg: str) -> tuple[list[str], list[str]]:
    """Legends that belong to all, and columns; none where the figure has one column, words of its own, or
    lines of one ink with two names, beside the lines of one column alone.

    Above columns of several panels each has the legend to itself.
    """
    root = parsed(svg)
    whole = figure(root)
    kinds = {group.get("id", "").rpartition("_")[0] for group in whole}
    found = columns(panels(whole))
    legends = [group for group in whole if group.get("id", "").startswith("legend_")]
    if len(found) < 2 or kinds - {"axes", "patch", "legend"}:
        return [], []
    outlines, everything = _outlines(root), [panel for one in found for panel in one]
    drawn = [_column(one, everything) for one in found]
    width = max(shown.right - shown.left for _, shown in drawn)
    above = legends if max(map(len, found)) > 1 else []
    drawings = []
    for one, (groups, shown) in zip(found, drawn):
        lacks = _lacks(one, everything)
        own = above or ([] if legends or _legends(one) or not _names(one) <= {TEXT} else _legend(one, found))
        named = [fitted(each, width) for each in own]
        if lacks and not (own or legends or _legends(one)):
            named = [words(lacks, everything, shown.right - shown.left)]
            if TEXT in lacks or named == [None]:
                return [], []
        for legend, box in reversed(named):
            x = max((shown.left + shown.right - box.left - box.right) / 2, shown.left - box.left)
            y = shown.top - 2 * ROOM - box.bottom
            groups.append(_moved(legend, x, y))
            shown = shown.with_(box.moved(x, y))
        drawings.append(_drawing(root, outlines, groups, shown))
    of_all = [] if above else [fitted(each, max(width, LEGEND)) for each in legends]
    return [_drawing(root, outlines, [each], box) for each, box in of_all], drawings


def _names(one: Iterable[Panel]) -> set[str]:
    return {ink for panel in one for ink in panel.names()}


def _lacks(one: list[Panel], everything: list[Panel]) -> set[str]:
    """The inks that a column draws with and only others name."""
    return _names(everything) & (inks_of(panel.group for panel in one) | {TEXT}) - _names(one)


def _column(one: list[Panel], all_panels: list[Panel]) -> tuple[list[Element], Box]:
    """The groups of a column with what the vertical axes of its row share, and the rectangle they fill."""
    groups, shown = [], one[0].shown
    for panel in one:
        groups.append(panel.group)
        row = [
            other
            for other in sorted(all_panels, key=lambda each: -each.frame.left)
            if not other.is_bar
            and not panel.is_bar
            and other.frame.right < panel.frame.left
            and abs(other.frame.top - panel.frame.top) + abs(other.frame.bottom - panel.frame.bottom) < APART
        ]
        numbers, box = panel.numbers(), panel.shown
        if not numbers and panel.title() is None:
            donor = next((other for other in row if other.numbers()), None)
            if donor and panel.ticks() <= donor.ticks():
                numbers = [_moved(text, panel.frame.left - donor.frame.left) for text in donor.numbers()]
                groups += numbers
        boxes = [around(text).moved(*moved(text)) for text in numbers if around(text)]
        for each in boxes:
            box = box.with_(each)
        title = next((other.title() for other in row if other.title() is not None), None)
        if panel.title() is None and title is not None:
            left = min((each.left for each in boxes), default=panel.frame.left)
            by = left - ROOM - around(title).right
            groups.append(_moved(title, by))
            box = box.with_(around(title).moved(by, 0.0))
        shown = shown.with_(box)
    return groups, shown


def _legends(one: Iterable[Panel]) -> list[Element]:
    return [group for panel in one for group in panel.group if group.get("id", "").startswith("legend_")]


def _legend(one: list[Panel], found: list[list[Panel]]) -> list[Element]:
    """The first of another column that names no ink that this one does not draw with."""
    drawn = inks_of(panel.group for panel in one)
    return [each for other in found for each in _legends(other) if inks_of([each]) <= drawn][:1]


def _moved(group: Element, x: float, y: float = 0.0) -> Element:
    outer = Element(f"{SVG}g", {"transform": f"translate({x:.2f} {y:.2f})"})
    outer.append(group)
    return outer


def _outlines(root: Element) -> dict[str, Element]:
    """What a drawing uses by its name; taken out of the figure."""
    found = {}
    for parent in list(root.iter()):
        for defined in [each for each in parent if each.tag == f"{SVG}defs"]:
            parent.remove(defined)
            found |= {each.get("id", each.tag): each for each in defined}
    return found


def _drawing(root: Element, outlines: dict[str, Element], groups: list[Element], shown: Box) -> str:
    shown = shown.wider(ROOM)
    wide, high = shown.right - shown.left, shown.bottom - shown.top
    drawing = Element(root.tag, dict(root.attrib))
    drawing.set("viewBox", f"{shown.left:.2f} {shown.top:.2f} {wide:.2f} {high:.2f}")
    drawing.set("width", f"{wide:.2f}pt")
    drawing.set("height", f"{high:.2f}pt")
    drawing.extend(groups)
    used = set(re.findall(r'#([^")]+)[")]', ElementTree.tostring(drawing, encoding="unicode")))
    defined = Element(f"{SVG}defs")
    defined.extend(each for name, each in outlines.items() if name in used or each.tag == f"{SVG}style")
    drawing.insert(0, defined)
    return ElementTree.tostring(drawing, encoding="unicode") + "\n"


def least(svg: str) -> float:
    """The size of the smallest text, in points; of a power, without its raised digits."""
    root = parsed(svg)
    legends = [g for g in root.iter(f"{SVG}g") if g.get("id", "").startswith("legend_")]
    found = {id(text): size(text) * moved(legend)[2] for legend in legends for text in texts(legend)}
    found = {id(text): size(text) for text in texts(root)} | found
    return min((each for each in found.values() if each), default=float("inf"))
