"""Letters of a figure as the site shows it: none smaller than can be read where the page is widest.

A run's figure is evidence and stays as it was drawn. In the site's copy a legend with smaller letters is
enlarged as a whole, and any other text about its own middle, unless it would then run into another one; the
raised digits of a power belong to their text. Behind a legend's words, and those that stand in a panel, lies
the colour of the ground; not where an area is painted, or the words are white and stand on a colour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bnbook.pipeline.pictures import inks
from bnbook.pipeline.pictures.boxes import Box, of_line

LEAST = 9.0  # points on the page
COLUMN = (
    552.0  # points: a little under the width of the text in a window of 1280 pixels; wider figures are shrunk
)
PHONE = 270.0  # points: the same on a phone of 390 pixels
ENOUGH = 1.02  # a smaller step is not worth a move

OUTLINE = 64  # units of a letter's outline in a hundredth of its font, the unit of a root's or fraction's bar
#: In units of a letter's outline: about 1.5 points each way.
WIDENED = 2200
BEHIND = f"fill: #ffffff; stroke: #ffffff; stroke-width: {WIDENED}; stroke-linejoin: round"

LEGEND = re.compile(r'^( *)<g id="legend_\d+"[^>]*>\n.*?^\1</g>', re.M | re.S)
TEXT = re.compile(r'^( *)<g id="text_\d+">\n.*?^\1</g>', re.M | re.S)
LINE = re.compile(
    r"translate\((?P<x>[-\d.]+) (?P<y>[-\d.]+)\)(?P<turn>\s*rotate\((?P<angle>[-\d.]+)\))?\s*"
    r"scale\((?P<size>[\d.]+) -(?P=size)\)"
)
IN_PANEL = "   "  # how far a text of the axes is indented that is no number of an axis
FRAME = re.compile(r'<g id="axes_\d+">\s*<g id="patch_\d+">\s*<path d="([^"]*)"')
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def readable(svg: str, column: float = COLUMN) -> str:
    """The figure with each text of at least LEAST points, also where a column of so many points shrinks
    it."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if size is None:  # none of Matplotlib's
        return svg
    whole = Box(0.0, 0.0, float(size[1]), float(size[2]))
    least = LEAST * max(1.0, whole.right / column)
    svg = _legends(svg, whole, least)
    frames = [(m.start(), _path(m[1])) for m in FRAME.finditer(svg)] if not inks.is_painted(svg) else []
    inside = [legend.span() for legend in LEGEND.finditer(svg)]
    texts = [t for t in TEXT.finditer(svg) if not any(a < t.start() < b for a, b in inside)]
    taken = [_around(text[0]) for text in texts]
    pieces, end = [], 0
    for place, text in enumerate(texts):
        pieces += [svg[end : text.start()], "", text[0]]
        end = text.end()
        old = taken[place]
        if old is None:
            continue
        for factor in _factors(least / _size(text[0])):
            new = _grown(old, factor, *_middle(old, whole, factor))
            others = [box for box in taken if box is not None and box is not old]
            if not any(_meet(new, box) and not _meet(old, box) for box in others):
                pieces[-1] = _enlarged(text[0], factor, *_middle(old, whole, factor))
                taken[place] = new
                break
        frame = next((frame for start, frame in reversed(frames) if start < text.start()), None)
        if frame and text[1] == IN_PANEL and _stands_in(taken[place], frame) and "#ffffff" not in text[0]:
            pieces[-2] = _behind(pieces[-1])
    return "".join(pieces) + svg[end:]


