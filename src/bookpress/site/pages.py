"""The generated pages, and the site that is built from them."""

from __future__ import annotations

import math
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bookpress import atomic, claims, paths
from bookpress.book import book, command_name
from bookpress.claims import (
    CHANGES,
    REASONS,
    Claim,
    Coverage,
    Erratum,
    Test,
    error_rates,
    format_number,
    kinds,
    locks,
    without_markup,
)
from bookpress.claims.judging import HOLDS, HOLDS_IF, POWER, TOO_MANY
from bookpress.claims.ledger import FALSE_SHARE, SIGN_TEST_DECIDES
from bookpress.claims.sources import Instrument
from bookpress.claims.words import literal
from bookpress.errors import PressError
from bookpress.intervals import LEVEL, clopper_pearson, is_share
from bookpress.pipeline import chapter_runs, explorers, gate, pictures, prose
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.chapters import Chapter, discover
from bookpress.pipeline.gate import passed_run
from bookpress.pipeline.prose import ABSENT, Pages
from bookpress.schema import Entry, Text, model, read_list
from bookpress.site import board, details, front, rendering, shell, teaching, wheel
from bookpress.site.rendering import Markup, render
from bookpress.texts import read_yaml

# ---- Generated pages: all verdicts, every sentence of the sources, errata, instruments, provenance -----------------


def scoreboard(chapters: list[Chapter], pages: Pages) -> str:
    """Every claim: the waffle, and below it a row each with verdict, effect, interval, place and scope."""
    rows = list(pages.rows.values())
    squares = [row for row in rows if not row["rungs"]]
    runs = [(chapter, pages.evidence[chapter.name]) for chapter in chapters]
    return render(
        "scoreboard.md.j2",
        rows=rows,
        squares=len(squares),
        own=sum(row["kind"] == "question" for row in squares),
        waffle=board.waffle(rows),
        board=board.board(rows, chapters),
        gone=[(chapter, chapter_runs.withdrawn(run)) for chapter, run in runs if run],
    )


def short_scoreboard(chapters: list[Chapter], pages: Pages) -> str:
    """One row a chapter: how many claims of the sources and how their verdicts fell; apart from them the
    book's own questions."""

    def words(chapter: Chapter, asks: bool) -> list[str]:
        own = [each for each in pages.claims if each.chapter == chapter.name and each.asks is asks]
        return [pages.rows[each.id]["verdict"] for each in own]

    rows = [(chapter, words(chapter, False), words(chapter, True)) for chapter in chapters]
    return render("short_scoreboard.md.j2", rows=rows, ABSENT=ABSENT).rstrip("\n")


def anchor(chapter: Chapter, figure: str) -> str:
    """The label of a claim's figure, from the `:name:` option of its directive."""
    named = (one for one in chapter_runs.referenced_figures(chapter.text) if one.label)
    return next((one.label for one in named if one.path.endswith(f"/{figure}.svg")), figure)


def coverage(lists: list[Coverage], pages: Pages) -> str:
    """Counts, the kinds of reasons, and one table for each text of a source."""
    used = {sentence.reason for one in lists for sentence in one.sentences}
    return render(
        "coverage.md.j2",
        counted=counted(lists),
        lists=[(one, claims.count_sentences([one])) for one in lists],
        titles=claims.source_titles(),
        errata={row.id: row for row in claims.load_errata()},
        reasons=[(kind, meaning) for kind, meaning in REASONS.items() if kind in used],
        ledger=pages.rows,
    )


def counted(lists: list[Coverage]) -> str:
    """For the front page: how many sentences, and which source's list is not finished."""
    found, titles = claims.count_sentences(lists), claims.source_titles()
    missing = [f"“{titles.get(key, key)}”" for key in claims.unfinished_sources(lists)]
    rest = f" (the list of {' and '.join(missing)} is not finished)" if missing else ""
    return f"{found.judged} of {found.sentences} judged, {found.open} open{rest}"


