"""A verdict at a glance, one form for prose, tables and board: its chip, a forest plot, the board and the waffle."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bookpress.book import book
from bookpress.claims import without_markup
from bookpress.claims.claim import EXACT
from bookpress.claims.judging import NOT_TESTED, deciding, tested
from bookpress.pipeline import prose
from bookpress.pipeline.chapters import Chapter
from bookpress.site import rendering
from bookpress.site.rendering import ORDER, Markup, macro, source_keys, source_name

Row = dict[str, Any]


def chip(row: Row, root: str = "") -> Markup:
    """The chip of a row of the ledger, a link to the claim's row seen from `root`; exploratory ones are marked."""
    return macro("claim.html.j2", "chip")(row, root)


def row_of(rows: Mapping[str, dict[str, Any]], token: prose.Token) -> dict[str, Any]:
    """The row of the claim that a token names; ValueError where no chapter has it."""
    if token.name not in rows:
        raise ValueError(prose.no_claim(token.name, rows))
    return rows[token.name]


def inlined(rows: Mapping[str, dict[str, Any]], root: str) -> Callable[[prose.Token], str]:
    """How pages say the verdict on the claim of an id in a sentence of Markdown: its chip, and behind it
    what the verdict hangs on."""

    return lambda token: in_words(row_of(rows, token), root)


def in_words(row: dict[str, Any], root: str) -> str:
    """The chip, and behind it what the verdict hangs on."""
    start = "holds if" if row["verdict"] == "holds if …" else row["verdict"]
    return f"{chip(row, root)}{without_markup(row['words'].removeprefix(start))}"


def marked(rows: Mapping[str, dict[str, Any]], root: str) -> Callable[[prose.Mark], str]:
    """How pages mark a sentence that states a verdict: the small chip of its claim, and beside it what was found where
    that is something else."""
    return lambda mark: macro("claim.html.j2", "mark")(mark, rows.get(mark.claim), root)


# ---- A forest plot of one test as inline SVG: where it holds, its interval, a dot for each seed --------------------

WIDTH, HEIGHT, PAD = 220.0, 34.0, 10.0
#: From this spread on factors are drawn on a logarithmic axis.
WIDE = 3.0


def _scale(low: float, high: float, log: bool) -> Callable[[float], float]:
    """Values to pixels."""

    def place(value: float) -> float:
        start, end, at = (math.log(each) if log else each for each in (low, high, value))
        share = (at - start) / (end - start) if end > start else 0.5
        return round(PAD + min(max(share, -0.04), 1.04) * (WIDTH - 2 * PAD), 1)

    return place


def bounds(test: dict[str, Any]) -> tuple[float | None, float | None]:
    """Between which values a test holds; None: without end."""
    low, high = tested(test).edges
    return (low if math.isfinite(low) else None), (high if math.isfinite(high) else None)


def forest(test: dict[str, Any] | None) -> dict[str, Any] | None:
    """Where the parts of the plot stand, in its pixels; None where there is nothing between two numbers to show."""
    if test is None or test["test"]["kind"] in EXACT or test["effect"]["number"] is None:
        return None
    ends_of_ground, effect, interval = bounds(test), test["effect"]["number"], test["interval"]
    ends = [interval["low"], interval["high"]] if interval else []
    # A sign test's interval is of the share of seeds, its values are not.
    dots = [value for value in test["values"] if value is not None and test["test"]["kind"] != "sign"]
    shown = [*ends, effect, *(edge for edge in ends_of_ground if edge is not None)]
    spread = sorted(dots)
    if len(spread) > 2:  # a seed that is far out does not squeeze all the others
        shown += [spread[0], spread[-1]] if spread[-1] - spread[0] < 8 * (max(shown) - min(shown)) else []
    else:
        shown += spread
    log = test["test"]["kind"] == "ratio" and min(shown) > 0 and max(shown) / min(shown) > WIDE
    low, high = min(shown), max(shown)
    room = 0.06 * (high - low) or abs(high) or 1.0
    scale = _scale(low, high, True) if log else _scale(low - room, high + room, False)
    counts = test["verdict"] != NOT_TESTED
    left, right = ends_of_ground
    return {
        "width": f"{WIDTH:.0f}",
        "height": f"{HEIGHT:.0f}",
        "state": {True: "true", False: "false", None: "open"}[test["holds"]] if counts else "untested",
        "ground": (0.0 if left is None else scale(left), WIDTH if right is None else scale(right))
        if counts
        else None,
        "edges": [scale(edge) for edge in ends_of_ground if edge is not None],
        # dots do not hide each other
        "dots": [(scale(each), f"{11.5 + 11 * ((n * 0.618) % 1):.1f}") for n, each in enumerate(dots)],
        "interval": [scale(end) for end in ends],
        "effect": scale(effect),
    }


