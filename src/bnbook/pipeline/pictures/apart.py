"""A figure taken apart for a phone: a drawing of each panel or column of panels, and above them once what
names their lines.

A part shows what it had from its neighbours: the numbers and the name of an axis that a row or a column of
panels shares. A legend that stands in one panel and names what another draws belongs to all, and so do names
that stand beside the lines of one panel alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from bnbook.pipeline.pictures.boxes import Box
from bnbook.pipeline.pictures.legends import fitted, letters, names, words
from bnbook.pipeline.pictures.panels import (
    APART,
    SVG,
    TEXT,
    Panel,
    around,
    figure,
    inks_of,
    moved,
    panels,
    parsed,
    parts_of,
    size,
    texts,
)

ROOM = 3.0  # points around what a drawing shows
LEGEND = 270.0  # points; about as wide a legend of all columns may always be
ElementTree.register_namespace("", SVG.strip("{}"))
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")


def parts(svg: str) -> tuple[list[str], list[str]]:
    """Legends that belong to all, and panels or columns; none where the figure has one column, words of its
    own, or lines of one ink with two names, beside the lines of one part alone."""
    root = parsed(svg)
    whole, outlines = figure(root), _outlines(root)  # before a legend that defines letters is taken out
    kinds = {group.get("id", "").rpartition("_")[0] for group in whole}
    found = parts_of(panels(whole))
    if len(found) < 2 or kinds - {"axes", "patch", "legend"}:
        return [], []
    legends = [group for group in whole if group.get("id", "").startswith("legend_")] or _shared(found)
    found = parts_of(panels(whole))
    everything = [panel for one in found for panel in one]
    drawn = [_part(one, everything) for one in found]
    width = max(LEGEND, *(shown.right - shown.left for _, shown in drawn))
    above = [fitted(each, width) for each in legends]
    if not above:
        known, lacked = names(everything), [_lacks(one, everything) for one in found]
        if any(_would_be_lost(one, inks, everything) for one, inks in zip(found, lacked)):
            return [], []
        wanted = {ink for inks in lacked for ink in inks if len(known[ink]) == 1}
        above = [words(wanted, everything, width)]
    drawings = [_drawing(root, outlines, groups, shown) for groups, shown in drawn]
    return [_drawing(root, outlines, [each[0]], each[1]) for each in above if each], drawings


def _shared(found: list[list[Panel]]) -> list[Element]:
    """The one legend of some panels, where another part draws all that it names, and names none of it
    otherwise beside its lines; taken out of the panels."""
    owners = [(panel, legend) for one in found for panel in one for legend in _legends([panel])]
    if len({(letters(legend), frozenset(inks_of([legend]))) for _, legend in owners}) != 1:
        return []
    named = inks_of([owners[0][1]])
    if named & _names(panel for one in found for panel in one) - {TEXT}:
        return []
    if sum(bool(_legends(one)) or named <= inks_of(panel.group for panel in one) for one in found) < 2:
        return []
    for panel, legend in owners:
        panel.group.remove(legend)
    return [owners[0][1]]


def _lacks(one: list[Panel], everything: list[Panel]) -> set[str]:
    """The inks that a part without a legend draws with and only others name."""
    drawn = inks_of(panel.group for panel in one) | {TEXT}
    return set() if _legends(one) else _names(everything) & drawn - _names(one)


def _would_be_lost(one: list[Panel], lacked: set[str], everything: list[Panel]) -> bool:
    """Whether the names of these inks cannot stand above: words of no ink, and what names two things in a
    panel. An ink with several names, each in a panel, needs none where a part has it alone and a title."""
    twice = {ink for panel in everything for ink, own in names([panel]).items() if len(own) > 1}
    several = {ink for ink in lacked if len(names(everything)[ink]) > 1}
    alone = len(lacked) == 1 and one[0].title() is not None
    return bool(lacked & (twice | {TEXT}) or several and not alone)


def _names(one: Iterable[Panel]) -> set[str]:
    return {ink for panel in one for ink in panel.names()}


def _legends(one: Iterable[Panel]) -> list[Element]:
    return [group for panel in one for group in panel.group if group.get("id", "").startswith("legend_")]


def _part(one: list[Panel], everything: list[Panel]) -> tuple[list[Element], Box]:
    """The groups of a part with what its axes share with others, and the rectangle they fill."""
    groups, shown = [], one[0].shown
    for panel in one:
        groups.append(panel.group)
        for side in () if panel.is_bar else ("y", "x"):
            for each in _borrowed(panel, side, one, everything):
                groups.append(each)
                shown = shown.with_(around(each[0]).moved(*moved(each)))
        shown = shown.with_(panel.shown)
    return groups, shown


def _borrowed(panel: Panel, side: str, one: list[Panel], everything: list[Panel]) -> list[Element]:
    """Numbers and name of an axis that the panel shares, of the nearest on its left or of the nearest
    below."""
    donors = [
        each for each in everything if each not in one and not each.is_bar and _share(panel, each, side)
    ]
    donors.sort(
        key=lambda each: abs(each.frame.left - panel.frame.left) + abs(each.frame.top - panel.frame.top)
    )
    own, found = panel.numbers(side), []
    donor = next((each for each in donors if each.numbers(side)), None)
    if not own and panel.label(side) is None and donor and panel.ticks(side) <= donor.ticks(side):
        across, down = panel.frame.left - donor.frame.left, panel.frame.bottom - donor.frame.bottom
        found = [
            _moved(text, *((across, 0.0) if side == "y" else (0.0, down))) for text in donor.numbers(side)
        ]
    named = next((each for each in donors if each.label(side) is not None), None)
    if named is None or panel.label(side) is not None or side == "x" and not found:
        return found
    if side == "x":
        return [*found, _moved(named.label(side), 0.0, panel.frame.bottom - named.frame.bottom)]
    if own and panel.title() is not None and panel.in_powers() != named.in_powers():
        return found  # another quantity, which its title names
    boxes = [around(text).moved(*moved(outer)) for outer in found for text in outer] or [
        box for text in own if (box := around(text))
    ]
    left = min((each.left for each in boxes), default=panel.frame.left)
    return [*found, _moved(named.label(side), left - ROOM - around(named.label(side)).right)]


def _share(panel: Panel, other: Panel, side: str) -> bool:
    """Whether the other stands left of the panel in its row, or below it in its column."""
    a, b = panel.frame, other.frame
    if side == "y":
        return b.right < a.left and abs(a.top - b.top) + abs(a.bottom - b.bottom) < APART
    return b.top > a.bottom and abs(a.left - b.left) + abs(a.right - b.right) < APART


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
