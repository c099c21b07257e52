"""Words, names and verdicts as HTML, and the templates (`bookpress/templates`) that they are put into; the chip in prose and
tables, a forest plot, a folded row on the chapter's page, the board of all and the waffle.

Whatever is put into a template is escaped, so that nothing a run wrote reaches a page as HTML; what is HTML already
says so: it is `Markup`.
"""

from __future__ import annotations

import html
import math
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bookpress import atomic, claims
from bookpress.book import book, command_name
from bookpress.claims import Instrument, Row, format_number, without_markup
from bookpress.claims.claim import EXACT
from bookpress.claims.judging import NOT_TESTED, deciding, tested
from bookpress.claims.kinds import SIGN_TEST_DECIDES
from bookpress.claims.ledger import shared_words
from bookpress.claims.words import OWN_QUESTION, literal, scripts, spelled
from bookpress.intervals import LEVEL
from bookpress.pipeline import chapter_runs, prose
from bookpress.pipeline.chapters import Chapter

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


def look(verdict: str) -> tuple[str, str, str]:
    """Look, glyph and word of a verdict."""
    return LOOKS.get(verdict, ("open", "?", verdict))


def behind(verdict: str) -> tuple[str, str]:
    """Look and glyph behind a sentence that states a verdict: that its test is decided, whichever way, for the sentence
    says which; of an open one and of one that holds in part their own."""
    kind, glyph, _ = look(verdict)
    return ("own", "✓") if kind in ("true", "false", "own", "mended") else (kind, glyph)


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows by their verdicts, as LOOKS has them."""
    place = {verdict: number for number, verdict in enumerate(LOOKS)}
    return sorted(rows, key=lambda row: place.get(row["verdict"], len(place)))


def at(row: dict[str, Any], root: str = "") -> str:
    """The address of a claim's row, seen from `root`."""
    return f"{root}{row['chapter']}.html#claim-{row['id']}"


#: Signs of formulas where no MathJax sets them.
SIGNS = dict(
    zip(
        "alpha beta gamma delta epsilon eta theta lambda mu pi rho sigma phi le leq ge geq ne neq approx cdot times to "
        "infty partial nabla sum pm sqrt ell langle rangle".split(),
        "αβγδεηθλμπρσφ≤≤≥≥≠≠≈·×→∞∂∇Σ±√ℓ⟨⟩",
    )
)
SIGNS |= dict.fromkeys(
    "hat tilde bar left right mathrm text operatorname mathbf widehat lvert rvert".split(), ""
)


def rich(text: str) -> Markup:
    """Words of a claim as HTML: formulas for MathJax, `code` as code, everything else escaped,
    w_t and c^2 with their letters lower and higher."""

    def one(match: re.Match) -> str:
        part = match[0]
        if part.startswith("`"):
            return f"<code>{html.escape(part[1:-1])}</code>"
        if part.startswith("$"):
            return f'<span class="math notranslate nohighlight">\\({html.escape(part[1:-1])}\\)</span>'
        return scripts(spelled(html.escape(part, quote=False)))

    return Markup(re.sub(r"`[^`]*`|\$[^$]*\$|[^`$]+|[`$]", one, text))


def plain(text: str) -> str:
    """The same where no tag may be, as in an attribute: formulas and code without their marks."""
    text = spelled(text)
    text = re.sub(r"\\(?:frac|tfrac)\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda name: SIGNS.get(name[1], name[1]), text)
    return re.sub(r"[`${}\\]", "", text)


def brief(text: str, letters: int = 70) -> Markup:
    """How it begins, in whole words and without our reading of it: what tells a claim from others in a
    list."""
    text = text.partition("; we ")[0].rstrip(".")
    text = re.sub(rf"^The book's {OWN_QUESTION}[^:]*: (.)", lambda first: first[1].upper(), text)
    start = textwrap.shorten(text, letters, placeholder="")
    # a formula, a name or a bracket is shown whole or not at all
    while " " in start and any(
        (start.count("$") % 2, start.count("`") % 2, start.count("(") > start.count(")"))
    ):
        start = start.rsplit(" ", 1)[0]
    return rich(start.rstrip(",;:")) + Markup("\u00a0…") * (start != text)


def told_apart(texts: Sequence[str]) -> list[str]:
    """How each begins; those that begin alike whole."""
    starts = [brief(text) for text in texts]
    return [rich(text) if starts.count(start) > 1 else start for text, start in zip(texts, starts)]


def source_name(key: str) -> str:
    return book().sources.get(key, key)


def source_keys(source: dict[str, str]) -> list[str]:
    """The source, and each of its versions that is named: what the board filters by."""
    named = (each for each in book().versions if each in source["version"])
    return [source["key"], *(f"{source['key']} {each}" for each in named)]


def source_place(row: dict[str, Any]) -> str:
    """ "Wikipedia: Inference, first paragraph", with the version where there are several."""
    key, version, where = (row["source"][name] for name in ("key", "version", "where"))
    if where.startswith(f"{version} "):  # "v1 Lemma 3.3"
        return f"{source_version(key)}, {where}"
    return f"{source_version(key, version)}: {where}"


def source_version(key: str, version: str = "") -> str:
    """ "Santurkar et al. 2018, v1", and "Wikipedia" alone."""
    return source_name(key) if key == "encyclopedia" or not version else f"{source_name(key)}, {version}"


# ---- The templates ---------------------------------------------------------------------------------------------------

OWN = (look, at, rich, plain, told_apart, source_keys, source_place, source_version, spelled, repr)
FILTERS: dict[str, Callable[..., Any]] = {each.__name__: each for each in OWN} | {
    # For a page of Markdown: an author's words, anybody's, and a cell of a table.
    "words": lambda text: Markup(without_markup(text)),
    "literal": lambda text: Markup(literal(text)),
    "cell": lambda text: Markup(str(text).replace("|", "\\|")),
    "code": lambda text: Markup(f"`{str(text).replace('`', chr(39))}`"),  # nothing in it is a tag
    "data_name": lambda name: book().data_names.get(name, name),
}


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("bookpress"),
        autoescape=lambda name: not (name or "").endswith(".txt.j2"),  # files that no browser reads
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= FILTERS | {"plot": plot, "deciding": deciding, "met": _met, "how_sure": _how_sure}
    made.globals |= {"NOT_TESTED": NOT_TESTED, "OWN_QUESTION": OWN_QUESTION, "command": command_name}
    return made


def render(name: str, **given: Any) -> str:
    """A template of bookpress/templates, filled in."""
    return _environment().get_template(name).render(given)


def macro(template: str, name: str) -> Callable[..., Markup]:
    """A part of a template that pages ask for by itself."""
    return getattr(_environment().get_template(template).module, name)


# ---- Verdicts in a sentence ------------------------------------------------------------------------------------------


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