def errata(rows: list[Erratum], chapters: list[Chapter], pages: Pages) -> str:
    """Every row of book/errata.yml, gravest first: one block with an anchor (`erratum-ID`) for each; tokens
    are filled in. PressError where one says wrong of what holds by its claim, if only on a condition."""
    wrong = [row for row in rows if row.kind == "wrong" and row.claim]
    if at_odds := [row.id for row in wrong if pages.rows[row.claim]["verdict"] in (HOLDS, HOLDS_IF)]:
        raise PressError(f"{', '.join(at_odds)} in errata.yml: wrong is what the ledger calls holding")
    known, of = {chapter.name: chapter for chapter in chapters}, {claim.id: claim for claim in pages.claims}
    grave = [list(CHANGES), list(claims.ERRATUM_KINDS)]
    ordered = sorted(rows, key=lambda row: (grave[0].index(row.changes), grave[1].index(row.kind)))
    seen: Counter[str] = Counter()
    headings, shown = {}, {}
    for row in ordered:  # equal headings would share an address
        seen[row.title] += 1
        headings[row.id] = row.title + (f" ({seen[row.title]})" if seen[row.title] > 1 else "")
        if claim := of.get(row.claim):
            chapter = known.get(claim.chapter)
            shown[row.id] = claim, chapter, anchor(chapter, claim.figure) if chapter else ""
    given = {"errata": ordered, "listed": rows, "headings": headings, "shown": shown, "ledger": pages.rows}
    text = render("errata.md.j2", changes=CHANGES, titles=claims.source_titles(), **given)
    return prose.fill(text, "errata", pages, {"stands": board.marked(pages.rows, "")})


def instruments(found: list[Instrument], pages: Pages) -> str:
    """Every instrument of book/instruments.yml with an anchor (`instrument-ID`); tokens are filled in."""
    listed = [(one, [row for row in pages.rows.values() if one.id in row["rests_on"]]) for one in found]
    return prose.fill(render("instruments.md.j2", instruments=listed), "instruments", pages)


def provenance(chapters: list[Chapter], pages: Pages) -> str:
    """Every chapter: commit, data, device, seeds, time, memory, versions."""
    return render("provenance.md.j2", chapters=[(each, pages.evidence[each.name]) for each in chapters])


def stamp(chapter: Chapter, evidence: Evidence | None, pages: Pages) -> str:
    """The line under a chapter's answer: with what its numbers were made, and at which other profiles those
    that it quotes."""
    named = sorted(
        {owner for owner, _ in prose.result_names(chapter.text) if owner and owner != chapter.name}
    )
    runs = [(name, run) for name in named if (run := pages.evidence.get(name))]
    quoted = [(name, run) for name, run in runs if evidence and run.profile != evidence.profile]
    return render("stamp.md.j2", chapter=chapter, evidence=evidence, quoted=quoted, banner=BANNER)


def with_banner(text: str, pages: Pages) -> str:
    """A page that is no chapter, with what is said above its first section of numbers that are not the book's own."""
    own = all(run.is_published for run in pages.evidence.values() if run)
    if own or not ("{{ stands:" in text or prose.result_names(text)):
        return text
    start, heading, rest = text.partition("\n## ")
    return f"{start}\n```{{container}} run-stamp\n{BANNER}\n```\n{heading}{rest}"


#: Under the answer of a page whose numbers are of a run that the book has not published.
BANNER = Markup("Sentences state the book’s verdicts; numbers and figures are this run’s.")


def _most_seeds(evidence: Evidence) -> str:
    """Which seeds most results of a page come from; those of the others are for the page of provenance."""
    counts = Counter(tuple(each["seeds"]) for each in evidence.results.entries.values()).most_common()
    more = " and others" if any(set(seeds) - set(counts[0][0]) for seeds, _ in counts) else ""
    return f"seeds {_range(counts[0][0])}{more}" if counts else "no seeds"


def _seed_words(evidence: Evidence) -> str:
    """Which seeds the results come from; where not all come from the same, how many from which."""
    counts = Counter(tuple(entry["seeds"]) for entry in evidence.results.entries.values()).most_common()
    if len(counts) < 2:
        return f"seeds {_range(counts[0][0])}" if counts else "no seeds"
    return "seeds " + ", ".join(f"{_range(seeds)} ({number} results)" for seeds, number in counts)


