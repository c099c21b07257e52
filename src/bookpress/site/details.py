"""Every claim as a folded row on its chapter's page: what is said and where, how it was tested, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bookpress import atomic, claims
from bookpress.claims import Instrument, format_number
from bookpress.claims.judging import NOT_TESTED
from bookpress.claims.kinds import SIGN_TEST_DECIDES
from bookpress.claims.ledger import shared_words
from bookpress.intervals import LEVEL
from bookpress.pipeline import chapter_runs, prose
from bookpress.pipeline.chapter_runs import published_runs
from bookpress.pipeline.chapters import Chapter
from bookpress.site import board, rendering
from bookpress.site.rendering import Markup, macro

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


rendering.add(met=_met, marks_of_test=_marks, forest=board.forest)


def details(chapter: Chapter, shown: prose.Pages, root: str) -> Markup:
    """All claims of a chapter, one below the other; `root` is the way from its page to the first one."""
    rows, instruments = list(shown.rows.values()), claims.load_instruments()
    others = _others(chapter, shown)
    return Markup("\n").join(
        folded(
            row,
            beside(row, rows, instruments, root),
            [one.mark for one in instruments if one.mark and one.id in row["rests_on"]],
            others.get(row["id"], []),
            label(chapter, row["figure"]),
            root,
        )
        for row in rows
        if row["chapter"] == chapter.name
    )


def label(chapter: Chapter, figure: str) -> str:
    """What the page calls a figure, by the `:name:` option of its directive; empty where it calls it nothing."""
    named = (one for one in chapter_runs.referenced_figures(chapter.text) if one.label)
    return next((one.label for one in named if one.path.endswith(f"/{figure}.svg")), "")


def folded(
    row: Row,
    known: Markup | str = "",
    cautions: Sequence[str] = (),
    others: Sequence[str] = (),
    figure: str = "",
    root: str = "",
) -> Markup:
    """One claim. known: what stands beside it; cautions: of its instruments; others: what other runs say; figure: its
    label on the page."""
    return macro("details.html.j2", "details")(row, known, cautions, others, figure, root)


def beside(row: Row, rows: Sequence[Row], instruments: Sequence[Instrument], root: str) -> Markup:
    """A line each for the instruments of a claim and for its verdicts at other sizes, or where it is judged at
    one."""
    own = [one for one in instruments if one.id in row["rests_on"]]
    alone = [one for one in rows if row["of"] == one["id"]]
    siblings = [(one, *_at_sizes(one)) for one in rows if one["of"] == row["id"]]
    return macro("details.html.j2", "known")(own, alone, siblings, root)


def _at_sizes(row: Row) -> tuple[str, list[tuple[dict[str, Any], str]]]:
    """What the effects share, in words, and each test that was tried with how its own reads without that."""
    tried = [test for test in row["tests"] if test["verdict"] != NOT_TESTED]
    shared, short = shared_words([test["effect"]["words"] for test in tried])
    return shared.removeprefix("… "), [(test, short(test["effect"]["words"])) for test in tried]


def _others(chapter: Chapter, shown: prose.Pages) -> dict[str, list[str]]:
    """Claim -> what each published run that is not shown noted of it: "laptop: open when it ran"."""
    now, found = shown.evidence[chapter.name], {}
    for run in published_runs(chapter):
        for name, then in (
            run.results.header.get("judged", {}).items() if now and run.folder != now.folder else ()
        ):
            found.setdefault(name, []).append(f"{run.profile}: {then['verdict']} when it ran")
    return found


#: What an old address of a claim is now; chips on old pages and in papers lead there.
MOVED = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{id}</title><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0; url=../{chapter}.html#claim-{id}">'
    '<a href="../{chapter}.html#claim-{id}">The claim {id}</a></html>'
)


def redirect(site: Path, shown: prose.Pages) -> None:
    """claims/ID.html for every claim, which leads to its row."""
    (site / "claims").mkdir(exist_ok=True)
    for row in shown.rows.values():
        atomic.write_text(site / "claims" / f"{row['id']}.html", MOVED.format_map(row))
