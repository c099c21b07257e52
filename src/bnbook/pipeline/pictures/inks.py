"""The inks of figures as the site shows them: no ground, one colour one meaning, for light and dark.

A run draws on white; what it drew is evidence and stays as it is. The site shows a copy with each ink
replaced: `light` as the page goes out, and `for_both_themes` that one with inks for the dark. Every ink of
the palette stands out from its ground by 3 to 1.
"""

from __future__ import annotations

import colorsys
import re

LIGHT_GROUND, DARK_GROUND = "#ffffff", "#121212"
LEAST_CONTRAST = 4.5  # words have these inks, too

#: Meaning -> (ink on white, ink in the dark). An arm's ink is for that arm alone; what is none has an ink of
#: its own here, or the ink of text with a mark and a dash; `part` is what holds, or was mended, in part.
PALETTE = {
    "none": ("#c4500c", "#ff8f57"),
    "batch": ("#0068a8", "#5cb4f2"),
    "noisy": ("#7d4bb3", "#bd9bf2"),
    "noise": ("#8a6d00", "#d6b64a"),
    "l1": ("#b3478c", "#ea93c6"),
    "l2": ("#8f6400", "#f0b13c"),
    "linf": ("#00808f", "#4fd0de"),
    "layer": ("#8c564b", "#d3a49a"),
    "corrected": ("#00805c", "#35c79c"),
    "wrong": ("#c2263c", "#ff7d88"),
    "part": ("#875a00", "#e8bd52"),
    "printed": ("#6b6b6b", "#a8adb4"),
    "text": ("#222832", "#dde3e9"),
    "skip": ("#445a00", "#9dbb2f"),  # batch norm in every layer, with skip connections around them
    "one": ("#2b2bc4", "#8088ff"),  # batch norm behind a single layer
    "apart": ("#a000c8", "#e868ff"),  # descent in length and direction apart, such as GDNP
    "grid": ("#e3e3e3", "#333b47"),
}
#: Ink of a run, as `bnbook.figures` or an older form of it draws -> its meaning.
DRAWN = {
    "#d55e00": "none",
    "#0072b2": "batch",
    "#009e73": "noisy",
    "#8a6d00": "noise",
    "#cc79a7": "l1",
    "#e69f00": "l2",
    "#56b4e9": "linf",
    "#7a5195": "layer",
    "#777777": "printed",
    "#cc3311": "wrong",
    "#000000": "text",
    "#222222": "text",
    "#333333": "text",
    "#e3e3e3": "grid",
}
#: Where older runs draw something else with the same ink: a pattern of PART/CHAPTER/FIGURE -> its meanings.
ELSEWHERE = {
    r"(mean-field|theory|decoupling|batch-norm)/": {"#009e73": "corrected"},
    r".*/margins$": {"#d55e00": "wrong", "#009e73": "corrected"},
    r"santurkar/deep-linear/verdicts$": {"#0072b2": "corrected", "#d55e00": "wrong"},
    r"mean-field/reach/images$": {"#7d4bb3": "batch"},
}
#: Figures that paint areas by a colour scale, which their colour bar shows: no ink of the scale is changed.
SCALES = r".*/(map|plane|gradients)$"

#: Those whose panels it fills: what lies on it has the same inks in both themes.
PAINTED = r".*/(map|plane)$"
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


def light(svg: str, figure: str) -> str:
    """A run's figure (PART/CHAPTER/FIGURE) for the light theme: no ground, the palette's inks."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, count=1, flags=re.S)
    svg = BEHIND.sub(r"\1fill: none", svg)
    svg = NUMBER.sub(lambda number: f"{float(number[0]):.2f}", svg)
    meanings = dict(DRAWN)
    for pattern, other in ELSEWHERE.items():
        if re.match(pattern, figure):
            meanings |= other
    kept = re.match(SCALES, figure) is not None

    def ink(match: re.Match) -> str:
        drawn = match[0]
        if drawn in meanings:
            return PALETTE[meanings[drawn]][0]
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
    return is_ours(svg) and re.match(PAINTED, figure_of(svg)) is not None


def for_both_themes(svg: str) -> str:
    """The figure that `light` gave, each ink that the dark theme changes named once, in a style; where the
    figure's address ends in `#dark`, the names mean those of the dark theme.

    Names and not rules for what has an ink: marks that are drawn by `use` inherit the first and may not see
    the second.
    """
    kept = re.match(SCALES, figure_of(svg)) is not None
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
    if ink in (turned := dict(PALETTE.values())):
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