def _legends(svg: str, whole: Box, least: float) -> str:
    """Each legend enlarged within the axes or figure that frames it: what touches an edge stays there."""

    def one(match: re.Match) -> str:
        box, before = _around(match[0]), svg[: match.start()]
        factor = least / _size(match[0]) if box else 1.0
        legend = TEXT.sub(lambda text: _behind(text[0]) + text[0], match[0])
        if factor < ENOUGH:
            return legend
        frames = FRAME.findall(before) if len(match[1]) > 2 else []
        frame = _path(frames[-1]) if frames else whole
        handles = [_path(d) for d in re.findall(r'<path d="([^"]*)" (?:clip-path|style)', match[0])]
        for handle in handles:
            box = box.with_(handle)
        x = _pinned(box.left, box.right, frame.left, frame.right)
        y = _pinned(box.top, box.bottom, frame.top, frame.bottom)
        move = f"translate({x * (1 - factor):.2f} {y * (1 - factor):.2f}) scale({factor:.4f})"
        return legend.replace('">', f'" transform="{move}">', 1)

    return LEGEND.sub(one, svg)


def _behind(text: str) -> str:
    """The letters of a text once more, widened by the ground's colour."""
    letters = re.sub(r"<defs>.*?</defs>|<!--.*?-->", "", text, flags=re.S)
    letters = re.sub(r"<(path|rect) ", rf'<\1 style="stroke-width: {WIDENED / OUTLINE}" ', letters)
    return (
        re.sub(r'<g id="text_\d+"', f'<g style="{BEHIND}"', re.sub(r'(<g) style="[^"]*"', r"\1", letters))
        + "\n"
    )


def _pinned(low: float, high: float, least: float, most: float) -> float:
    """The point between low and high that stays when they grow: the nearer to an edge, the closer to it."""
    before, after = max(low - least, 0.0), max(most - high, 0.0)
    return low + (high - low) * (before / (before + after) if before + after else 0.5)


def _middle(box: Box, whole: Box, factor: float) -> tuple[float, float]:
    """The point about which a text grows: its middle, or such that it stays in the figure."""
    found = []
    for low, high, most in ((box.left, box.right, whole.right), (box.top, box.bottom, whole.bottom)):
        more = (factor - 1) * (high - low) / 2
        room = low < more or high + more > most
        found.append(_pinned(low, high, 0.0, most) if room else (low + high) / 2)
    return found[0], found[1]


def _factors(wanted: float) -> Iterator[float]:
    """The wanted size, or as much of it as there is room for."""
    yield from (f for f in (wanted, (1 + 2 * wanted) / 3, (2 + wanted) / 3) if f >= ENOUGH)


def _size(block: str) -> float:
    return max((100 * float(line["size"]) for line in LINE.finditer(block)), default=LEAST)


def _enlarged(block: str, factor: float, x: float, y: float) -> str:
    def one(line: re.Match) -> str:
        size = factor * float(line["size"])
        place = (x + factor * (float(line["x"]) - x), y + factor * (float(line["y"]) - y))
        return f"translate({place[0]:.2f} {place[1]:.2f}){line['turn'] or ''} scale({size:.5f} -{size:.5f})"

    return LINE.sub(one, block)


def _around(block: str) -> Box | None:
    """About where the lines of a text stand, from the places of their letters."""
    found: Box | None = None
    lines = list(LINE.finditer(block))
    for line, following in zip(lines, [*lines[1:], None]):
        letters = block[line.end() : following.start() if following else len(block)]
        offsets = [float(o) for o in re.findall(r'<use [^>]*transform="translate\(([-\d.]+)', letters)]
        x, y, size, angle = (float(line[name] or 0) for name in ("x", "y", "size", "angle"))
        box = of_line(x, y, size, offsets, angle)
        found = found.with_(box) if found else box
    return found


def _path(d: str) -> Box:
    numbers = [float(n) for n in NUMBER.findall(d)]
    return Box(min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2]))


def _grown(box: Box, factor: float, x: float, y: float) -> Box:
    return Box(
        *(
            p + factor * (edge - p)
            for edge, p in zip((box.left, box.top, box.right, box.bottom), (x, y, x, y))
        )
    )


def _stands_in(box: Box, frame: Box) -> bool:
    """Whether a text stands in the panel, and not above it as a title does."""
    return frame.top - 1 < box.top and box.bottom < frame.bottom + 1


def _meet(one: Box, other: Box) -> bool:
    return min(one.right, other.right) > max(one.left, other.left) and min(one.bottom, other.bottom) > max(
        one.top, other.top
    )