def _range(seeds: tuple[int, ...]) -> str:
    run = len(seeds) > 1 and seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if run else " and ".join(map(str, seeds))


rendering.add(
    tally=chapter_runs.tally, seeds=_seed_words, most_seeds=_most_seeds, not_as_locked=gate.not_as_locked
)


# ---- The notation: book/notation.yml as a table -----------------------------------------------------------------------


@model
class Notation(Entry):
    """A row of the notation."""

    meaning: Text
    symbol: tuple[str, ...] = ()  # TeX
    code: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def notation() -> str:
    """The rows as a table in Markdown, in a box by which a phone sets each row by itself; PressError names one that is
    not as it should be."""
    path = paths.book_folder() / "notation.yml"
    rows = read_yaml(path, path.name) if path.is_file() else []
    heads = ["| symbol | in the code | in words | meaning |", "|:---|:---|:---|:---|"]
    lines = []
    for one in read_list(Notation, rows, path.name, "row", key="meaning"):
        looks = {_look(each): each for each in reversed(one.symbol)}  # two spellings of one look stand once
        symbols = ", ".join(f"${each}$" for each in one.symbol if each in looks.values())
        code = ", ".join(f"`{each}`" for each in one.code)
        lines.append(f"| {symbols} | {code} | {', '.join(one.words)} | {one.meaning} |")
    return "\n".join([":::{container} notation", *heads, *lines, ":::"])


def _look(symbol: str) -> str:
    """What two spellings in TeX share that look alike."""
    return re.sub(r"[{}\s]", "", symbol.replace(r"\text", r"\mathrm").replace(r"\widehat", r"\hat"))


# ---- The page "How a verdict is made": its text with one worked example, how often tests err, what is shared -------

#: The claim of the worked example: a ratio of five paired seeds.
EXAMPLE = "landscape-loss-range"
Tested = list[tuple[dict[str, Any], dict[str, Any]]]  # rows of the ledger, with their tests that have a p


