"""The inks of figures as the site shows them: no ground, one colour one meaning, for light and dark.

A run draws on white; what it drew is evidence and stays as it is. The site shows a copy with each ink
replaced: `light` as the page goes out, and `for_both_themes` that one with inks for the dark. Every ink of
the palette stands out from its ground by 3 to 1.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bookpress.book import book

LIGHT_GROUND, DARK_GROUND = "#ffffff", "#121212"
LEAST_CONTRAST = 4.5  # words have these inks, too

#: Meaning -> (ink on white, ink in the dark), of what every book draws; `part` is what holds, or was mended, in part.
PALETTE = {
    "corrected": ("#00805c", "#35c79c"),
    "wrong": ("#c2263c", "#ff7d88"),
    "part": ("#875a00", "#e8bd52"),
    "printed": ("#6b6b6b", "#a8adb4"),
    "text": ("#222832", "#dde3e9"),
    "grid": ("#e3e3e3", "#333b47"),
}
ON_SCALE = re.compile(
    r'((?:<defs>\s*<path [^>]*>\s*</defs>\s*)?<g clip-path="[^"]*"[^>]*>.*?</g>'
    r'|<path [^>]*clip-path="[^"]*"[^>]*/>)',
    re.S,
)

MARK = "data-figure"
DARK = "dark"  # the name of a figure's root: where an address ends in it, the figure is dark
INK = re.compile(r"#[0-9a-f]{6}\b")
BEHIND = re.compile(r'(<g id="(?:figure|axes)_\d+">\s*<g id="patch_\d+">\s*<path [^>]*style=")fill: #ffffff')
NUMBER = re.compile(r"-?[1-9]\d*\.\d{3,}")


def palette() -> dict[str, tuple[str, str]]:
    """The inks of what every book draws, and those of the book's own arms."""
    return {**PALETTE, **book().palette}


