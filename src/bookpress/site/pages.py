"""The generated pages, and the site that is built from them."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bookpress import atomic, claims, paths
from bookpress.book import book, command_name
from bookpress.claims import CHANGES, REASONS, Coverage, Erratum
from bookpress.claims.judging import HOLDS, HOLDS_IF
from bookpress.claims.sources import Instrument
from bookpress.errors import PressError
from bookpress.pipeline import chapter_runs, explorers, gate, pictures, prose
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.chapters import Chapter, discover
from bookpress.pipeline.gate import passed_run
from bookpress.pipeline.prose import Pages
from bookpress.site import front, rendering, shell, teaching, verdicts, wheel
from bookpress.site.rendering import Markup, render

# ---- Generated pages: all verdicts, every sentence of the sources, errata, instruments, provenance -----------------


def of_all(chapters: list[Chapter], pages: Pages) -> dict[str, Callable[[Any], str]]:
    """The tokens of all claims: the waffle, in words how many squares and rows there are, the board, what is withdrawn."""
    rows = list(pages.rows.values())

    def squares(_: object) -> str:
        kinds = [row["kind"] for row in rows if not row["rungs"]]
        own, again = kinds.count("question"), len(rows) - len(kinds)
        return (
            f"There is a square for each of {len(kinds) - own} claims of the sources and {own} questions of the book's own. "
            f"Below them stand {len(rows)} rows by chapter, one for each square"
            + f" and {again} that judge claims again at several sizes" * bool(again)
            + "."
        )

    def withdrawn(_: object) -> str:
        runs = [(each, run) for each in chapters if (run := pages.evidence[each.name])]
        gone = [(each, ", ".join(f"`{name}`" for name in chapter_runs.withdrawn(run))) for each, run in runs]
        said = "Withdrawn since its run, in [{}](/{}.ipynb): {}."
        return "\n\n".join(said.format(each.title, each.name, names) for each, names in gone if names)

    return {
        "waffle": lambda _: verdicts.waffle(rows),
        "squares": squares,
        "board": lambda _: verdicts.board(rows, chapters),
        "withdrawn": withdrawn,
    }


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
    other = found.not_judged - found.open
    return f"{found.judged} of {found.sentences} are judged, {found.open} wait for a test, {other} need none or cannot have one{rest}"


def errata(rows: list[Erratum], chapters: list[Chapter], pages: Pages) -> str:
    """Every row of book/errata.yml, gravest first: one block with an anchor (`erratum-ID`) for each; tokens
    are filled in. PressError where one says wrong of what holds by its claim, if only on a condition."""
    wrong = [row for row in rows if row.kind == "wrong" and row.claim]
    if at_odds := [row.id for row in wrong if pages.rows[row.claim]["verdict"] in (HOLDS, HOLDS_IF)]:
        raise PressError(f"{', '.join(at_odds)} in errata.yml: wrong is what the ledger calls holding")
    known, of = {chapter.name: chapter for chapter in chapters}, {claim.id: claim for claim in pages.claims}
    graver, kinds = list(CHANGES), list(claims.ERRATUM_KINDS)
    ordered = sorted(rows, key=lambda row: (graver.index(row.changes), kinds.index(row.kind)))
    seen, headings, shown = Counter[str](), {}, {}
    for row in ordered:  # equal headings would share an address
        seen[row.title] += 1
        headings[row.id] = row.title + f" ({seen[row.title]})" * (seen[row.title] > 1)
        if claim := of.get(row.claim):
            chapter = known.get(claim.chapter)
            there = chapter and verdicts.label(chapter, claim.figure)
            shown[row.id] = claim, chapter, there or claim.figure
    given = {"errata": ordered, "listed": rows, "headings": headings, "shown": shown, "ledger": pages.rows}
    text = render("errata.md.j2", changes=CHANGES, titles=claims.source_titles(), **given)
    return prose.fill(text, "errata", pages, {"stands": verdicts.marked(pages.rows, "")})


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
    named = sorted({owner for owner, _ in prose.result_names(chapter.text)} - {None, chapter.name})
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


def _seed_words(evidence: Evidence, most: bool = False) -> str:
    """Which seeds the results come from; where not all come from the same, how many from which, or from which `most` do."""
    counts = Counter(tuple(entry["seeds"]) for entry in evidence.results.entries.values()).most_common()
    if not counts:
        return "no seeds"
    first = counts[0][0]
    if most:
        return f"seeds {_range(first)}" + " and others" * any(set(seeds) - set(first) for seeds, _ in counts)
    every = (_range(seeds) + f" ({number} results)" * (len(counts) > 1) for seeds, number in counts)
    return f"seeds {', '.join(every)}"


def _range(seeds: tuple[int, ...]) -> str:
    run = len(seeds) > 1 and seeds == tuple(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if run else " and ".join(map(str, seeds))


rendering.add(seeds=_seed_words, not_as_locked=gate.not_as_locked)


# ---- Pages put together: chapters joined with their evidence, tokens filled in, scoreboard, errata, ----------------
# coverage and provenance written.

INDEX = "index.md"
ANSWER = re.compile(r"^((:{3,})\{admonition\} In short\n:class: answer\n\n).*?^(?=\2$)", re.M | re.S)
FOLD = re.compile(
    r"^(?P<fence>`{3,}|:{3,})\{admonition\}[^\n]*\n:class:[^\n]*dropdown.*?^(?P=fence)[ \t]*$", re.M | re.S
)
SETTINGS = re.compile(r"^\| *setting *\|.*\n(?:\|.*\n?)+", re.M)
GROUP = re.compile(r"^\*\*(?P<title>[^*\n]+)\*\* (?P<n>\(\d+\))\n\n(?P<rows>(?:\|.*\n?)+)", re.M)
GLANCE = 4
INTERVAL = "95 % interval "
SECTION = re.compile(r"^(?=#+ |:{3,}|```\{figure\})", re.M)
ROOT = "../"  # from a chapter's page to the first one


@np.errstate(invalid="ignore")  # a spread of infinite numbers, where a short run diverged
def stage(
    folder: Path, profile: str | None, say: Callable[[str], None] = lambda _: None
) -> tuple[list[Chapter], prose.Pages]:
    """Write every page into `folder`, from the fresh runs of `profile` or from the committed evidence (None);
    returns the chapters and what they were filled from. What cannot be filled in is said before a figure is drawn."""
    chapters = discover()
    claims.load_coverage()  # what it lacks is said before runs are read, which takes a minute
    say(f"reading the runs of {len(chapters)} chapters")
    evidence = {chapter.name: passed_run(chapter, profile) for chapter in chapters}
    shown = prose.Pages(evidence, claims.load_claims())
    say("filling in the pages")
    others, sheets = texts(chapters, shown), teaching.sheets()
    filled_in = [_filled_page(each, shown, sheets.get(each.name, [])) for each in chapters]
    shutil.copytree(paths.book_folder() / "_static", folder / "_static")
    for path in (paths.repository_root() / "_toc.yml", paths.book_folder() / "references.bib"):
        shutil.copy2(path, folder)
    atomic.write_text(folder / "_config.yml", shell.configuration())
    explorers.write(folder, shown)
    runs = [run for run in evidence.values() if run]
    say("drawing the figures, but for those that an earlier build has drawn")
    pictures.put(runs, folder)
    titles = {"index": shell.book_title()} | {chapter.name: chapter.title for chapter in chapters}
    atomic.write_json(folder / shell.TOLD, {"titles": titles, "figures": dict(shell.ways(runs, folder))})
    for chapter, page in zip(chapters, filled_in, strict=True):
        _write_page(page, chapter, shown, folder)
    if course := teaching.page():
        atomic.write_text(folder / teaching.PAGE, course)
    for name, text in others.items():
        atomic.write_text(folder / name, _without_missing_figures(text, folder) if name == INDEX else text)
    return chapters, shown


@np.errstate(invalid="ignore")  # a spread of infinite numbers, where a short run diverged
def texts(chapters: list[Chapter], shown: prose.Pages) -> dict[str, str]:
    """Every page that is no chapter, by the name of its file."""
    lists = claims.load_coverage()
    names = {"clone": shell.clone(), "binder": shell.binder(), "wheel": wheel.link()}
    names |= of_all(chapters, shown)
    names["stands"] = verdicts.marked(shown.rows, "")
    of_index = {"coverage": counted(lists), **front.tokens(list(shown.rows.values()), shown)}
    found = {}
    for path in paths.book_folder().glob("*.md"):
        text = front.pictures(with_banner(path.read_text(encoding="utf-8"), shown), shown, path.name)
        own = of_index if path.name == INDEX else here(path.stem, shown)
        found[path.name] = prose.fill(text, path.stem, shown, extra=names | own)
    if INDEX in found:
        found[INDEX] = found[INDEX].replace(f"({INTERVAL}", "(")  # the page says it once
    if known := claims.load_instruments():
        found["instruments.md"] = instruments(known, shown)
    return found | {
        "errata.md": errata(claims.load_errata(), chapters, shown),
        "coverage.md": coverage(lists, shown),
        "provenance.md": provenance(chapters, shown),
    }


def here(page: str, shown: prose.Pages) -> dict[str, Any]:
    """What `{{ here:NAME }}` stands for on a page, if the book has numbers of its own for that page."""
    numbers = book().pages.get(page, lambda _: {})(shown)

    def number(token: prose.Token) -> str:
        if token.name not in numbers:
            raise ValueError(f"nothing fills it; known: {', '.join(numbers)}")
        return numbers[token.name]

    return {"here": number}


def _filled_page(chapter: Chapter, shown: prose.Pages, sheets: list[str]) -> Any:
    """The notebook of a chapter's page with its tokens filled in."""
    evidence = shown.evidence[chapter.name]
    page = chapter_runs.with_evidence(chapter, evidence) if evidence else chapter.notebook.copy()
    for cell in filter(_is_written, page.cells):
        source = cell.source if evidence else unanswered(cell.source, chapter.name)
        cell.source = teaching.with_sheets(said_once(filled(with_folds(source), chapter, shown)), sheets)
    return page


