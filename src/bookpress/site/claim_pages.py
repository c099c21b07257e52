"""The page of each claim: what is said and where, how it was tested, what was found, and how to repeat it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bookpress import claims
from bookpress.claims import Instrument, format_number
from bookpress.claims.judging import NOT_TESTED
from bookpress.claims.kinds import kind_of
from bookpress.claims.ledger import SIGN_TEST_DECIDES, shared_words
from bookpress.intervals import LEVEL
from bookpress.pipeline import chapter_runs, pictures, prose
from bookpress.pipeline.chapter_runs import Evidence, published_runs
from bookpress.pipeline.chapters import Chapter
from bookpress.site import board, rendering, shell
from bookpress.site.rendering import Markup, macro, plain, source_place

Row = dict[str, Any]

#: Of a test: look, glyph and word.
MET = {True: ("true", "✓", "met"), False: ("false", "✕", "not met"), None: ("open", "?", "open")}
UNTRIED = ("open", "○", "does not count at this scale")
UNREACHED = ("open", "○", NOT_TESTED)


def _met(test: dict[str, Any]) -> tuple[str, str, str]:
    if test["verdict"] != NOT_TESTED:
        return MET[test["holds"]]
    return UNTRIED if test["n"] else UNREACHED


def _marks(test: dict[str, Any]) -> list[str]:
    """Where a test decides, but not among the book's many tests, or not by the sign test (from six seeds
    on)."""
    if test["p"] is None or test["holds"] is None:
        return []
    many = [] if test["kept"] else ["not kept among the many tests of the book"]
    if test["n"] < SIGN_TEST_DECIDES or test["sign_p"] <= 1 - LEVEL:
        return many
    return [*many, f"the sign test does not decide (p = {format_number(test['sign_p'], '.2g')})"]


rendering.add(met=_met, marks_of_test=_marks)


# ---- What stands beside a claim: what its instruments do by themselves, and how it goes at other sizes -------------


def beside(row: Row, rows: Sequence[Row], instruments: Sequence[Instrument]) -> Markup:
    """A line each for the instruments of a claim and for its verdicts at other sizes, or where it is judged at
    one; many are folded."""
    own = [one for one in instruments if one.id in row["rests_on"]]
    alone = [one for one in rows if row["of"] == one["id"]]
    siblings = [(one, *_at_sizes(one)) for one in rows if one["of"] == row["id"]]
    return macro("claim_page.html.j2", "known")(own, alone, siblings)


def _at_sizes(row: Row) -> tuple[str, list[tuple[dict[str, Any], str]]]:
    """What the effects share, in words, and each test that was tried with how its own reads without that."""
    tried = [test for test in row["tests"] if test["verdict"] != NOT_TESTED]
    shared, short = shared_words([test["effect"]["words"] for test in tried])
    return shared.removeprefix("… "), [(test, short(test["effect"]["words"])) for test in tried]


def marks(instruments: Sequence[Instrument], root: str) -> Callable[[Row], str]:
    """What stands small below the verdict on a claim: the marks of its instruments."""
    small = macro("claim.html.j2", "marks")
    return lambda row: small([one for one in instruments if one.mark and one.id in row["rests_on"]], root)


# ---- The page ------------------------------------------------------------------------------------------------------

ROOT = "../"
#: What of a claim's sentence is this book's decision.
READING = re.compile(r"; we read,? (.*?)\.?$", re.S)


@dataclass(frozen=True)
class Context:
    """What a claim's page shows besides its row."""

    chapter: str  # title
    evidence: Evidence | None
    figure: Markup = Markup("")
    anchor: str = ""  # of the figure in the chapter
    caption: Markup = Markup("")  # there
    places: Sequence[str] = ()  # sentences of the sources that it judges
    runs: Sequence[tuple[str, Row]] = ()  # (profile, row) of every published run that judged it
    drawn: Sequence[Row] = ()  # what each draw gave by itself
    known: Markup = Markup("")  # its instruments, and how it goes at other sizes
    repository: str = ""
    before: str = ""  # id of the claim before it
    after: str = ""


def claim_page(row: Row, about: Context) -> str:
    """The whole HTML page, in claims/ID.html."""
    made = about.evidence.results.header["provenance"] if about.evidence else {}
    code = shell.at_commit(about.repository, str(made.get("commit", "")), f"book/{row['chapter']}.md")
    reading, drawn = READING.search(row["says"]), [test for test in row["tests"] if board.forest(test)]
    text = macro("claim_page.html.j2", "body")(row, about, code, reading[1] if reading else "", drawn)
    said = f"{row['verdict']}. {row['effect']['words'] if row['effect'] else ''} {source_place(row)}"
    crumbs = macro("claim_page.html.j2", "crumbs")(row, about.chapter)
    body = Markup(shell.with_fixed_spaces(text))
    return shell.page(f"{plain(row['says'])} – {row['verdict']}", body, ROOT, said, crumbs)


# ---- Write a page, a JSON and a CSV file for each claim into the built site ----------------------------------------

CAPTION = re.compile(r'<span class="caption-text">(.*?)</span>(?=<a class="headerlink"|\s*</p>)', re.S)


def judgements(
    chapters: list[Chapter], shown: prose.Pages
) -> tuple[Mapping[str, list[tuple[str, Row]]], Mapping[str, list[Row]]]:
    """Every claim once more by each published run, (profile, row), and by each draw."""
    return _runs(chapters, shown), {
        claim.id: _drawn(claim, shown.evidence[claim.chapter]) for claim in shown.claims
    }