def light(svg: str, figure: str) -> str:
    """A run's figure (PART/CHAPTER/FIGURE) for the light theme: no ground, the palette's inks."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, count=1, flags=re.S)
    svg = BEHIND.sub(r"\1fill: none", svg)
    svg = NUMBER.sub(lambda number: f"{float(number[0]):.2f}", svg)
    meanings, inks = dict(book().drawn), palette()
    for pattern, other in book().drawn_elsewhere.items():
        if re.match(pattern, figure):
            meanings |= other
    kept = re.match(book().scales, figure) is not None

    def ink(match: re.Match) -> str:
        drawn = match[0]
        if drawn in meanings:
            return inks[meanings[drawn]][0]
        return drawn if kept or is_grey(drawn) else legible(drawn, LIGHT_GROUND)

    inked = INK.sub(ink, svg)  # letters name no ink of their own
    return inked.replace("<svg ", f'<svg {MARK}="{figure}" fill="{PALETTE["text"][0]}" ', 1)


def is_ours(svg: str) -> bool:
    """Whether `light` made it."""
    return MARK in svg[:1000]


def figure_of(svg: str) -> str:
    """PART/CHAPTER/FIGURE of what `light` gave."""
    return re.search(rf'{MARK}="([^"]*)"', svg)[1]


def is_painted(svg: str) -> bool:
    """Whether a colour scale fills the panels of what `light` gave."""
    return is_ours(svg) and re.match(book().painted, figure_of(svg)) is not None


def for_both_themes(svg: str) -> str:
    """The figure that `light` gave, each ink that the dark theme changes named once, in a style; where the
    figure's address ends in `#dark`, the names mean those of the dark theme.

    Names and not rules for what has an ink: marks that are drawn by `use` inherit the first and may not see
    the second.
    """
    kept = re.match(book().scales, figure_of(svg)) is not None
    words = PALETTE["text"][0]
    svg = svg.replace(f' fill="{words}"', "", 1)  # of the root: a name holds in a style alone
    parts = ON_SCALE.split(svg) if is_painted(svg) else [svg]  # every other one lies on the scale
    inks = dict.fromkeys([words, *INK.findall("".join(parts[::2]))])
    turned = {ink: _in_the_dark(ink, kept) for ink in inks}
    if len(parts) > 1:  # marks and their samples have the inks that they have on the scale
        turned |= {ink: ink for ink, other in turned.items() if not is_grey(ink) and ink != words}
    names = {ink: f"--{k}" for k, ink in enumerate(ink for ink, other in turned.items() if ink != other)}
    parts[::2] = [
        INK.sub(lambda ink: f"var({names[ink[0]]})" if ink[0] in names else ink[0], part)
        for part in parts[::2]
    ]
    light = "".join(f"{name}:{ink};" for ink, name in names.items())
    dark = "".join(f"{name}:{turned[ink]};" for ink, name in names.items())
    style = f"<style>:root{{{light}fill:var({names[words]})}}:root:target{{{dark}}}</style>"
    return re.sub(r"<svg ([^>]*>)", rf'<svg id="{DARK}" \1{style}', "".join(parts), count=1)


def _in_the_dark(ink: str, kept: bool) -> str:
    if ink in (turned := dict(palette().values())):
        return turned[ink]
    if is_grey(ink):
        return _mixed(DARK_GROUND, PALETTE["text"][1], 1 - int(ink[1:3], 16) / 255)
    return ink if kept else mirrored(ink)


def contrast(one: str, other: str) -> float:
    """(L1 + 0.05)/(L2 + 0.05) of two inks, L their relative luminance (WCAG 2.2)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def legible(ink: str, ground: str) -> str:
    """The ink, made lighter or darker just as far as it needs to stand out from the ground."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(ink))
    step = -0.02 if _luminance(ground) > 0.5 else 0.02
    while contrast(ink, ground) < LEAST_CONTRAST and 0 <= lightness + step <= 1:
        lightness += step
        ink = _hex(colorsys.hls_to_rgb(hue, lightness, saturation))
    return ink


def mirrored(ink: str) -> str:
    """The ink that stands out from the dark ground as this one does from white: a scale of inks keeps its
    order of contrasts."""
    hue, _, saturation = colorsys.rgb_to_hls(*_channels(ink))
    wanted = max(LEAST_CONTRAST, contrast(ink, LIGHT_GROUND))
    shades = [_hex(colorsys.hls_to_rgb(hue, k / 100, saturation)) for k in range(101)]
    return min(shades, key=lambda shade: abs(contrast(shade, DARK_GROUND) - wanted))


def is_grey(ink: str) -> bool:
    return max(_channels(ink)) - min(_channels(ink)) < 0.02


def _channels(ink: str) -> tuple[float, float, float]:
    red, green, blue = (int(ink[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue


def _luminance(ink: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(ink)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _mixed(one: str, other: str, share: float) -> str:
    pairs = zip(_channels(one), _channels(other))
    return _hex(tuple(a + share * (b - a) for a, b in pairs))


def _hex(channels: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(255 * min(max(c, 0.0), 1.0)):02x}" for c in channels)


# ---- Rectangles in a drawing, and about where a line of text stands ------------------------------------------------

#: In hundredths of a font's size: how wide a letter is where the next one does not tell, how high a line.
LETTER, TEXT_LINE = 62.0, 75.0


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

    def moved(self, x: float, y: float, scale: float = 1.0) -> Box:
        return Box(*(scale * edge + by for edge, by in zip(self.edges(), (x, y, x, y))))

    def wider(self, by: float) -> Box:
        return Box(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def edges(self) -> tuple[float, float, float, float]:
        return self.left, self.top, self.right, self.bottom


def of_line(x: float, y: float, unit: float, offsets: Sequence[float], angle: float) -> Box:
    """Of a line of text that begins at (x, y), from where its letters stand on it; upright at 90 degrees."""
    long, high = unit * (max(offsets, default=0.0) + LETTER), unit * TEXT_LINE
    if abs(angle) == 90:
        return Box(x - high, y - long, x + 0.2 * high, y)
    return Box(x, y - high, x + long, y + 0.2 * high)


# ---- Letters of a figure as the site shows it: none smaller than can be read where the page is widest --------------
# A run's figure is evidence and stays as it was drawn. In the site's copy a legend with smaller letters is
# enlarged as a whole, and any other text about its own middle, unless it would then run into another one; the
# raised digits of a power belong to their text. Behind a legend's words, and those that stand in a panel, lies
# the colour of the ground; not where an area is painted, or the words are white and stand on a colour.

LEAST = 9.0  # points on the page
COLUMN = (
    552.0  # points: a little under the width of the text in a window of 1280 pixels; wider figures are shrunk
)
PHONE = 270.0  # points: the same on a phone of 390 pixels
ENOUGH = 1.02  # a smaller step is not worth a move

OUTLINE = 64  # units of a letter's outline in a hundredth of its font, the unit of a root's or fraction's bar
#: In units of a letter's outline: about 1.5 points each way.
WIDENED = 2200
BEHIND_LETTERS = f"fill: #ffffff; stroke: #ffffff; stroke-width: {WIDENED}; stroke-linejoin: round"

LEGEND = re.compile(r'^( *)<g id="legend_\d+"[^>]*>\n.*?^\1</g>', re.M | re.S)
TEXT = re.compile(r'^( *)<g id="text_\d+">\n.*?^\1</g>', re.M | re.S)
LINE = re.compile(
    r"translate\((?P<x>[-\d.]+) (?P<y>[-\d.]+)\)(?P<turn>\s*rotate\((?P<angle>[-\d.]+)\))?\s*"
    r"scale\((?P<size>[\d.]+) -(?P=size)\)"
)
IN_PANEL = "   "  # how far a text of the axes is indented that is no number of an axis
FRAME = re.compile(r'<g id="axes_\d+">\s*<g id="patch_\d+">\s*<path d="([^"]*)"')
LETTER_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def readable(svg: str, column: float = COLUMN) -> str:
    """The figure with each text of at least LEAST points, also where a column of so many points shrinks
    it."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    if size is None:  # none of Matplotlib's
        return svg
    whole = Box(0.0, 0.0, float(size[1]), float(size[2]))
    least = LEAST * max(1.0, whole.right / column)
    svg = _legends(svg, whole, least)
    frames = [(m.start(), _path(m[1])) for m in FRAME.finditer(svg)] if not is_painted(svg) else []
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
        re.sub(
            r'<g id="text_\d+"', f'<g style="{BEHIND_LETTERS}"', re.sub(r'(<g) style="[^"]*"', r"\1", letters)
        )
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
    numbers = [float(n) for n in LETTER_NUMBER.findall(d)]
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
