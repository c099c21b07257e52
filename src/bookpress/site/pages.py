"""The generated pages, and the site that is built from them."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bookpress import atomic, claims, coursework, paths
from bookpress.book import book, command_name
from bookpress.claims import CHANGES, REASONS, Coverage, Erratum, format_number
from bookpress.claims.judging import HOLDS, HOLDS_IF
from bookpress.claims.sources import Instrument
from bookpress.errors import PressError
from bookpress.pipeline import chapter_runs, explorers, gate, handout, pictures, prose
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.chapters import Chapter, discover
from bookpress.pipeline.gate import passed_run
from bookpress.pipeline.prose import Pages
from bookpress.site import shell, verdicts
from bookpress.site.verdicts import Markup, macro, render

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
    shown = [(each, pages.evidence[each.name]) for each in chapters]
    return render("provenance.md.j2", chapters=shown, seeds=_seed_words, not_as_locked=gate.not_as_locked)


def stamp(chapter: Chapter, evidence: Evidence | None, pages: Pages) -> str:
    """The line under a chapter's answer: with what its numbers were made, and at which other profiles those
    that it quotes."""
    named = sorted({owner for owner, _ in prose.result_names(chapter.text)} - {None, chapter.name})
    runs = [(name, run) for name in named if (run := pages.evidence.get(name))]
    quoted = [(name, run) for name, run in runs if evidence and run.profile != evidence.profile]
    given = {"evidence": evidence, "quoted": quoted, "banner": BANNER, "seeds": _seed_words}
    return render("stamp.md.j2", chapter=chapter, **given)


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
    others, sheets = texts(chapters, shown), coursework.sheets()
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
    if course := coursework.page():
        atomic.write_text(folder / coursework.PAGE, course)
    for name, text in others.items():
        atomic.write_text(folder / name, _without_missing_figures(text, folder) if name == INDEX else text)
    return chapters, shown


@np.errstate(invalid="ignore")  # a spread of infinite numbers, where a short run diverged
def texts(chapters: list[Chapter], shown: prose.Pages) -> dict[str, str]:
    """Every page that is no chapter, by the name of its file."""
    lists = claims.load_coverage()
    names = {"clone": shell.clone(), "binder": shell.binder(), "wheel": handout.link_to_wheel()}
    names |= of_all(chapters, shown)
    names["stands"] = verdicts.marked(shown.rows, "")
    of_index = {"coverage": counted(lists), **of_front(list(shown.rows.values()), shown)}
    found = {}
    for path in paths.book_folder().glob("*.md"):
        text = with_dots(with_banner(path.read_text(encoding="utf-8"), shown), shown, path.name)
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
        cell.source = coursework.with_sheets(said_once(filled(with_folds(source), chapter, shown)), sheets)
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


# ---- The first page: what its own tokens stand for; and the small pictures of findings, on it and on others ------------

DOTS = re.compile(r"^```\{dots\} *([^\n]*)\n(.*?)^```$", re.M | re.S)
LINE = re.compile(r"([^|]+)\|\s*([a-z0-9]+)\s*\|\s*([a-z0-9/-]+)#([\w.-]+)(?:\[(-?\d+)\])?\s*")
LEFT, RIGHT = 1.0, {"": 70.0, "factor": 62.0}  # percent of a card, what a value's words leave: "0.012 times"


def of_front(rows: list[claims.Row], shown: prose.Pages) -> dict[str, Any]:
    """`trust`, and a verdict as its chip."""
    return {"trust": trust(rows, shown), "verdict": verdicts.inlined(shown.rows, "")}


def trust(rows: list[claims.Row], shown: prose.Pages) -> str:
    """Data, seeds, locks and what was not run, each as one line of a list."""
    made = [each for each in shown.evidence.values() if each]
    full = sum(each.profile == "paper" for each in made)
    names = sorted({row["name"] for each in made for row in each.results.header["data"]})
    data = [book().data_names.get(name, name) for name in names]
    untried = {"not run", "not tested at this scale"}
    # with n = 1 nothing is random; what no run has judged was not judged by its seeds
    seeds = sorted(row["n"] for row in rows if (row["n"] or 0) > 1 and row["verdict"] not in untried)
    again = [bool(row["exploratory"]) for row in rows if row["rungs"]]
    rows = [row for row in rows if not row["rungs"]]  # those that have a square
    young = sum(bool(row["exploratory"]) for row in rows)
    changed = sum(bool(row["changed"]) and not row["exploratory"] for row in rows)
    missing = sum(row["verdict"] in untried for row in rows)
    undecided = sum(row["verdict"] == "open" for row in rows)
    lines = {
        "Full size": f"{full or 'None'} of {len(made)} chapters ran at both the full width and the full number of steps "
        "of the paper that it tests",
        "Data": ", ".join(data) or "none but formulas",
        "Seeds": f"Where chance has a part, {seeds[0]} to {seeds[-1]} seeds or random trials judge a claim, and half of "
        f"these claims have {seeds[len(seeds) // 2]} or fewer. Where nothing is random, one run is enough"
        if seeds
        else "none",
        "Tests": f"{len(rows) - young} of {len(rows)} claims have a test that was fixed before its data"
        + f". Of these {len(rows) - young}, {changed} had an earlier test or plan that was changed; fresh seeds, drawn "
        "after the change, judge them"
        * bool(changed)
        + f". The other {young} are exploratory: their test or measure came or changed after the data"
        * bool(young)
        + f". {len(again)} further claims ask the same at other sizes; {sum(again)} of these are exploratory"
        * bool(again),
        "Not settled": f"{undecided} of the {len(rows)} claims are open, {missing} are not tested at this scale",
    }
    return "\n".join(f"- **{name}.** {text}." for name, text in lines.items())


def _round(low: float, high: float, factor: bool, log: bool) -> list[float]:
    """Round places of a logarithmic axis, as its values are recorded; none where the axis is not."""
    if not log and not factor:
        return []
    low, high = (10**low, 10**high) if factor else (low, high)
    for steps in (1,), (1, 2, 5), (1, 1.2, 1.5, 2, 3, 5, 7):
        every = (step * 10.0**power for power in range(-9, 10) for step in steps)
        if len(found := [at for at in every if low <= at <= high]) > 1:
            break
    found = found[:: max(1, len(found) // 3)]
    return [float(np.log10(at)) for at in found] if factor else found


def _short(value: float) -> str:
    """A number of a logarithmic axis in two digits, or as a power of ten."""
    if value < 0.01:
        return format_number(value, ".0e").removeprefix("1·")
    return format_number(value, ",.0f" if value >= 10 else ".2g")


def with_dots(text: str, shown: prose.Pages, page: str) -> str:
    """A page's text with every `{dots}` block as a small plot: a line for each arm, a dot for each seed."""
    return DOTS.sub(lambda match: _dots(match[1].split(), match[2].strip().splitlines(), shown, page), text)


