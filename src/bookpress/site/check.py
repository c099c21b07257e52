"""What `check` says: of each run what the gate says, and of what stands beside the runs whether pages can rest on it."""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Iterable
from pathlib import Path

from bookpress import claims, paths
from bookpress.book import command_name
from bookpress.claims import locks
from bookpress.claims.locks import short
from bookpress.errors import PressError
from bookpress.pipeline import chapter_runs, gate, prose, publishing
from bookpress.pipeline.chapter_runs import Evidence, fresh_run
from bookpress.pipeline.chapters import Chapter, discover
from bookpress.site import pages

#: What jupytext adds to a header where it loses the comments.
REWRITTEN = re.compile(r"^ +(?:jupytext|format)_version:", re.M)


def report(
    chapters: list[Chapter], *, profile: str | None = None, some: bool = False
) -> tuple[list[str], bool]:
    """Lines to print, and whether all is well: of the published runs, or of those in runs/PROFILE, which are tried
    before their claims are locked; some: these are not all chapters, so nothing is said of the rest of executed/."""
    if profile:
        runs = {run.name: run for run in (fresh_run(c, profile) for c in chapters if c.has(profile))}
        problems = {name: gate.problems(run) if run.exists else ["no run"] for name, run in runs.items()}
    else:
        runs = publishing.kept_runs(chapters)
        problems = publishing.executed_problems(chapters, runs, beside=not some)
    lines = [
        "\n      ".join([f"{'BAD' if wrong else 'ok '} {name}", *wrong]) for name, wrong in problems.items()
    ]
    if not profile:
        unsound = {run.chapter.name for name, run in runs.items() if problems[name]}
        sound = [run for run in runs.values() if run.chapter.name not in unsound]
        other = {run.name: gate.not_as_locked(run.results.header) for run in sound}
        made = [f"{name} was made with {versions}" for name, versions in other.items() if versions]
        lines += [f"note {each}" for each in (*made, *turned(sound))]
    if not problems:
        paths.require_named()
        of = f" of {', '.join(chapter.name for chapter in chapters)}" if some else ""
        lines.append(f"nothing to check: executed/ holds no run{of} yet")
    own = [chapter.path for chapter in chapters] if some and chapters else None
    looks = {"headers": lambda: _headers(chapters)}
    if not own:  # else of the rest only what their pages ask for
        looks["errata"] = lambda: f"{len(claims.load_errata())} errata"
        looks |= {"coverage": _coverage, "instruments": _instruments}
    looks["locks"] = lambda: _locks(not profile, chapters if own else None)
    if some and not profile:
        shown = prose.Pages(Shown({each.name: each for each in discover()}), claims.load_claims())
        looks["pages"] = lambda: _alone(chapters, shown) if own else _pages(discover(), shown)
    elif not profile:  # of those a site is built next
        fit = {run.chapter.name: run for name, run in reversed(runs.items()) if not problems[name]}
        shown = prose.Pages({each.name: fit.get(each.name) for each in chapters}, claims.load_claims())
        looks["pages"] = lambda: _pages(chapters, shown)
    well, amiss = not any(problems.values()), dict[str, str]()
    for part, look in looks.items():  # each is looked at, whatever is wrong with the others
        try:
            lines.append(f"ok  {look()}")
        except PressError as error:
            words = str(error)
            lines += [f"BAD {part}\n      {words}"] * (words not in amiss.values())  # pages show the coverage
            amiss[part], well = words, False
    lines += unled() if own else []
    if "pages" in looks and "pages" not in amiss:
        broken, said = sentences(shown, own)
        lines += [*(f"BAD {each}" for each in broken), said]
        well = well and not broken
    return lines, well


class Shown(UserDict):
    """Chapter -> the published run that the gate passes, asked for when somebody wants it; given by its chapter."""

    def __getitem__(self, name: str) -> Evidence | None:
        if isinstance(self.data[name], Chapter):
            self.data[name] = gate.passed_run(self.data[name])
        return self.data[name]


def sentences(shown: prose.Pages, files: Iterable[Path] | None = None) -> tuple[list[str], str]:
    """Of the sentences that state a verdict those that stand no longer, one line each, and how many there are; files:
    those that are read, where it is not the whole book."""
    folder = paths.book_folder()
    files = sorted([*folder.rglob("*.md"), *folder.glob("*.yml")]) if files is None else files
    found = [each for file in files for each in prose.marks(file, shown)]
    broken = [
        f"{place} states {mark.guard} = {mark.stated}; it is {mark.now} now: rewrite the sentence"
        for place, mark in found
        if mark.turned and mark.counts
    ]
    compared = f"{sum(not mark.claim for _, mark in found)} of them comparisons that no claim tests"
    return broken, f"ok  {len(found)} verdicts in sentences, {compared}"


