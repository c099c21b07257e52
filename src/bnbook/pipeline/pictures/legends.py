"""Legends in the width of a column: entries laid out anew; and names alone, for lines that have none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bnbook.pipeline.pictures.boxes import Box
from bnbook.pipeline.pictures.panels import SVG, Panel, around, box_of, moved, texts

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
