"""The waffle: every claim of the sources as one square, source by source."""

from __future__ import annotations

from typing import Any

from bnbook.site import board, chips, words

Row = dict[str, Any]


def waffle(rows: list[Row]) -> str:
    """A list of squares for each source, then the book's own questions; under them what the glyphs mean, and
    how many squares have each.

    A claim that is judged again at several sizes has its square from the chapter that judges it first.
    """
    rows = [row for row in rows if not row["rungs"]]
    claimed = [row for row in rows if row["kind"] != "question"]
    keys = dict.fromkeys(key for key in words.SOURCES if any(row["source"]["key"] == key for row in claimed))
    keys |= dict.fromkeys(row["source"]["key"] for row in claimed)
    parts = [
        _source(words.source_name(key), [r for r in claimed if r["source"]["key"] == key]) for key in keys
    ]
    own = [row for row in rows if row["kind"] == "question"]
    if own:
        parts.append(_source("The book’s own questions", own))
    legend = "".join(_meaning(verdict, number) for verdict, number in board.counts(rows))
    if young := sum(bool(row["exploratory"]) for row in rows):
        legend += _entry("standing=exploratory", "open unsure", "", f"{young} of them exploratory")
    return (
        f'<div class="waffle" data-waffle>{"".join(parts)}<p class="waffle-said" aria-hidden="true"></p>'
        f'<ul class="waffle-legend">{legend}</ul></div>'
    )


def _source(name: str, rows: list[Row]) -> str:
    order = {verdict: place for place, verdict in enumerate(chips.ORDER)}
    ordered = sorted(rows, key=lambda row: order.get(row["verdict"], len(order)))
    squares = "".join(map(_square, ordered))
    return (
        f'<div class="waffle-source"><p class="waffle-name">{name} <span>{len(rows)}</span></p>'
        f'<ul class="squares" aria-label="{name}: {len(rows)} claims">{squares}</ul></div>'
    )


def _square(row: Row) -> str:
    kind, glyph, word = chips.look(row["verdict"])
    said = f"{words.plain(row['says'])} — {word}" + (" (exploratory)" if row["exploratory"] else "")
    mark = " unsure" if row["exploratory"] else ""
    return (
        f'<li><a class="{kind}{mark}" href="{chips.address(row["id"])}" title="{said}">'
        f'<span aria-hidden="true">{glyph}</span><span class="said">{said}</span></a></li>'
    )


def _meaning(verdict: str, number: int) -> str:
    kind, glyph, word = chips.look(verdict)
    words = f"{number} {word}" + " (own questions)" * (kind == "own")
    return _entry(f"verdict={verdict.replace(' ', '+')}", kind, glyph, words)


def _entry(filters: str, kind: str, glyph: str, words: str) -> str:
    """A square and what it means, a link to the rows of the board that have it."""
    return (
        f'<li><a href="scoreboard.html#{filters}&amp;sizes=first">'
        f'<span class="square {kind}" aria-hidden="true">{glyph}</span>{words}</a></li>'
    )