def write(
    site: Path,
    chapters: list[Chapter],
    shown: prose.Pages,
    figures: Mapping[str, pictures.Picture],
    judged: tuple[Mapping[str, list[tuple[str, Row]]], Mapping[str, list[Row]]],
    repository: str = "",
) -> None:
    """claims/ID.html, .json and .csv for every claim; figures: name of an image -> what it shows."""
    rows, (runs, drawn) = list(shown.rows.values()), judged
    folder = site / "claims"
    folder.mkdir(exist_ok=True)
    known, images = (
        {chapter.name: chapter for chapter in chapters},
        {each.of: name for name, each in figures.items()},
    )
    places, captions = _places(), cache(caption_of)  # many claims share a figure
    instruments = claims.load_instruments()
    for number, (row, claim) in enumerate(zip(rows, shown.claims, strict=True)):
        chapter = known[row["chapter"]]
        picture, anchor = _figure(chapter, row["figure"], images, figures, shown)
        about = Context(
            chapter=chapter.title,
            evidence=shown.evidence[chapter.name],
            figure=picture,
            anchor=anchor,
            caption=captions(site / f"{chapter.name}.html", anchor),
            places=places.get(row["id"], ()),
            runs=runs.get(row["id"], ()),
            drawn=drawn[row["id"]],
            known=beside(row, rows, instruments),
            repository=repository,
            before=rows[number - 1]["id"] if number else "",
            after=rows[number + 1]["id"] if number + 1 < len(rows) else "",
        )
        data = row | {"run": _run(about.evidence), "draws": about.drawn}
        for ending, text in (
            ("html", claim_page(row, about)),
            ("json", json.dumps(data, ensure_ascii=False)),
            ("csv", per_seed(claim, about.evidence)),
        ):
            (folder / f"{row['id']}.{ending}").write_text(text, encoding="utf-8")


def _run(evidence: Evidence | None) -> dict[str, Any] | None:
    """Where the numbers of a claim come from: date, commit and device of their run."""
    made = evidence.results.header["provenance"] if evidence else None
    return {key: made.get(key) for key in ("date", "commit", "device")} if made else None


def _drawn(claim: claims.Claim, evidence: Evidence | None) -> list[Row]:
    """What each draw of a claim gave by itself, the last run at the end; none where there is but one."""
    return [one.as_data for one in chapter_runs.each_alone(claim, evidence)] if evidence else []


def per_seed(claim: claims.Claim, evidence: Evidence | None) -> str:
    """CSV: a line a seed, a column for each number that the claim's tests read; where two tests average a seed's
    draws otherwise, one for each."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    columns: dict[str, dict[int, float]] = {}
    for test in claim.tests:
        for name in test.result_names():
            if not evidence or name not in evidence.results:
                continue
            seeds, values = evidence.counted(claim, test, name)
            flat = values.reshape(len(values), -1)
            for k, numbers in enumerate(flat.T):
                title = name if flat.shape[1] == 1 else f"{name}[{k}]"
                column = dict(zip(seeds, numbers, strict=True))
                if not np.array_equal(list(columns.get(title, column).values()), numbers, equal_nan=True):
                    title += " (geometric mean of draws)" if kind_of(test).in_factors else " (mean of draws)"
                columns[title] = column
    table.writerow(["seed", *columns])
    for seed in sorted({seed for column in columns.values() for seed in column}):
        cells = (f"{column[seed]:.9g}" if seed in column else "" for column in columns.values())
        table.writerow([seed, *cells])
    return text.getvalue()


def _figure(
    chapter: Chapter, figure: str, images: Mapping[str, str], figures: Mapping[str, Any], shown: prose.Pages
) -> tuple[Markup, str]:
    """The HTML of a claim's figure, and its label in the chapter."""
    name = images.get(f"{chapter.name}/{figure}")
    for one in chapter_runs.referenced_figures(chapter.text):
        if name and one.path.endswith(f"/{figure}.svg"):
            words = prose.fill(one.alt, chapter.name, shown, alone=True)
            image = Markup('<img alt="{}" src="{}_images/{}.svg" />').format(words, ROOT, name)
            return Markup(pictures.in_both_themes(image, figures)), one.label
    return Markup(""), ""


def caption_of(page: Path, anchor: str) -> Markup:
    """What stands under a figure on its chapter's page, without links."""
    text = page.read_text(encoding="utf-8") if anchor and page.is_file() else ""
    _, found, after = text.partition(f'id="{anchor}"')
    caption = CAPTION.search(after) if found else None
    return Markup(re.sub(r"</?a\b[^>]*>", "", caption[1]) if caption else "")


def _places() -> dict[str, list[str]]:
    """Claim -> the sentences of the sources that it judges."""
    found: dict[str, list[str]] = {}
    for listed in claims.load_coverage():
        for sentence in listed.sentences:
            for name in sentence.claims:
                found.setdefault(name, []).append(f"{listed.version}, {sentence.where}: {sentence.says}")
    return found


def _runs(chapters: list[Chapter], shown: prose.Pages) -> dict[str, list[tuple[str, Row]]]:
    """Claim -> the verdict of every fresh published run, where there is more than one."""
    found: dict[str, list[tuple[str, Row]]] = {}
    for chapter in chapters:
        if len(held := published_runs(chapter)) < 2:
            continue
        for one in (one for one in held if not one.stale()):
            evidence = {**shown.evidence, chapter.name: one}
            pages = shown if shown.evidence == evidence else prose.Pages(evidence, shown.claims)
            for name, row in pages.rows.items():
                if row["chapter"] == chapter.name:
                    found.setdefault(name, []).append((one.profile, row))
    return found