def _dots(options: list[str], lines: list[str], shown: prose.Pages, page: str) -> str:
    arms = []
    for line in lines:
        match = LINE.fullmatch(line)
        if not match or match[3] not in shown.evidence:
            raise PressError(f"{page}: {line!r} in a dots block; expected LABEL | INK | PART/CHAPTER#RESULT")
        if (evidence := shown.evidence[match[3]]) is None:
            return ""
        if evidence.profile == "smoke" and match[4] not in evidence.results:
            continue  # of an arm that so short a run leaves out
        values = np.asarray(evidence.column(match[4], match[5])[1], dtype=float)
        arms.append({"label": match[1].strip(), "ink": match[2], "values": values[np.isfinite(values)]})
    if not arms:
        return ""
    every = np.concatenate([arm["values"] for arm in arms])
    log, factor = "log" in options and (every > 0).all(), "factor" in options
    right = RIGHT["factor" if factor else ""]
    low, high = (every.min() / 1.3, every.max() * 1.1) if log else (min(0.0, every.min()), every.max())

    def place(value: float) -> float:
        start, end, at = np.log([low, high, value]) if log else np.array([low, high, value])
        return round(float(LEFT + (at - start) / ((end - start) or 1) * (right - LEFT)), 2)

    def said(value: float) -> str:
        if factor:  # the recorded values are logarithms to base ten
            return f"{_short(10**value)} times"
        three = float(f"{value:.3g}")  # digits, as texts have them
        return format_number(value, ".1%") if "percent" in options else format_number(three, ",.4g")

    ticks = {place(at): _short(10**at if factor else at) for at in _round(low, high, factor, log)}
    for arm in arms:
        values = arm["values"]
        middle = float(np.exp(np.log(values).mean()) if log else values.mean())
        arm |= {"dots": [place(v) for v in values], "middle": place(middle), "said": said(middle)}
    words = "; ".join(f"{arm['label']}: {arm['said']}" for arm in arms)
    words += f". A dot a seed{', logarithmic scale' if log else ''}."
    return macro("dots.html.j2", "dots")(arms, ticks, LEFT, right, words)
