"""The page of one claim: what is said and where, how it was tested, what was found, and how to repeat it."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bnbook.claims.words import spelled
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.site import board, chips, draws, links, words
from bnbook.site.claim_tests import found
from bnbook.site.shell import page
from bnbook.site.spacing import with_fixed_spaces

Row = dict[str, Any]
ROOT = "../"
#: What of a claim's sentence is this book's decision.
READING = re.compile(r"; we read,? (.*?)\.?$", re.S)


@dataclass(frozen=True)
class Context:
    """What a claim's page shows besides its row."""

    chapter: str  # title
    evidence: Evidence | None
    figure: str = ""  # its HTML
    anchor: str = ""  # of the figure in the chapter
    caption: str = ""  # its HTML there
    places: Sequence[str] = ()  # sentences of the sources that it judges
    runs: Sequence[tuple[str, Row]] = ()  # (profile, row) of every published run that judged it
    drawn: Sequence[Row] = ()  # what each draw gave by itself
    locked: str = ""
    known: str = ""  # HTML: its instruments, and how it goes at other sizes
    repository: str = ""
    before: str = ""  # id of the claim before it
    after: str = ""


def claim_page(row: Row, about: Context) -> str:
    """The whole HTML page, in claims/ID.html."""
    chapter = f"{ROOT}{row['chapter']}.html"
    crumbs = (
        f'› <a href="{ROOT}scoreboard.html">Board</a> › <a href="{chapter}">{html.escape(about.chapter)}</a>'
    )
    parts = [
        f"<h1>{words.rich(row['says'])}</h1>",
        f'<p class="claim-verdict">{chips.chip(row, link=False)} {words.rich(_rest(row))}</p>',
        f'<p class="claim-place">{board.place(row)}</p>',
        about.known,
        *[f"<h2>{title}</h2>{text}" for title, text in _sections(row, about).items() if text],
        _neighbours(about),
    ]
    title = f"{words.plain(row['says'])} – {row['verdict']}"
    said = f"{row['verdict']}. {row['effect']['words'] if row['effect'] else ''} {words.source_place(row)}"
    return page(html.unescape(title), with_fixed_spaces("\n".join(parts)), ROOT, said, crumbs)


def _rest(row: Row) -> str:
    start = "holds if" if row["verdict"] == "holds if …" else row["verdict"]
    return row["words"].removeprefix(start).strip()


def _sections(row: Row, about: Context) -> dict[str, str]:
    return {
        "What was found": found(row),
        "The picture": _figure(row, about),
        "How sure": _sure(row, about),
        "Where it is said": _said(row, about),
        "Every run that judged it": _runs(about.runs),
        "Each draw by itself": draws.table(row, about.drawn),
        "Repeat it": _repeat(row, about),
    }


def _figure(row: Row, about: Context) -> str:
    if not about.figure:
        return ""
    link = f'<a href="{ROOT}{row["chapter"]}.html#{about.anchor}">The figure in its chapter</a>'
    caption = f'<p><span class="caption-text">{about.caption}</span></p>' if about.caption else ""
    return f"<figure>{about.figure}<figcaption>{caption}<p>{link}</p></figcaption></figure>"


def _sure(row: Row, about: Context) -> str:
    made = about.evidence.results.header["provenance"] if about.evidence else {}
    mark = (
        f"exploratory: {row['exploratory']}"
        if row["exploratory"]
        else f"locked {about.locked or 'before its data'}"
    )
    margins = row["other_margins"]
    said = {
        "Test": mark,
        **board.preregistered(row),
        "In the words of its lock": spelled(row["was"]),
        "Run": f"{made.get('date', '')}, {row['profile']} profile" if made else "",
        "Scope": row["scope"],
        "At half the margin": margins[0] if margins else "",
        "At twice the margin": margins[1] if margins else "",
        "Since the run": row["remark"],
    }
    return _list({key: html.escape(str(text)) for key, text in said.items() if text})


def _said(row: Row, about: Context) -> str:
    listed = "".join(f"<li>{words.rich(place)}</li>" for place in about.places)
    where = words.rich(words.source_place(row))
    if row["kind"] == "question":
        where = f"No source says it: the book asks it, about {where}." + " It bears on:" * bool(listed)
    reading = READING.search(row["says"])
    ours = f"<p>Our reading: {words.rich(reading[1])}.</p>" if reading else ""
    return f"<p>{where}</p>" + (f"<ul>{listed}</ul>" if listed else "") + ours


def _runs(runs: Sequence[tuple[str, Row]]) -> str:
    lines = ""
    for profile, row in runs:
        effect = row["effect"]["words"] if row["effect"] else ""
        cells = (profile, chips.chip(row, link=False), html.escape(effect), html.escape(row["scope"]))
        lines += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
    return _table(lines) if lines else ""


def _table(lines: str) -> str:
    # By the keyboard, too, where it is wider than a phone: these pages are without the theme's script.
    frame = '<div class="pst-scrollable-table-container" tabindex="0">'
    return f'{frame}<table class="table">{lines}</table></div>'


def _repeat(row: Row, about: Context) -> str:
    profile = row["profile"] or "laptop"
    made = about.evidence.results.header["provenance"] if about.evidence else {}
    commit = str(made.get("commit", ""))
    code = links.at_commit(about.repository, commit, f"book/{row['chapter']}.md")
    data = f'<a href="{row["id"]}.json">JSON</a> · <a href="{row["id"]}.csv">CSV, a line a seed</a>'
    command = (
        f'<pre tabindex="0"><code>bnbook run {row["chapter"]} --profile {profile} --compare</code></pre>'
    )
    return command + _list({"Code": code, "Numbers": data, "Name": f"<code>{row['id']}</code>"})


def _neighbours(about: Context) -> str:
    links = [
        f'<a rel="{rel}" href="{name}.html">{text}</a>'
        for rel, name, text in (
            ("prev", about.before, "← claim before"),
            ("next", about.after, "next claim →"),
        )
        if name
    ]
    return f'<nav class="claim-next" aria-label="Other claims">{" ".join(links)}</nav>'


def _list(items: dict[str, str]) -> str:
    return "<dl>" + "".join(f"<dt>{key}</dt><dd>{text}</dd>" for key, text in items.items()) + "</dl>"