def _write_page(page: Any, chapter: Chapter, shown: prose.Pages, folder: Path) -> None:
    """The notebook beside the figures that were drawn, the first of which opens it."""
    import nbformat

    evidence = shown.evidence[chapter.name]
    target = folder / f"{chapter.name}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    written = [*filter(_is_written, page.cells)]
    for cell in written:
        cell.source = _without_missing_figures(cell.source, target.parent)
    opening = taken_out(written) if evidence else ""
    written[0].source = _after_answer(written[0].source, f"{opening}\n\n{stamp(chapter, evidence, shown)}")
    nbformat.write(page, target)


def _is_written(cell: Any) -> bool:
    return cell.cell_type == "markdown"


def filled(text: str, chapter: Chapter, shown: prose.Pages, **instead: str) -> str:
    """A chapter's text with its tokens filled in, some by what stands `instead`; PressError as `prose.fill` says."""
    extra = {"verdict": verdicts.inlined(shown.rows, ROOT), "verdicts": lambda _: _verdicts(chapter, shown)}
    extra["stands"] = verdicts.marked(shown.rows, ROOT)
    extra["rungs"] = lambda _: GROUP.sub(_unless_it_turns, claims.rung_table(_judged(chapter, shown)))
    return prose.fill(text, chapter.name, shown, extra | instead)


