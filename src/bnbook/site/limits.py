"""What stands beside a claim: what its instruments do by themselves, and how it goes at other sizes."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

from bnbook.claims import Instrument
from bnbook.claims.judging import NOT_TESTED
from bnbook.claims.ledger import shared_words
from bnbook.site import chips, words
from bnbook.site.claim_tests import MET

Row = dict[str, Any]
PAGE = "instruments.html"
MANY = 2  # lines of sizes above which they are folded


def known(row: Row, rows: Sequence[Row], instruments: Sequence[Instrument]) -> str:
    """The HTML of a claim's page: a line each for its instruments and for its siblings at other sizes."""
    own, sizes = _instruments(row, instruments), _sizes(row, rows)
    lines = "".join(map(_line, sizes))
    if len(sizes) > MANY:
        lines = f"<details><summary>At other sizes</summary>{lines}</details>"
    return (_line(own) if own else "") + lines


def _line(text: str) -> str:
    return f'<p class="claim-known">{text}</p>'


def marks(instruments: Sequence[Instrument], root: str) -> Callable[[Row], str]:
    """What stands small below the verdict on a claim: the marks of its instruments."""

    def of(row: Row) -> str:
        marked = [one for one in instruments if one.mark and one.id in row["rests_on"]]
        links = " · ".join(
            f'<a href="{root}{PAGE}#{one.anchor}">{html.escape(one.mark)}</a>' for one in marked
        )
        return f"<br><small>{links}</small>" if links else ""

    return of


def _instruments(row: Row, instruments: Sequence[Instrument]) -> str:
    said = [
        f'<a href="../{PAGE}#{one.anchor}">{words.rich(one.name)}</a>'
        + (f", {words.rich(one.line)}" if one.line else "")
        for one in instruments
        if one.id in row["rests_on"]
    ]
    return f"Rests on: {'; '.join(said)}." if said else ""


def _sizes(row: Row, rows: Sequence[Row]) -> list[str]:
    """The claim's verdicts at the sizes of a ladder, or where it is judged at one size."""
    lines = [
        f"At one size, in its own chapter: {chips.chip(one, '../')} {words.rich(one['says'])}"
        for one in rows
        if row["of"] == one["id"]
    ]
    siblings = [one for one in rows if one["of"] == row["id"]]
    for one in siblings:
        tried = [test for test in one["tests"] if test["verdict"] != NOT_TESTED]
        shared, short = shared_words([test["effect"]["words"] for test in tried])
        sizes = " ".join(_size(test, short) for test in tried)
        of = f" ({words.rich(one['says'].rstrip('.'))})" if len(siblings) > 1 else ""
        more = html.escape(shared.removeprefix("… ")) if sizes else "not tried"
        link = f'<a href="{one["id"]}.html">At other sizes</a>{of}'
        lines.append(f"{link}{', ' if more else ''}{more}{':' if sizes else '.'} {sizes}")
    return lines


def _size(test: Row, short: Callable[[str], str]) -> str:
    look, glyph, word = MET[test["holds"]]
    effect = html.escape(short(test["effect"]["words"]))
    title = html.escape(f"{word}: {test['effect']['words']}")
    said = f"{html.escape(test['says'].rstrip('.'))}: {effect}"
    inside = f'<span class="glyph" aria-hidden="true">{glyph}</span>{said}'
    return f'<span class="chip {look}" title="{title}">{inside}</span>'
