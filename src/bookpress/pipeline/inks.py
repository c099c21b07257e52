"""The inks of figures as the site shows them: no ground, one colour one meaning, for light and dark.

A figure is drawn on white. `themed` names each ink that the dark theme changes once, in a style; every ink of the
palette stands out from its ground by 3 to 1.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterable

from bookpress.book import book

LIGHT_GROUND, DARK_GROUND = "#ffffff", "#121212"
LEAST_CONTRAST = 4.5  # words have these inks, too
LEAST = 9.0  # points: smaller letters are not read on a page
COLUMN = (
    552.0  # points: a little under the width of the text in a window of 1280 pixels; what is wider is shrunk
)

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

MARK, READ = "data-figure", "data-results"  # PART/CHAPTER/FIGURE, and the results that it draws
DARK = "dark"  # the name of a figure's root: where an address ends in it, the figure is dark
INK = re.compile(r"#[0-9a-f]{6}\b")
BEHIND = re.compile(r'(<g id="(?:figure|axes)_\d+">\s*<g id="patch_\d+">\s*<path [^>]*style=")fill: #ffffff')
NUMBER = re.compile(r"-?[1-9]\d*\.\d{3,}")
#: What says nothing: a quarter of a file are spaces in paths, and names that are longer than they need be.
LEFT_OUT = re.compile(r"\s*<metadata>.*?</metadata>|\s*<!--.*?-->|(?<=>)\s+(?=<)|(?<=\s)xlink:(?=href)", re.S)
PATH = re.compile(r' d="[^"]*"')
SPACE = re.compile(r"(?<=[A-Z]) | ?\n")
LETTER = re.compile(r'(<use href="#[^"]*") transform="translate\((\S+) 0\)"')
#: A text that is not white, as on a patch of colour.
WORDS = re.compile(r'<g id="(text_\d+)">(?!<g style="fill: #ffffff)')
#: The ground's colour around letters, about 1.5 points each way, in units of their outlines: 64 in a hundredth of a
#: font, but for the bar of a root or fraction.
AROUND = (
    ".around{stroke:GROUND;stroke-width:2200;stroke-linejoin:round}"
    ".around path:not([id]),[id^=text] path:not([id]){stroke-width:34}"
)


def palette() -> dict[str, tuple[str, str]]:
    """The inks of what every book draws, and those of the book's own arms."""
    return {**PALETTE, **book().palette}


def told(svg: str) -> tuple[str, tuple[str, ...]]:
    """PART/CHAPTER/FIGURE of what `themed` gave, empty of any other drawing, and the results that it draws, where they are
    known."""
    found = re.search(rf'<svg id="{DARK}" {MARK}="([^"]*)"(?: {READ}="([^"]*)")?', svg)
    return (found[1], tuple((found[2] or "").split())) if found else ("", ())


Size = tuple[float, float]  # width and height of a drawing in points


def size(svg: str) -> Size:
    width, height = re.search(r'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"', svg).groups()
    return float(width), float(height)


def themed(svg: str, figure: str, read: Iterable[str] = ()) -> str:
    """Matplotlib's drawing of a figure (PART/CHAPTER/FIGURE), made of these results, for both themes: no ground, each
    ink that the dark theme changes named once, in a style; where the figure's address ends in `#dark`, the names mean
    those of the dark theme.

    Names and not rules for what has an ink: marks that are drawn by `use` inherit the first and may not see
    the second.
    """
    svg = BEHIND.sub(r"\1fill: none", LEFT_OUT.sub("", svg)).replace("DejaVuSans-", "D")
    svg = NUMBER.sub(lambda number: f"{round(float(number[0]), 2)}", LETTER.sub(r'\1 x="\2"', svg))
    svg = PATH.sub(lambda path: SPACE.sub("", path[0]), svg)
    kept = re.match(book().scales, figure) is not None
    painted = re.match(book().painted, figure) is not None
    svg = svg if painted else WORDS.sub(r'<use href="#\1" class="around"/>\g<0>', svg)
    parts = ON_SCALE.split(svg) if painted else [svg]  # every other one lies on the scale
    light = {ink: _on_white(ink, kept) for ink in INK.findall(svg)}
    parts = [INK.sub(lambda ink: light[ink[0]], part) for part in parts]
    words = PALETTE["text"][0]
    used = dict.fromkeys([words, LIGHT_GROUND, *INK.findall("".join(parts[::2]))])
    turned = {ink: _in_the_dark(ink, kept) for ink in used}
    if len(parts) > 1:  # marks and their samples have the inks that they have on the scale
        turned |= {ink: ink for ink in turned if not is_grey(ink) and ink != words}
    names = {ink: f"--{k}" for k, ink in enumerate(ink for ink, other in turned.items() if ink != other)}
    put = lambda ink: f"var({names[ink[0]]})" if ink[0] in names else ink[0]
    parts[::2] = [INK.sub(put, part) for part in parts[::2]]
    on_white = "".join(f"{name}:{ink};" for ink, name in names.items())
    dark = "".join(f"{name}:{turned[ink]};" for ink, name in names.items())
    around = AROUND.replace("GROUND", f"var({names[LIGHT_GROUND]})")
    style = f"<style>:root{{{on_white}fill:var({names[words]})}}:root:target{{{dark}}}{around}</style>"
    about = f'id="{DARK}" {MARK}="{figure}"' + f' {READ}="{" ".join(read)}"' * bool(read)
    return re.sub(r"<svg ([^>]*>)", rf"<svg {about} \1{style}", "".join(parts), count=1)


def _on_white(ink: str, kept: bool) -> str:
    if ink == "#000000":
        return PALETTE["text"][0]
    return ink if kept or is_grey(ink) or ink in dict(palette().values()) else legible(ink, LIGHT_GROUND)


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