def turned(runs: list[Evidence]) -> list[str]:
    """Runs with verdicts that are others than when they ran, one line each."""
    lines = []
    for run in runs:
        rows = [row for row in chapter_runs.chapter_verdicts(run) if "when it ran" in row["remark"]]
        if words := ", ".join(f"{row['id']} {row['words']}" for row in rows):
            lines.append(f"{run.name}: verdicts that turned since the run: {words}")
    return lines


def _headers(chapters: list[Chapter]) -> str:
    """A chapter that was saved as a notebook through jupytext has none of its reasons left."""
    heads = {chapter.name: chapter.text.partition("\n---\n")[0] for chapter in chapters}
    if lost := [name for name, head in heads.items() if REWRITTEN.search(head)]:
        raise PressError(
            f"{', '.join(lost)}: jupytext rewrote the header, without the reason beside each value; take the header from "
            "git (git diff shows it) and keep the cells"
        )
    return f"{len(chapters)} headers with their reasons"


def _coverage() -> str:
    counted = claims.count_sentences(claims.load_coverage())
    return f"{counted.sentences} sentences of the sources, {counted.judged} judged"


def unled() -> list[str]:
    """A note where no site can be built for what is wrong with the coverage."""
    try:
        _coverage()
    except PressError as error:
        return [f"note {error}; no site is built until then"]
    return []


def _instruments() -> str:
    known, listed = claims.load_instruments(), claims.load_claims()
    if known and (amiss := claims.unmeasured(listed, known)):
        raise PressError("\n      ".join(amiss))
    return f"{len(known)} instruments under {sum(not claim.statement for claim in listed)} measured claims"


def _locks(asked: bool, chapters: list[Chapter] | None = None) -> str:
    chain = locks.read()
    if wrong := unlocked(chapters) if asked else []:
        raise PressError("\n      ".join(wrong))
    return f"{sum(len(line.tests) for line in chain.lines)} locks in {len(chain.lines)} lines"


def _alone(chapters: list[Chapter], shown: prose.Pages) -> str:
    """These chapters can be filled in; what their pages show of all claims is for the whole book to say."""
    of_all = dict.fromkeys(("verdict", "verdicts", "rungs", "stands"), lambda _: "")
    for chapter in chapters:
        prose.fill(chapter.text, chapter.name, shown, of_all)
    return f"{len(chapters)} page{'s' * (len(chapters) != 1)} to fill in"


def _pages(chapters: list[Chapter], shown: prose.Pages) -> str:
    """Every page can be filled in; the rows of its tests, which are the ledger's, are not rendered for that."""
    sentences(shown)
    for chapter in chapters:
        for cell in chapter.notebook.cells:
            if cell.cell_type == "markdown":
                pages.filled(cell.source, chapter, shown, verdicts="")
    return f"{len(pages.texts(chapters, shown))} pages beside the chapters"


def unlocked(chapters: list[Chapter] | None = None) -> list[str]:
    """What forbids trusting the locks, of these chapters or of all: a date that cannot be, a claim without one."""
    chain, lines = locks.read(), locks.misdated()
    every = claims.load_claims()
    asked = {chapter.name for chapter in chapters} if chapters else {claim.chapter for claim in every}
    listed = {claim.id: claim for claim in every if claim.chapter in asked}
    for claim in listed.values():
        tests = {line.tests.get(claim.id) for line in chain.of_claim(claim.id)} - {None}
        if short(claim.test_hash) not in tests:
            state, why = ("another test than its locks have", ' --why "…"') if tests else ("no lock", "")
            mend = f"{command_name()} lock {claim.chapter}{why}{gate.to_take_back(claim.id) if tests else ''}"
            lines.append(f"claim {claim.id} has {state}: {mend}")
    own = (line for line in chain.lines if not chapters or line["chapter"] in asked)
    for name in dict.fromkeys(name for line in own for name in line.tests):
        if name not in {claim.id for claim in every} and chain.of_claim(name)[-1].event != "withdrawn":
            mend = f"{command_name()} lock writes that it is withdrawn"
            lines.append(f"claim {name} is gone without a word: {mend}")
    return lines