def said_once(text: str) -> str:
    """The words that an interval is one of 95 %, once in each section or box; later ones are numbers in
    brackets."""
    parts = (part.partition(f"({INTERVAL}") for part in SECTION.split(text))
    return "".join(before + first + after.replace(f"({INTERVAL}", "(") for before, first, after in parts)


def taken_out(written: Sequence[Any]) -> str:
    """The first figure of a page, taken out of the Markdown cell that has it: it opens the page."""
    for cell in written:
        for first in chapter_runs.referenced_figures(cell.source)[:1]:
            cell.source = cell.source.replace(first.directive, "", 1)
            return first.directive
    return ""


def with_folds(text: str) -> str:
    """A chapter's text with the table of settings behind a fold, and measured tables of more rows than a glance
    takes in. What lies behind a fold stays as it is."""
    if fold := FOLD.search(text):
        before, after = text[: fold.start()], text[fold.end() :]
        return with_folds(before) + fold[0] + with_folds(after)

    def numbers(table: re.Match) -> str:
        rows = table["body"].partition("rows:")[2].strip().count("\n") + 1
        corner = re.search(r'^corner: *"?(.*?)"?$', table["body"], flags=re.M)
        title = f"Table: {corner[1]}" if corner and corner[1] else "Table of the numbers"
        return folded(title, table[0]) if rows > GLANCE else table[0]

    return prose.MEASURED.sub(numbers, SETTINGS.sub(lambda table: folded("The settings", table[0]), text))


def folded(title: str, text: str) -> str:
    """Markdown that a reader opens."""
    return f"::::{{admonition}} {title}\n:class: dropdown\n\n{text.strip()}\n::::\n"


def _judged(chapter: Chapter, shown: prose.Pages) -> list[claims.Row]:
    own = (shown.judgement(claim) for claim in shown.claims if claim.chapter == chapter.name)
    return [judgement for judgement in own if judgement]


def _unless_it_turns(group: re.Match) -> str:
    """The claims of a ladder that hold at all sizes, fail or are open, behind a fold; those that turn stay."""
    turns = group["title"].startswith("Turns")
    return group[0] if turns else folded(f"{group['title']} {group['n']}", group["rows"])


def _verdicts(chapter: Chapter, shown: prose.Pages) -> str:
    """A folded row for each of the chapter's claims."""
    rows = verdicts.details(chapter, shown, ROOT) if _judged(chapter, shown) else ""
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
            label = f"({one.label})=\n" * bool(one.label)
            words = "*(This figure appears once its chapter has been run.)*"
            text = text.replace(one.directive, label + words)
    return text
