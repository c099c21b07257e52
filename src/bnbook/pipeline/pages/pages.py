"""Pages put together: chapters joined with their evidence, tokens filled in, scoreboard, errata,
coverage and provenance written."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np

from bnbook import atomic, claims, paths
from bnbook.pipeline import explorers
from bnbook.pipeline.chapters import merge
from bnbook.pipeline.chapters.chapters import Chapter, discover
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.pipeline.gate.passed import passed_run
from bnbook.pipeline.pages import (
    coverage_page,
    errata_page,
    instruments_page,
    provenance,
    scoreboard,
    verdict_page,
)
from bnbook.pipeline.pictures import inks, lettering, pictures
from bnbook.pipeline.prose import tokens
from bnbook.site import chips, front, limits, notation, reference, settings, teaching

#: Files of book/ that are no pages.
SUPPORT = ("references.bib", "_static")
INDEX, RULES = "index.md", "how-a-verdict-is-made.md"
ANSWER = re.compile(r"^((:{3,})\{admonition\} In short\n:class: answer\n\n).*?^(?=\2$)", re.M | re.S)
INTERVAL = "95 % interval "
SECTION = re.compile(r"^(?=#+ |:{3,}|```\{figure\})", re.M)
ROOT = "../"  # from a chapter's page to the first one


@np.errstate(invalid="ignore")  # a spread of infinite numbers, where a short run diverged
def stage(folder: Path, profile: str | None) -> tuple[list[Chapter], tokens.Pages]:
    """Write every page into `folder`, from the fresh runs of `profile` or from the committed evidence (None);
    returns the chapters and what they were filled from."""
    chapters = discover()
    evidence = {chapter.name: passed_run(chapter, profile) for chapter in chapters}
    shown = tokens.Pages(evidence, claims.load_claims())
    root, book = paths.repository_root(), paths.book_folder()
    folder.mkdir(parents=True)
    shutil.copy2(root / "_toc.yml", folder / "_toc.yml")
    atomic.write_text(folder / "_config.yml", settings.configuration())
    for name in SUPPORT:
        copy = shutil.copytree if (book / name).is_dir() else shutil.copy2
        copy(book / name, folder / name)
    explorers.write(folder, shown)
    sheets = teaching.sheets()
    for chapter in chapters:
        _chapter_page(chapter, evidence[chapter.name], shown, folder, sheets.get(chapter.name, []))
    if course := teaching.page():
        atomic.write_text(folder / teaching.PAGE, course)
    for name, text in texts(chapters, shown).items():
        atomic.write_text(folder / name, _without_missing_figures(text, folder) if name == INDEX else text)
    return chapters, shown


@np.errstate(invalid="ignore")  # a spread of infinite numbers, where a short run diverged
def texts(chapters: list[Chapter], shown: tokens.Pages) -> dict[str, str]:
    """Every page that is no chapter, by the name of its file."""
    short, rows = scoreboard.short_scoreboard(chapters, shown), list(shown.rows.values())
    lists = claims.load_coverage()
    front_page = {"scoreboard": short, "coverage": coverage_page.counted(lists), **front.tokens(rows, shown)}
    names = {"clone": settings.clone(), "binder": settings.binder(), "names": reference.names()}
    names["notation"] = notation.table()
    found = {}
    for path in paths.book_folder().glob("*.md"):
        text = path.read_text(encoding="utf-8")
        if path.name == RULES:
            found[RULES] = verdict_page.verdict_page(text, shown)
        elif path.name == INDEX:
            filled = tokens.fill(front.pictures(text, shown), "index", shown, extra=front_page)
            found[INDEX] = filled.replace(f"({INTERVAL}", "(")  # the page says it once
        else:
            found[path.name] = tokens.fill(text, path.stem, shown, extra=names)
    if known := claims.load_instruments():
        found["instruments.md"] = instruments_page.instruments(known, shown)
    return found | {
        "scoreboard.md": scoreboard.scoreboard(chapters, shown),
        "errata.md": errata_page.errata(claims.load_errata(), chapters, shown),
        "coverage.md": coverage_page.coverage(lists, shown),
        "provenance.md": provenance.provenance(chapters, shown),
    }


def _chapter_page(
    chapter: Chapter, evidence: Evidence | None, shown: tokens.Pages, folder: Path, sheets: list[str]
) -> None:
    import nbformat

    page = merge.with_evidence(chapter, evidence) if evidence else chapter.notebook.copy()
    target = folder / f"{chapter.name}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    if evidence:
        shown_figures = folder / f"{chapter.name}.figures"
        shutil.copytree(evidence.figures_folder, shown_figures)
        for path in shown_figures.glob("*.svg"):
            drawn = path.read_text(encoding="utf-8")
            phone = path.name.endswith(pictures.PHONE)
            figure = path.name.removesuffix(pictures.PHONE).removesuffix(".svg")
            inked = inks.light(drawn, f"{chapter.name}/{figure}")
            column = lettering.PHONE if phone else lettering.COLUMN
            path.write_text(lettering.readable(inked, column), encoding="utf-8")
    for cell in page.cells:
        if cell.cell_type == "markdown":
            source = cell.source if evidence else unanswered(cell.source, chapter.name)
            text = teaching.with_sheets(said_once(filled(source, chapter, shown)), sheets)
            cell.source = _without_missing_figures(text, target.parent)
    first = next(cell for cell in page.cells if cell.cell_type == "markdown")
    first.source = _after_answer(first.source, provenance.stamp(chapter, evidence, shown))
    nbformat.write(page, target)


def filled(text: str, chapter: Chapter, shown: tokens.Pages) -> str:
    """A chapter's text with its tokens filled in; BnbookError as `tokens.fill` says."""
    extra = {"verdict": chips.inlined(shown.rows, ROOT), "verdicts": lambda _: _verdicts(chapter, shown)}
    return tokens.fill(text, chapter.name, shown, extra)