def plot(test: dict[str, Any] | None) -> Markup:
    """The SVG, or nothing."""
    return macro("claim.html.j2", "plot")(test)


# ---- The board: every claim as a row of a plain list, which a script can search and filter -------------------------

SCALES = {"smoke": "smoke run", "laptop": "laptop", "overnight": "overnight", "paper": "the papers’ own"}
KIND_NAMES = {
    "measurement": "measurement",
    "statement": "formula or theorem",
    "question": "the book’s own question",
}


def standing(row: Row) -> str:
    """Whether the test was fixed before its data."""
    return "exploratory" if row["exploratory"] else "locked"


rendering.give(STATED=prose.STATED)
rendering.add(forest=forest, deciding=deciding, standing=standing)


def item(row: Row) -> Markup:
    """One row: chip and sentence, forest plot, effect in words, place and scope."""
    return macro("board.html.j2", "item")(row)


def board(rows: list[Row], chapters: list[Chapter]) -> Markup:
    """The form (hidden where no script runs) and the list, by chapter."""
    named: dict[str, str] = {}
    for key in dict.fromkeys(row["source"]["key"] for row in rows):
        named[key] = source_name(key)
        versions = {each for row in rows for each in source_keys(row["source"]) if each.startswith(f"{key} ")}
        named |= {each: f"– only {each.partition(' ')[2]}" for each in sorted(versions)}
    fields = {
        "source": ("Source", named),
        "chapter": ("Chapter", {each.name: each.title for each in chapters}),
        "verdict": ("Verdict", {verdict: verdict for verdict, _ in counts(rows)}),
        "kind": ("Kind", KIND_NAMES),
        "standing": ("Test", {"locked": "locked before its data", "exploratory": "exploratory"}),
        "scale": (
            "Scale",
            {one: SCALES.get(one, one) for one in sorted({r["profile"] or "none" for r in rows})},
        ),
        "sizes": ("Judged", {"first": "with a square", "again": "again, at several sizes"}),
    }
    own = [(chapter, [row for row in rows if row["chapter"] == chapter.name]) for chapter in chapters]
    return macro("board.html.j2", "board")(fields, own)


def counts(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """How many of each verdict, in the order of ORDER."""
    tally = Counter(row["verdict"] for row in rows)
    return [(verdict, tally[verdict]) for verdict in ORDER if tally[verdict]]


def waffle(rows: list[Row]) -> Markup:
    """Every claim of the sources as one square, source by source, then the book's own questions. A claim that is
    judged again at several sizes has its square from the chapter that judges it first."""
    rows = [row for row in rows if not row["rungs"]]
    place = {verdict: number for number, verdict in enumerate(ORDER)}
    ordered = sorted(rows, key=lambda row: place.get(row["verdict"], len(place)))
    claimed = [row["source"]["key"] for row in rows if row["kind"] != "question"]
    keys = dict.fromkeys([*(key for key in book().sources if key in claimed), *claimed])
    parts = [
        (source_name(key), [r for r in ordered if r["source"]["key"] == key and r["kind"] != "question"])
        for key in keys
    ]
    if own := [row for row in ordered if row["kind"] == "question"]:
        parts.append(("The book’s own questions", own))
    exploratory = sum(bool(row["exploratory"]) for row in rows)
    return macro("board.html.j2", "waffle")(parts, counts(rows), exploratory)
