"""Figures in the site's pages: one file for each theme, and columns that stack on a phone."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bnbook.pipeline import inks, panels
from bnbook.pipeline.panels import Columns

IMAGE = re.compile(
    r'<img (?P<before>[^>]*?)src="(?P<folder>[^"]*_images/)(?P<name>[^"/]+)\.svg"(?P<after>[^>]*?)/?>'
)
#: How the drawing for phones of a figure of one panel is called, see `bnbook.plots.narrow`.
PHONE = ".narrow.svg"
#: Wider ones cannot be shrunk to a phone's width and still be read: they scroll in their frame.
FITS = 540.0
NARROW = 150.0  # points; a phone has about 256
AXIS = "The labels of the vertical axis that the columns share."


def pairs(folder: Path, pages: Path) -> dict[str, Columns]:
    """Write NAME.dark.svg beside each figure NAME.svg of the book, and the drawing for phones where `pages`
    have one; name -> its columns."""
    found = {}
    for path in sorted(folder.glob("*.svg")):
        svg = path.read_text(encoding="utf-8")
        if not inks.is_ours(svg):
            continue
        found[path.stem] = panels.columns(svg)
        path.with_suffix(".dark.svg").write_text(inks.dark(svg), encoding="utf-8")
        chapter, _, figure = inks.figure_of(svg).rpartition("/")
        phone = pages / f"{chapter}.figures" / f"{figure}{PHONE}"
        if phone.is_file():
            narrow = phone.read_text(encoding="utf-8")
            size = panels.columns(narrow)
            found[path.stem] = replace(found[path.stem], narrow=(size.width, size.height))
            path.with_suffix(PHONE).write_text(narrow, encoding="utf-8")
            path.with_suffix(".narrow.dark.svg").write_text(inks.dark(narrow), encoding="utf-8")
    return found


def in_both_themes(page: str, shown: Mapping[str, Columns]) -> str:
    """Each figure of a page once for each theme, the whole and, for phones, column by column; it links to its
    file, where a finger can enlarge it."""

    def one(match: re.Match) -> str:
        if match["name"] not in shown:
            return match[0]
        size, alt = shown[match["name"]], re.search(r'alt="([^"]*)"', match[0])
        words = html.unescape(alt[1]) if alt else ""
        address = f"{match['folder']}{match['name']}"
        instead = size.spans or size.narrow
        kind = "stacks" if instead else "fits" if size.width <= FITS else "scrolls"
        whole = _both(address, words, _size(size.width, size.height))
        stacked = ""
        if size.narrow:
            stacked = _both(f"{address}.narrow", words, _size(*size.narrow))
            stacked = f'<span class="column">{stacked}</span>'
        for place, spans in enumerate(size.spans, start=1):
            parts = "".join(_part(address, words, size, spans, place))
            stacked += f'<span class="column{_narrow(size)}">{parts}</span>'
        stacked = f'<span class="columns">{stacked}</span>' if stacked else ""
        label = html.escape(f"Open this figure by itself: {words[:60]}")
        return (
            f'<a class="plot {kind}" href="{address}.svg" title="{label}">'
            f'<span class="whole">{whole}</span>{stacked}</a>'
        )

    return IMAGE.sub(one, page)


def _narrow(size: Columns) -> str:
    """Where all columns are small, two stand side by side on a phone."""
    widths = [sum(right - left for left, right in spans) for spans in size.spans]
    return " narrow" if max(widths, default=NARROW) < NARROW else ""


def _part(
    address: str, words: str, size: Columns, spans: tuple[tuple[float, float], ...], place: int
) -> list[str]:
    """One column: each span is the whole picture behind a window as wide as the span."""
    described = f"Column {place} of {len(size.spans)} of this figure: {words}"
    total = sum(right - left for left, right in spans)
    found = []
    for number, (left, right) in enumerate(spans, start=1):
        wide = right - left
        style = (
            f"width: {100 * wide / total:.2f}%; aspect-ratio: {wide:.1f} / {size.height:.1f}; "
            f"object-position: {100 * left / (size.width - wide):.2f}% 0"
        )
        found.append(_both(address, described if number == len(spans) else AXIS, {"style": style}))
    return found


def _size(width: float, height: float) -> dict[str, str]:
    return {"width": f"{width * 4 / 3:.0f}", "height": f"{height * 4 / 3:.0f}"}


def _both(address: str, words: str, given: Mapping[str, str]) -> str:
    more = "".join(f' {key}="{value}"' for key, value in given.items())
    said = f'<img alt="{html.escape(words)}" loading="lazy"{more} class="only-'
    return f'{said}light" src="{address}.svg" />{said}dark" src="{address}.dark.svg" />'
