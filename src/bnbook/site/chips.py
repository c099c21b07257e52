"""A verdict at a glance: colour, glyph and word, one form for prose, tables and board."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Any

from bnbook.claims import without_markup

#: Verdict -> (look, glyph, word on the chip). The look is a colour of book.css; the glyph tells it without.
LOOKS = {
    "reproduced": ("true", "✓", "reproduced"),
    "holds": ("true", "✓", "holds"),
    "holds if …": ("part", "◐", "holds if"),
    "wrong as printed, corrected": ("mended", "✎", "wrong as printed, corrected"),
    "wrong": ("false", "✕", "wrong"),
    "not reproduced": ("false", "✕", "not reproduced"),
    "mixed": ("part", "◑", "mixed"),
    "partly refuted, rest open": ("part", "◔", "partly refuted, rest open"),
    "open": ("open", "?", "open"),
    "yes": ("own", "✓", "yes"),
    "no": ("own", "✕", "no"),
    "not tested at this scale": ("open", "○", "not tested here"),
    "not run": ("open", "○", "not run"),
}
ORDER = tuple(LOOKS)


def look(verdict: str) -> tuple[str, str, str]:
    """Look, glyph and word of a verdict."""
    return LOOKS.get(verdict, ("open", "?", verdict))


def address(claim: str, root: str = "") -> str:
    """The claim's own page, seen from a page whose way to the site's first page is `root`."""
    return f"{root}claims/{claim}.html"


def chip(row: dict[str, Any], root: str = "", link: bool = True) -> str:
    """The chip of a row of the ledger, a link to the claim's page; exploratory ones are marked."""
    kind, glyph, word = look(row["verdict"])
    inside = f'<span class="glyph" aria-hidden="true">{glyph}</span>{html.escape(word)}'
    if row["exploratory"]:
        said = html.escape(f"exploratory: {row['exploratory']}")
        inside += f'<abbr class="exploratory" title="{said}">exploratory</abbr>'
    title = f' title="{html.escape(row["words"])}"'
    if not link:
        return f'<span class="chip {kind}"{title}>{inside}</span>'
    return f'<a class="chip {kind}" href="{address(row["id"], root)}"{title}>{inside}</a>'


def row_of(rows: Mapping[str, dict[str, Any]], token: re.Match) -> dict[str, Any]:
    """The row of the claim that a token names; ValueError where no chapter has it."""
    if token["name"] not in rows:
        raise ValueError(f"no chapter has a claim {token['name']!r}")
    return rows[token["name"]]


def inlined(rows: Mapping[str, dict[str, Any]], root: str) -> Callable[[re.Match], str]:
    """How pages say the verdict on the claim of an id in a sentence of Markdown: its chip, and behind it
    what the verdict hangs on."""

    return lambda token: in_words(row_of(rows, token), root)


def in_words(row: dict[str, Any], root: str) -> str:
    """The chip, and behind it what the verdict hangs on."""
    start = "holds if" if row["verdict"] == "holds if …" else row["verdict"]
    return chip(row, root) + without_markup(row["words"].removeprefix(start))