def said_once(text: str) -> str:
    """The words that an interval is one of 95 %, once in each section or box; later ones are numbers in
    brackets."""
    parts = []
    for part in SECTION.split(text):
        before, first, after = part.partition(f"({INTERVAL}")
        parts.append(before + first + after.replace(f"({INTERVAL}", "("))
    return "".join(parts)


def _verdicts(chapter: Chapter, shown: tokens.Pages) -> str:
    """The chapter's claims in a table, each verdict a chip."""
    own = [shown.judgement(claim) for claim in shown.claims if claim.chapter == chapter.name]
    marks = limits.marks(claims.load_instruments(), ROOT)

    def verdict(found: claims.Judgement) -> str:
        row = shown.rows[found.claim.id]
        return chips.in_words(row, ROOT) + marks(row)

    return claims.markdown_table(filter(None, own), verdict)


def unanswered(text: str, chapter: str) -> str:
    """The answer box of a chapter that has no run yet: sentences in place of missing numbers."""
    said = (
        "**Not answered yet.** No run of this chapter is published: nothing is found, no verdict given. "
        "The page says what will be measured, how, and by which tests; numbers that are missing are shown "
        f"as {tokens.ABSENT}.\n\n**To answer it yourself:** `bnbook run {chapter} --profile laptop`"
    )
    return ANSWER.sub(lambda box: f"{box[1]}{said}\n", text)


def _after_answer(text: str, addition: str) -> str:
    box = ANSWER.search(text)
    end = box.end() + len(box[2]) if box else text.find("\n")
    return f"{text[:end]}\n\n{addition}\n{text[end:]}"


def _without_missing_figures(text: str, folder: Path) -> str:
    """A figure that no run has drawn yet becomes a line that says so, in place of a broken picture."""
    for path, _, directive in merge.referenced_figures(text):
        if not (folder / path).is_file():
            name = re.search(r"^:name: *(\S+)", directive, flags=re.M)
            anchor = f"({name.group(1)})=\n" if name else ""
            text = text.replace(directive, f"{anchor}*(This figure appears once its chapter has been run.)*")
    return text
