"""Verdicts as pages show them: the chip in prose and tables, a forest plot, a folded row on the chapter's page, the board
of all and the waffle."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bookpress import atomic, claims
from bookpress.book import book
from bookpress.claims import Instrument, format_number, without_markup
from bookpress.claims.claim import EXACT
from bookpress.claims.judging import NOT_TESTED, deciding, tested
from bookpress.claims.kinds import SIGN_TEST_DECIDES
from bookpress.claims.ledger import shared_words
from bookpress.intervals import LEVEL
from bookpress.pipeline import chapter_runs, prose
from bookpress.pipeline.chapters import Chapter
from bookpress.site import rendering
from bookpress.site.rendering import Markup, behind, in_order, macro, source_keys, source_name

Row = dict[str, Any]


def inlined(rows: Mapping[str, Row], root: str) -> Callable[[prose.Token], str]:
    """How pages say the verdict on the claim of an id in a sentence of Markdown; ValueError where no chapter has it."""

    def said(token: prose.Token) -> str:
        if token.name not in rows:
            raise ValueError(prose.no_claim(token.name, rows))
        return in_words(rows[token.name], root)

    return said


def in_words(row: Row, root: str) -> str:
    """The chip of a row of the ledger, seen from `root`, and behind it what the verdict hangs on."""
    start = "holds if" if row["verdict"] == "holds if …" else row["verdict"]
    return f"{macro('claim.html.j2', 'chip')(row, root)}{without_markup(row['words'].removeprefix(start))}"


def marked(rows: Mapping[str, Row], root: str) -> Callable[[prose.Mark], str]:
    """How pages mark a sentence that states a verdict: the small chip of its claim, and beside it what was found where
    that is something else."""
    shown = macro("claim.html.j2", "mark")
    return lambda mark: shown(mark, behind(prose.STATED[mark.stated]), rows.get(mark.claim), root)


# ---- A forest plot of one test as inline SVG: where it holds, its interval, a dot for each seed --------------------

WIDTH, HEIGHT, PAD = 220.0, 34.0, 10.0
#: From this spread on factors are drawn on a logarithmic axis; so many times as wide as all else, dots stay outside.
WIDE, FAR = 3.0, 8
STATES = {True: "true", False: "false", None: "open"}


def plot(test: Row | None) -> Markup:
    """The SVG; nothing where there is nothing between two numbers to show."""
    if test is None or test["test"]["kind"] in EXACT or test["effect"]["number"] is None:
        return Markup()
    kind, effect, counts = test["test"]["kind"], test["effect"]["number"], test["verdict"] != NOT_TESTED
    ground, interval = tested(test).edges, test["interval"]
    edges, ends = list(filter(math.isfinite, ground)), [interval["low"], interval["high"]] if interval else []
    # A sign test's interval is of the share of seeds, its values are not.
    dots = [value for value in test["values"] if value is not None and kind != "sign"]
    shown = [*ends, effect, *edges]
    if len(dots) <= 2 or max(dots) - min(dots) < FAR * (
        max(shown) - min(shown)
    ):  # else it squeezes the others
        shown += dots
    low, high = min(shown), max(shown)
    log = kind == "ratio" and low > 0 and high / low > WIDE
    room = 0 if log else 0.06 * (high - low) or abs(high) or 1.0
    drawn = math.log if log else float
    start, end = drawn(low - room), drawn(high + room)

    def place(value: float) -> float:
        share = (drawn(value) - start) / (end - start) if end > start else 0.5
        return round(PAD + min(max(share, -0.04), 1.04) * (WIDTH - 2 * PAD), 1)

    left, right = (
        place(edge) if math.isfinite(edge) else border for edge, border in zip(ground, (0.0, WIDTH))
    )
    paths = [("holds", f"M{left} 3H{right}V31H{left}z")] * counts
    paths += [("edge", f"M{place(edge)} 3V31") for edge in edges]
    above = [("interval", "M{} 17H{}".format(*map(place, ends)))] if interval else []
    above += [("effect", f"M{place(effect)} 11l4.5 6-4.5 6-4.5-6z")]
    below, above = ("".join(f'<path class="{name}" d="{d}"/>' for name, d in each) for each in (paths, above))
    spread = (f"{11.5 + 11 * ((n * 0.618) % 1):.1f}" for n in range(len(dots)))  # dots do not hide each other
    circles = "".join(f'<circle class="dot" cx="{place(x)}" cy="{y}" r="2.2"/>' for x, y in zip(dots, spread))
    return Markup(
        f'<svg class="forest {STATES[test["holds"]] if counts else "untested"}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
        f'aria-hidden="true">{below}{circles}{above}</svg>'
    )


# ---- Every claim as a folded row on its chapter's page: what is said and where, how it was tested, what was found --------

#: Of a test: look, glyph and word.
MET = {True: ("true", "✓", "met"), False: ("false", "✕", "not met"), None: ("open", "?", "open")}
UNTRIED = ("open", "○", "does not count at this scale")
UNREACHED = ("open", "○", NOT_TESTED)


def _met(test: dict[str, Any]) -> tuple[str, str, str]:
    if test["verdict"] != NOT_TESTED:
        return MET[test["holds"]]
    return UNTRIED if test["n"] else UNREACHED


def _how_sure(test: Row) -> str:
    """Seeds and p of a test; where it decides, but not among the book's many tests, or not by the sign test (from six
    seeds on)."""
    said, decides = f", n = {test['n']}", test["p"] is not None and test["holds"] is not None
    if test["p"] is not None:
        said += f", p = {format_number(test['p'], '.2g')}" if test["p"] > 1e-12 else ", p < 10⁻¹²"
    if decides and not test["kept"]:
        said += "; not kept among the many tests of the book"
    if decides and test["n"] >= SIGN_TEST_DECIDES and test["sign_p"] > 1 - LEVEL:
        said += f"; the sign test does not decide (p = {format_number(test['sign_p'], '.2g')})"
    return said


rendering.add(plot=plot, deciding=deciding, met=_met, how_sure=_how_sure)


def details(chapter: Chapter, shown: prose.Pages, root: str) -> Markup:
    """All claims of a chapter, one below the other; `root` is the way from its page to the first one."""
    rows, instruments = list(shown.rows.values()), claims.load_instruments()
    others = _others(chapter, shown)
    found = []
    for row in (row for row in rows if row["chapter"] == chapter.name):
        marks = [one.mark for one in instruments if one.mark and one.id in row["rests_on"]]
        known, figure = beside(row, rows, instruments, root), label(chapter, row["figure"])
        found.append(folded(row, known, marks, others[row["id"]], figure, root))
    return Markup("\n").join(found)


def label(chapter: Chapter, figure: str) -> str:
    """What the page calls a figure, by the `:name:` option of its directive; empty where it calls it nothing."""
    named = (one for one in chapter_runs.referenced_figures(chapter.text) if one.label)
    return next((one.label for one in named if one.path.endswith(f"/{figure}.svg")), "")


def folded(row: Row, *beside: Any) -> Markup:
    """One claim; `beside` is what the template takes beside its row."""
    return macro("details.html.j2", "details")(row, *beside)


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
    now, found = shown.evidence[chapter.name], defaultdict(list)
    for run in (run for run in chapter_runs.published_runs(chapter) if now and run.folder != now.folder):
        for name, then in run.results.header.get("judged", {}).items():
            found[name].append(f"{run.profile}: {then['verdict']} when it ran")
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


# ---- The board: every claim as a row of a plain list, which a script can search and filter -------------------------

SCALES = {"smoke": "smoke run", "laptop": "laptop", "overnight": "overnight", "paper": "the papers’ own"}
KIND_NAMES = {
    "measurement": "measurement",
    "statement": "formula or theorem",
    "question": "the book’s own question",
}


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
    scales = sorted({row["profile"] or "none" for row in rows})
    fields = {
        "source": ("Source", named),
        "chapter": ("Chapter", {each.name: each.title for each in chapters}),
        "verdict": ("Verdict", {verdict: verdict for verdict in counts(rows)}),
        "kind": ("Kind", KIND_NAMES),
        "standing": ("Test", {"locked": "locked before its data", "exploratory": "exploratory"}),
        "scale": ("Scale", {one: SCALES.get(one, one) for one in scales}),
        "sizes": ("Judged", {"first": "with a square", "again": "again, at several sizes"}),
    }
    own = [(chapter, [row for row in rows if row["chapter"] == chapter.name]) for chapter in chapters]
    return macro("board.html.j2", "board")(fields, own)


def counts(rows: Iterable[Row]) -> dict[str, int]:
    """How many of each verdict, in order."""
    return Counter(row["verdict"] for row in in_order(rows))


def waffle(rows: list[Row]) -> Markup:
    """Every claim of the sources as one square, source by source, then the book's own questions. A claim that is
    judged again at several sizes has its square from the chapter that judges it first."""
    parts, own = {source_name(key): [] for key in book().sources}, "The book’s own questions"
    rows = [row for row in rows if not row["rungs"]]
    for row in (row for row in rows if row["kind"] != "question"):
        parts.setdefault(source_name(row["source"]["key"]), [])
    for row in in_order(rows):
        name = own if row["kind"] == "question" else source_name(row["source"]["key"])
        parts.setdefault(name, []).append(row)
    shown = [(name, squares) for name, squares in parts.items() if squares]
    exploratory = sum(bool(row["exploratory"]) for row in rows)
    return macro("board.html.j2", "waffle")(shown, counts(rows), exploratory)