def here(pages: Pages) -> dict[str, str]:
    """What `{{ here:… }}` stands for on that page."""
    from scipy.special import betaincinv

    rows = list(pages.rows.values())
    tested = [(row, test) for row in rows for test in row["tests"] if test["p"] is not None]
    nine_in_ten = Test("level", a="a", side="greater", threshold=0.9, events=True)
    return {
        "power": str(round(100 * POWER)),
        "too_many": str(TOO_MANY),
        "errors": error_table(),
        "books": f"{error_rates.BOOKS:,}",
        "example": example(tested),
        "five_of_five": format_number(clopper_pearson(5, 5)[0], ".0%"),
        "nine_in_ten": str(kinds.least_seeds(nine_in_ten)),
        "middle": format_number(float(betaincinv(*error_rates.CROWDED, 0.5)), ".2f"),
        "shared": _shared(tested, pages),
        **redrawings(pages.claims),
        **_coverage(tested),
        **_many(rows, tested),
        **changed_tests(locks.deviations(locks.read().lines), set(pages.rows)),
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """Markdown: the first columns are of words, the others of numbers."""
    line = ["|:---" * words + "|---:" * (len(head) - words) + "|"]
    return "\n".join(
        [f"| {' | '.join(head)} |", *line, *(f"| {' | '.join(map(str, row))} |" for row in rows)]
    )


def error_table() -> str:
    """Percentages of books in which a test says "holds" or "fails" by mistake, by interval and data."""
    cases = [
        (name, rates, each, each) for name, rates in error_rates.KINDS.items() for each in error_rates.DATA
    ]
    for name, rates in error_rates.EVENTS.items():
        cases += [(name, rates, f"chance {each}", each) for each in error_rates.CHANCES]
    rows = []
    for name, rates, said, case in cases:
        found = [rates(case, seeds) for seeds in error_rates.SEEDS]
        rows.append([name, said, *(f"{100 * each.holds:.1f}, {100 * each.fails:.1f}" for each in found)])
    return _table(["interval", "data", *(f"{seeds} seeds" for seeds in error_rates.SEEDS)], rows, words=2)


def redrawings(listed: Sequence[Claim]) -> dict[str, str]:
    """What published runs say by today's tests against the one before: a table, and the counts that a sentence
    needs."""
    counted = {way: [0, 0, 0, 0] for way in chapter_runs.WAYS}
    for way, then, now in chapter_runs.redrawn(listed):
        turned, to_open = then != now, None in (then, now)
        each = (True, turned, turned and to_open, turned and not to_open)
        counted[way] = [count + one for count, one in zip(counted[way], each, strict=True)]
    head = ["drawn again with", "tests", "turned", "to or from open", "from holds to fails or back"]
    said = {"draws": _table(head, [[way, *numbers] for way, numbers in counted.items()])}
    for kind, way in {"same": chapter_runs.WAYS[0], "other": chapter_runs.WAYS[2]}.items():
        tests, turned, _, back = counted[way]
        said |= {f"{kind}_tests": str(tests), f"{kind}_turned": str(turned)}
        said[f"{kind}_reversed"] = str(back) if back else "none"
    return said


def example(tested: Tested) -> str:
    """One claim from its test to its verdict, in numbered steps."""
    chosen = [pair for pair in tested if pair[0]["id"] == EXAMPLE] or tested
    if not chosen:
        return ABSENT
    row, test = chosen[0]
    values, on_scale = np.array(test["values"]), _on_scale(test)
    fixed = (
        f"which makes the row exploratory ({late})" if (late := row["exploratory"]) else "fixed beforehand"
    )
    steps = [f"The test, {fixed}: {test['asks']}.", f"What the seeds gave: {_listed(values)}."]
    if test["test"]["kind"] == "ratio":
        steps.append(f"They are ratios, so their logarithms count: {_listed(on_scale)}.")
    if test["interval"] and values.size > 1:
        from scipy.special import stdtrit

        quantile, spread = float(stdtrit(values.size - 1, 0.975)), float(on_scale.std(ddof=1))
        numbers = (float(on_scale.mean()), spread, quantile, quantile * spread / math.sqrt(values.size))
        mean, spread, quantile, half = (format_number(number, ".3f") for number in numbers)
        size = f"Student's t for {values.size} seeds is {quantile}, so half the interval is {half}"
        steps.append(f"Mean {mean}, standard deviation {spread}; {size}.")
        steps.append(f"In words: {test['effect']['words']}, 95 % interval {test['interval']['words']}.")
    marks = [format_number(test[name], ".2g") for name in ("p", "sign_p")]
    steps.append(
        f"The verdict: **{row['verdict']}**. {test['side']} of {test['n']} seeds are on its side; "
        f"p is {marks[0]} by the interval and {marks[1]} by the sign test."
    )
    numbered = [f"{number}. {step}" for number, step in enumerate(steps, start=1)]
    return "\n".join([f"> {without_markup(test['says'])}", "", *numbered])


def changed_tests(found: list[locks.Deviation], listed: Container[str]) -> dict[str, str]:
    """How many preregistered tests were changed, and a list of them by day, chapter and reason; a claim that
    is listed is a link to its page."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in found:
        to = f"{each.chapter}.html#claim-{each.claim}"
        name = f'<a href="{to}">{each.claim}</a>' if each.claim in listed else each.claim
        groups[each.words, each.chapter].append(name)
    lines = [
        f"- {literal(words)} ({chapter}: {', '.join(names)})" for (words, chapter), names in groups.items()
    ]
    return {"changed": str(len(found)), "changes": "\n".join(lines) or ABSENT}


def _coverage(tested: Tested) -> dict[str, str]:
    """Student's interval of five seeds, drawn from what was recorded with at least twenty."""
    recorded = [_on_scale(test) for _, test in tested if test["n"] >= 20]
    recorded = [values for values in recorded if not is_share(values)]
    if not recorded:
        return {"samples": "0", "median": ABSENT, "tenth": ABSENT}
    shares = error_rates.recorded_coverage(recorded, 5)
    median, tenth = (format_number(float(np.quantile(shares, q)), ".1%") for q in (0.5, 0.1))
    return {"samples": str(len(recorded)), "median": median, "tenth": f"at most {tenth}"}


def _many(rows: list[dict[str, Any]], tested: Tested) -> dict[str, str]:
    decided = [test for _, test in tested if test["holds"] is not None]
    many = [test for test in decided if test["n"] >= SIGN_TEST_DECIDES]
    margins = [row for row in rows if row["other_margins"]]
    kept = sum(test["kept"] for _, test in tested)
    steady = sum(set(row["other_margins"]) == {row["verdict"]} for row in margins)
    counts = {
        "tests": len(tested),
        "decided": len(decided),
        "kept": kept,
        "bar": format_number(FALSE_SHARE * kept / max(len(tested), 1), ".3f"),
        "false": math.ceil(FALSE_SHARE * kept),
        "many": len(many),
        "disagree": sum(test["sign_p"] > 1 - LEVEL for test in many),
        "margins": len(margins),
        "turned": len(margins) - steady,
    }
    return {name: str(count) for name, count in counts.items()}


def _shared(tested: Tested, pages: Pages) -> str:
    """How many tests rest on the same seeds of the same network: same data, size, steps and seeds."""
    groups: dict[tuple, Tested] = defaultdict(list)
    for row, test in tested:
        results = pages.evidence[row["chapter"]].results
        header, own = results.header, test["test"]
        names = [each["name"] for each in header.get("data", [])]
        data = ", ".join(book().data_names.get(name, name) for name in names)
        size = tuple(str(header.get("parameters", {}).get(key)) for key in ("width", "depth", "steps"))
        seeds = results.entries[own.get("a") or own["results"][0]]["seeds"]
        groups[data, size, tuple(seeds)].append((row, test))
    if not groups:
        return ABSENT
    (data, _, seeds), largest = max(groups.items(), key=lambda group: len(group[1]))
    chapters = {row["chapter"] for row, _ in largest}
    sure = sum(test["holds"] is not None for _, test in largest)
    where = "one chapter" if len(chapters) == 1 else f"{len(chapters)} chapters"
    return (
        f"The largest family, {len(largest)} tests of {where}, {sure} of them decided, "
        f"rests on the same {len(seeds)} seeds of networks of one size ({data or 'no data set'}): an unlucky "
        "draw of these seeds would show in many rows at once."
    )


def _on_scale(test: dict[str, Any]) -> np.ndarray:
    """The values as the interval takes them: ratios by their logarithms."""
    values = np.array(test["values"], dtype=float)
    return np.log(values) if test["test"]["kind"] == "ratio" else values


def _listed(values: np.ndarray) -> str:
    return ", ".join(format_number(float(value)) for value in values)


# ---- Pages put together: chapters joined with their evidence, tokens filled in, scoreboard, errata, ----------------
# coverage and provenance written.

#: Files of book/ that are no pages.
SUPPORT = ("references.bib", "_static")
INDEX = "index.md"
ANSWER = re.compile(r"^((:{3,})\{admonition\} In short\n:class: answer\n\n).*?^(?=\2$)", re.M | re.S)
SETTINGS = re.compile(r"^\| *setting *\|.*\n(?:\|.*\n?)+", re.M)
GROUP = re.compile(r"^\*\*(?P<title>[^*\n]+)\*\* (?P<n>\(\d+\))\n\n(?P<rows>(?:\|.*\n?)+)", re.M)
GLANCE = 4
INTERVAL = "95 % interval "
SECTION = re.compile(r"^(?=#+ |:{3,}|```\{figure\})", re.M)
ROOT = "../"  # from a chapter's page to the first one


@np.errstate(invalid="ignore")  # a spread of infinite numbers, where a short run diverged
def stage(folder: Path, profile: str | None) -> tuple[list[Chapter], prose.Pages]:
    """Write every page into `folder`, from the fresh runs of `profile` or from the committed evidence (None);
    returns the chapters and what they were filled from."""
    chapters = discover()
    evidence = {chapter.name: passed_run(chapter, profile) for chapter in chapters}
    shown = prose.Pages(evidence, claims.load_claims())
    root, book = paths.repository_root(), paths.book_folder()
    folder.mkdir(parents=True)
    shutil.copy2(root / "_toc.yml", folder / "_toc.yml")
    atomic.write_text(folder / "_config.yml", shell.configuration())
    for name in SUPPORT:
        copy = shutil.copytree if (book / name).is_dir() else shutil.copy2
        copy(book / name, folder / name)
    explorers.write(folder, shown)
    pictures.put([run for run in evidence.values() if run], folder)
    sheets = teaching.sheets()
    for chapter in chapters:
        _chapter_page(chapter, evidence[chapter.name], shown, folder, sheets.get(chapter.name, []))
    if course := teaching.page():
        atomic.write_text(folder / teaching.PAGE, course)
    for name, text in texts(chapters, shown).items():
        atomic.write_text(folder / name, _without_missing_figures(text, folder) if name == INDEX else text)
    return chapters, shown


@np.errstate(invalid="ignore")  # a spread of infinite numbers, where a short run diverged
def texts(chapters: list[Chapter], shown: prose.Pages) -> dict[str, str]:
    """Every page that is no chapter, by the name of its file."""
    short, rows = short_scoreboard(chapters, shown), list(shown.rows.values())
    lists = claims.load_coverage()
    front_page = {"scoreboard": short, "coverage": counted(lists), **front.tokens(rows, shown)}
    names = {"clone": shell.clone(), "binder": shell.binder(), "wheel": wheel.link()}
    names |= {"notation": notation(), "stands": board.marked(shown.rows, "")}
    found = {}
    for path in paths.book_folder().glob("*.md"):
        text = with_banner(path.read_text(encoding="utf-8"), shown)
        text = front.pictures(text, shown, path.name)
        if path.name == INDEX:
            filled = prose.fill(text, "index", shown, extra=names | front_page)
            found[INDEX] = filled.replace(f"({INTERVAL}", "(")  # the page says it once
        else:
            found[path.name] = prose.fill(text, path.stem, shown, extra=names | of_rules(text, shown))
    if known := claims.load_instruments():
        found["instruments.md"] = instruments(known, shown)
    return found | {
        "scoreboard.md": scoreboard(chapters, shown),
        "errata.md": errata(claims.load_errata(), chapters, shown),
        "coverage.md": coverage(lists, shown),
        "provenance.md": provenance(chapters, shown),
    }


def of_rules(text: str, shown: prose.Pages) -> dict[str, Any]:
    """What the page that says how a verdict is made has besides."""
    numbers = here(shown) if "{{ here:" in text else {}

    def number(token: prose.Token) -> str:
        if token.name not in numbers:
            raise ValueError(f"nothing fills it; known: {', '.join(numbers)}")
        return numbers[token.name]

    return {"here": number}


def _chapter_page(
    chapter: Chapter, evidence: Evidence | None, shown: prose.Pages, folder: Path, sheets: list[str]
) -> None:
    import nbformat

    page = chapter_runs.with_evidence(chapter, evidence) if evidence else chapter.notebook.copy()
    target = folder / f"{chapter.name}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    for cell in page.cells:
        if cell.cell_type == "markdown":
            source = cell.source if evidence else unanswered(cell.source, chapter.name)
            text = teaching.with_sheets(said_once(filled(with_folds(source), chapter, shown)), sheets)
            cell.source = _without_missing_figures(text, target.parent)
    written = [cell for cell in page.cells if cell.cell_type == "markdown"]
    opening = taken_out(written) if evidence else ""
    written[0].source = _after_answer(written[0].source, f"{opening}\n\n{stamp(chapter, evidence, shown)}")
    nbformat.write(page, target)


def filled(text: str, chapter: Chapter, shown: prose.Pages) -> str:
    """A chapter's text with its tokens filled in; PressError as `tokens.fill` says."""
    extra = {"verdict": board.inlined(shown.rows, ROOT), "verdicts": lambda _: _verdicts(chapter, shown)}
    extra["stands"] = board.marked(shown.rows, ROOT)
    extra["rungs"] = lambda _: GROUP.sub(_unless_it_turns, claims.rung_table(_judged(chapter, shown)))
    return prose.fill(text, chapter.name, shown, extra)


def said_once(text: str) -> str:
    """The words that an interval is one of 95 %, once in each section or box; later ones are numbers in
    brackets."""
    parts = []
    for part in SECTION.split(text):
        before, first, after = part.partition(f"({INTERVAL}")
        parts.append(before + first + after.replace(f"({INTERVAL}", "("))
    return "".join(parts)


def taken_out(written: Sequence[Any]) -> str:
    """The first figure of a page, taken out of the Markdown cell that has it: it opens the page."""
    for cell in written:
        for first in chapter_runs.referenced_figures(cell.source)[:1]:
            cell.source = cell.source.replace(first.directive, "", 1)
            return first.directive
    return ""


def with_folds(text: str) -> str:
    """A chapter's text with the table of settings behind a fold, and measured tables of more rows than a glance
    takes in."""

    def numbers(table: re.Match) -> str:
        rows = table["body"].partition("rows:")[2].strip().count("\n") + 1
        corner = re.search(r'^corner: *"?(.*?)"?$', table["body"], flags=re.M)
        title = f"Table: {corner[1]}" if corner and corner[1] else "Table of the numbers"
        return folded(title, table[0]) if rows > GLANCE else table[0]

    return prose.MEASURED.sub(numbers, SETTINGS.sub(lambda table: folded("The settings", table[0]), text))


def folded(title: str, text: str) -> str:
    """Markdown that a reader opens."""
    return f"::::{{admonition}} {title}\n:class: dropdown\n\n{text.strip()}\n::::\n"


def _judged(chapter: Chapter, shown: prose.Pages) -> list[claims.Judgement]:
    own = (shown.judgement(claim) for claim in shown.claims if claim.chapter == chapter.name)
    return [judgement for judgement in own if judgement]


def _unless_it_turns(group: re.Match) -> str:
    """The claims of a ladder that hold at all sizes, fail or are open, behind a fold; those that turn stay."""
    return (
        group[0]
        if group["title"].startswith("Turns")
        else folded(f"{group['title']} {group['n']}", group["rows"])
    )


def _verdicts(chapter: Chapter, shown: prose.Pages) -> str:
    """A folded row for each of the chapter's claims."""
    rows = details.details(chapter, shown, ROOT) if _judged(chapter, shown) else ""
    return f"```{{raw}} html\n{rows}\n```" if rows else ""


def unanswered(text: str, chapter: str) -> str:
    """The answer box of a chapter that has no run yet: sentences in place of missing numbers."""
    said = (
        "**Not answered yet.** No published run of this chapter passes the checks: nothing is found, no verdict given. "
        "The page says what will be measured, how, and by which tests; numbers that are missing are shown "
        f"as {prose.ABSENT}.\n\n**To answer it yourself:** `{command_name()} run {chapter} --profile laptop`"
    )
    return ANSWER.sub(lambda box: f"{box[1]}{said}\n", text)


def _after_answer(text: str, addition: str) -> str:
    box = ANSWER.search(text)
    end = box.end() + len(box[2]) if box else text.find("\n")
    return f"{text[:end]}\n\n{addition}\n{text[end:]}"


def _without_missing_figures(text: str, folder: Path) -> str:
    """A figure that no run has drawn yet becomes a line that says so, in place of a broken picture."""
    for one in chapter_runs.referenced_figures(text):
        if not (folder / one.path).is_file():
            instead = (
                f"({one.label})=\n" * bool(one.label)
                + "*(This figure appears once its chapter has been run.)*"
            )
            text = text.replace(one.directive, instead)
    return text
