"""The panels of a figure that Matplotlib drew: where each stands, its words, its vertical axis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from bookpress.pipeline import inks
from bookpress.pipeline.inks import Box, of_line

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


# ---- Legends in the width of a column: entries laid out anew; and names alone, for lines that have none ------------

MARK = 4.0  # points from the middle of a legend's mark to its edge
SPACE = "-3"  # how the outline of a space is called
GAP, LEADING = 12.0, 4.0  # points between two entries of a row, and between two rows


@dataclass(frozen=True)
class Label:
    """What names one thing: its marks, if any, then its words; and the rectangle that they fill."""

    groups: tuple[Element, ...]
    box: Box

    @property
    def is_title(self) -> bool:
        return not any(group.get("id") for group in self.groups[:-1])


def legend_box(legend: Element) -> Box:
    """About where a legend stands: its words and what they name."""
    return _around(legend).moved(*moved(legend))


def fitted(legend: Element, width: float) -> tuple[Element, Box]:
    """A legend that is at most so many points wide where its entries allow, and the rectangle that it
    fills."""
    box = legend_box(legend)
    if box.right - box.left <= width:
        return legend, box
    x, y, scale = moved(legend)
    entries = _entries(legend)
    titles = [entry for entry in entries if entry.is_title]
    group, filled = _in_rows(titles, [entry for entry in entries if not entry.is_title], width / scale)
    group.attrib.update(legend.attrib)
    return group, filled.moved(x, y, scale)


def words(inks: set[str], panels: Sequence[Panel], width: float) -> tuple[Element, Box] | None:
    """The names that some panels have in these inks, in rows; None where there are none."""
    named = [found[0] for ink, found in names(panels).items() if ink in inks]
    if not named:
        return None
    group, box = _in_rows([], [Label((each,), around(each)) for each in named], width)
    group.set("id", "legend_words")
    return group, box


def names(panels: Sequence[Panel]) -> dict[str, list[Element]]:
    """The different words that stand beside lines, by their ink, in the order of the panels."""
    found: dict[str, dict[tuple[str, ...], Element]] = {}
    for ink, text in ((ink, text) for panel in panels for ink, own in panel.names().items() for text in own):
        found.setdefault(ink, {}).setdefault(letters(text), text)
    return {ink: list(own.values()) for ink, own in found.items()}


def _in_rows(titles: list[Label], entries: list[Label], width: float) -> tuple[Element, Box]:
    """Entries in as many columns as fit, each as wide as its widest; titles above, each in a row."""
    for count in range(len(entries), 0, -1):
        wide = [max(_width(entry) for entry in entries[k::count]) for k in range(count)]
        if sum(wide) + GAP * (count - 1) <= width:
            break
    lefts = [sum(wide[:k]) + GAP * k for k in range(count)]
    rows = [[title] for title in titles] + [entries[k : k + count] for k in range(0, len(entries), count)]
    group, top = Element(f"{SVG}g"), 0.0
    for row in rows:
        high = max(entry.box.bottom - entry.box.top for entry in row)
        for left, entry in zip(lefts, row):
            down = top + (high - entry.box.bottom + entry.box.top) / 2 - entry.box.top
            place = Element(f"{SVG}g", {"transform": f"translate({left - entry.box.left:.2f} {down:.2f})"})
            place.extend(entry.groups)
            group.append(place)
        top += high + LEADING
    right = max(left + _width(entry) for row in rows for left, entry in zip(lefts, row))
    return group, Box(0.0, 0.0, right, top - LEADING)


def _entries(legend: Element) -> list[Label]:
    """Its entries in their order; a frame is none."""
    found, marks = [], []
    for group in legend:
        marks.append(group)
        if group.get("id", "").startswith("text_"):
            found.append(tuple(marks))
            marks = []
    if found[0][0].get("id", "").startswith("patch_") and _frames(found[0][0], legend):
        found[0] = found[0][1:]
    return [Label(groups, _around(groups)) for groups in found]


def _frames(patch: Element, legend: Element) -> bool:
    box, inner = _around([patch]), [around(text) for text in texts(legend)]
    return all(box.left < each.left and each.right < box.right for each in inner if each)


def _around(groups: Iterable[Element]) -> Box:
    """About what the parts of a legend fill, before it is moved."""
    groups = list(groups)
    boxes = [box for group in groups for text in texts(group) if (box := around(text))]
    for mark in (use for group in groups for use in group.iter(f"{SVG}use")):
        if mark.get("x"):
            x, y = float(mark.get("x")), float(mark.get("y"))
            boxes.append(Box(x, y, x, y).wider(MARK))
    handles = [g for g in groups if g.get("id") and not g.get("id").startswith("text_")]
    paths = [path for g in handles for path in g.iter(f"{SVG}path") if not path.get("id")]
    boxes += [box for path in paths if not path.get("transform") and (box := box_of(path.get("d", "")))]
    whole = boxes[0]
    for box in boxes:
        whole = whole.with_(box)
    return whole


def _width(entry: Label) -> float:
    return entry.box.right - entry.box.left


def letters(text: Element) -> tuple[str, ...]:
    """What a text, or all texts of a legend, are made of; in how many lines, does not count."""
    used = (value for part in text.iter(f"{SVG}use") for name, value in part.items() if "href" in name)
    return tuple(letter for letter in used if not letter.endswith(SPACE))


# ---- A figure taken apart for a phone: a drawing of each panel or column of panels, and above them once what -------
# names their lines.
#
# A part shows what it had from its neighbours: the numbers and the name of an axis that a row or a column of
# panels shares. A legend that stands in one panel and names what another draws belongs to all, and so do names
# that stand beside the lines of one panel alone.

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
