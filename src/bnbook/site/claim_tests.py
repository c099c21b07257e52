"""What the tests of a claim found: an entry for each on the claim's page."""

from __future__ import annotations

import html
from typing import Any

from bnbook.claims import format_number
from bnbook.claims.judging import NOT_TESTED
from bnbook.claims.ledger import SIGN_TEST_DECIDES
from bnbook.intervals import LEVEL
from bnbook.site import forest, words

#: Of a test: look, glyph and word.
MET = {True: ("true", "✓", "met"), False: ("false", "✕", "not met"), None: ("open", "?", "open")}
UNTRIED = ("open", "○", "does not count at this scale")
UNREACHED = ("open", "○", NOT_TESTED)


def found(row: dict[str, Any]) -> str:
    """An entry for each test: what must hold, the plot, effect and interval, whether it is met."""
    lines = []
    for test in row["tests"]:
        look, glyph, word = _met(test)
        sentence = words.rich(test["says"].rstrip("."))
        said = {"printed": "As printed. ", "corrected": f"Corrected: {sentence}. "}
        says = f"{sentence}. " if test["role"] == "part" else said.get(test["role"], "")
        picture = forest.plot(test)
        lines.append(
            f'<li class="claim{"" if picture else " bare"}"><div class="claim-says">'
            f'<span class="chip {look}"><span class="glyph" aria-hidden="true">{glyph}</span>{word}</span> '
            f"{says}Must hold: {html.escape(test['asks'])}.</div>"
            + (f'<div class="claim-plot">{picture}</div>' if picture else "")
            + (f'<p class="claim-found">{_measured(test)}</p>' if test["n"] else "")
            + "</li>"
        )
    parts = len([test for test in row["tests"] if test["role"] == "part"])
    all_or_any = {"all": "All parts have to hold.", "any": "One part has to hold."}[row["combine"]]
    if row["rungs"]:
        all_or_any = "It has to hold at every rung that was reached."
    plotted = [test for test in row["tests"] if forest.plot(test)]
    ground = ["Green ground: where the test holds."] * any(test["verdict"] != NOT_TESTED for test in plotted)
    marks = ["Dots: seeds; bar: 95 % interval; diamond: the effect."] * bool(plotted)
    note = " ".join([all_or_any] * (parts > 1) + ground + marks)
    note = f'<p class="claim-place">{note}</p>' if note else ""
    return f'{note}<ul class="board">{"".join(lines)}</ul>' if lines else "<p>Nothing was measured here.</p>"


def _met(test: dict[str, Any]) -> tuple[str, str, str]:
    if test["verdict"] != NOT_TESTED:
        return MET[test["holds"]]
    return UNTRIED if test["n"] else UNREACHED


def _measured(test: dict[str, Any]) -> str:
    said = [f"<strong>{html.escape(test['effect']['words'])}</strong>"]
    if test["interval"]:
        said.append(f"95 % interval {html.escape(test['interval']['words'])}")
    said.append(f"n = {test['n']}")
    if test["p"] is not None:
        said.append(f"p = {format_number(test['p'], '.2g')}" if test["p"] > 1e-12 else "p < 10⁻¹²")
    return ", ".join(said) + "".join(f"; {mark}" for mark in _marks(test))


def _marks(test: dict[str, Any]) -> list[str]:
    """Where a test decides, but not among the book's many tests, or not by the sign test (from six seeds
    on)."""
    if test["p"] is None or test["holds"] is None:
        return []
    many = [] if test["kept"] else ["not kept among the many tests of the book"]
    if test["n"] < SIGN_TEST_DECIDES or test["sign_p"] <= 1 - LEVEL:
        return many
    return [*many, f"the sign test does not decide (p = {format_number(test['sign_p'], '.2g')})"]
