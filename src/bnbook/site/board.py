"""The board: every claim as a row of a plain list, which a script can search and filter."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from bnbook.claims.judging import NOT_TESTED
from bnbook.claims.words import OWN_QUESTION
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.site import chips, forest, words

Row = dict[str, Any]
SHOWN = 3  # of the tests of a claim, those whose smallest effect its page says
SCALES = {"smoke": "smoke run", "laptop": "laptop", "overnight": "overnight", "paper": "the papers’ own"}


def board(rows: list[Row], chapters: list[Chapter]) -> str:
    """The form (hidden where no script runs) and the list, by chapter."""
    lines = [_form(rows, chapters), '<p class="board-count" role="status"></p>']
    for chapter in chapters:
        own = [row for row in rows if row["chapter"] == chapter.name]
        if own:
            lines.append(f'<section class="board-chapter" aria-label="{html.escape(chapter.title)}">')
            title = f'<a href="{chapter.name}.html">{html.escape(chapter.title)}</a>'
            lines.append(
                f'<p class="board-title" role="heading" aria-level="2">{title}</p><ul class="board">'
            )
            lines += [item(row) for row in own]
            lines.append("</ul></section>")
    return "\n".join(lines)


def item(row: Row) -> str:
    """One row: chip and sentence, forest plot, effect in words, place and scope."""
    test = forest.deciding(row)
    kept = {
        "source": "|".join(words.source_keys(row["source"])),
        "chapter": row["chapter"],
        "verdict": row["verdict"],
        "kind": row["kind"],
        "standing": standing(row),
        "scale": row["profile"] or "none",
        "sizes": "again" if row["rungs"] else "first",
    }
    data = "".join(f' data-{key}="{html.escape(value)}"' for key, value in kept.items())
    measured = found(row)
    picture = forest.plot(test)
    picture = f'<div class="claim-plot">{picture}</div>' if picture else ""
    says = f'<a class="claim-name" href="{chips.address(row["id"])}">{words.rich(row["says"])}</a>'
    return (
        f'<li class="claim{"" if picture else " bare"}" id="claim-{row["id"]}"{data}>'
        f'<div class="claim-says">{chips.chip(row)} {says}</div>{picture}'
        f'<p class="claim-found">{measured}</p><p class="claim-place">{place(row)}</p></li>'
    )


def found(row: Row) -> str:
    """Effect in words with its interval, what must hold, and what other margins would say."""
    test = forest.deciding(row)
    if test is None:
        return ""
    said = [f"<strong>{html.escape(test['effect']['words'])}</strong>"]
    if test["interval"]:
        said.append(f"95 % interval {html.escape(test['interval']['words'])}")
    more = len(row["tests"])
    if test["role"] == "part" and more > 1:
        said.append(f"part {row['tests'].index(test) + 1} of {more}")
    if row["verdict"] == NOT_TESTED:
        said.append("at a scale that does not count")
    asked = f"must hold: {html.escape(test['asks'])}"
    other = row["other_margins"]
    if other and set(other) != {row["verdict"]}:
        asked += f"; at half the margin <em>{other[0]}</em>, at twice <em>{other[1]}</em>"
    return f"{', '.join(said)} · {asked}"


def place(row: Row) -> str:
    """Where the source says it, and how far the verdict goes."""
    where = words.rich(words.source_place(row))
    if row["kind"] == "question":
        where = f"{'' if OWN_QUESTION in row['says'] else 'The book’s own question. '}About {where}"
    said = [where, html.escape(row["scope"])]
    said += [
        html.escape(words) for words in [row["remark"], *(f"test changed {why}" for why in row["changed"])]
    ]
    return " · ".join(each for each in said if each)


def preregistered(row: Row) -> dict[str, str]:
    """What a claim's page says of its test before the data: what its seeds can decide, and how it changed."""
    shown, more = row["power"][:SHOWN], len(row["power"]) - SHOWN
    rest = [f"and {more} more in the file of locks"] if more > 0 else []
    return {"Smallest effect": "; ".join([*shown, *rest]), "Test changed": "; ".join(row["changed"])}


def standing(row: Row) -> str:
    """Whether the test was fixed before its data."""
    return "exploratory" if row["exploratory"] else "locked"


def counts(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """How many of each verdict, in the order of `chips.ORDER`."""
    tally = Counter(row["verdict"] for row in rows)
    return [(verdict, tally[verdict]) for verdict in chips.ORDER if tally[verdict]]


def _form(rows: list[Row], chapters: list[Chapter]) -> str:
    sources = {row["source"]["key"]: None for row in rows}
    named: dict[str, str] = {}
    for key in sources:
        named[key] = words.source_name(key)
        versions = {
            one for row in rows for one in words.source_keys(row["source"]) if one.startswith(f"{key} ")
        }
        named |= {one: f"– only {one.partition(' ')[2]}" for one in sorted(versions)}
    fields = {
        "source": ("Source", named),
        "chapter": ("Chapter", {each.name: each.title for each in chapters}),
        "verdict": ("Verdict", {verdict: verdict for verdict, _ in counts(rows)}),
        "kind": ("Kind", words.KINDS),
        "standing": ("Test", {"locked": "locked before its data", "exploratory": "exploratory"}),
        "scale": (
            "Scale",
            {one: SCALES.get(one, one) for one in sorted({r["profile"] or "none" for r in rows})},
        ),
        "sizes": ("Judged", {"first": "with a square", "again": "again, at several sizes"}),
    }
    chosen = "".join(_select(name, label, options) for name, (label, options) in fields.items())
    search = '<label class="wide">Search <input type="search" name="find" autocomplete="off"></label>'
    reset = '<button type="reset">Show all</button>'
    return f'<form class="board-form" role="search" aria-label="Claims" hidden>{search}{chosen}{reset}</form>'


def _select(name: str, label: str, options: dict[str, str]) -> str:
    listed = "".join(
        f'<option value="{html.escape(value)}">{html.escape(re.sub("[$]", "", text))}</option>'
        for value, text in options.items()
    )
    return f'<label>{label} <select name="{name}"><option value="">all</option>{listed}</select></label>'
