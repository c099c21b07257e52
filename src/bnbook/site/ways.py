"""Under each figure: Code (the lines that lead to it), Data (CSV) and Run (the command that repeats it)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bnbook import rows
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.pipeline.pages import behind
from bnbook.pipeline.pictures.inks import MARK
from bnbook.pipeline.prose import tokens
from bnbook.site import links

FIGURE = re.compile(r'<figure\b(?:(?!</figure>).)*?href="[^"]*_images/([^"/]+)\.svg".*?</figure>', re.S)
LONGEST = 24  # lines of code under a figure, as many as a cell has at most; the rest stands in the cells
POINTS = "what the figure draws"
NAMED = "what the figure’s cell records or names; its single points were not recorded"
ALL = "every recorded result of the chapter; the figure’s own points were not recorded"


def write(site: Path, chapters: Iterable[Chapter], shown: tokens.Pages, repository: str = "") -> None:
    """Put the three under every figure of every page, and data/PART/CHAPTER/FIGURE.csv beside the pages."""
    known = {chapter.name: chapter for chapter in chapters}
    drawn, behind_it = images(site), {}  # an image is on several pages
    for page in site.rglob("*.html"):
        root = "../" * (len(page.relative_to(site).parts) - 1)

        def one(match: re.Match, root: str = root) -> str:
            name, _, figure = drawn.get(match[1], "").rpartition("/")
            if name not in known or (evidence := shown.evidence[name]) is None:
                return match[0]
            if match[1] not in behind_it:
                code = _code(known[name], evidence, figure, repository)
                behind_it[match[1]] = code, *_data(site, known[name], evidence, figure)
            code, data, says = behind_it[match[1]]
            parts = [
                code,
                f'<a class="way" download href="{root}{data}" title="CSV: {says}">Data</a>',
                _run(name, evidence),
            ]
            label = 'role="group" aria-label="Behind this figure"'
            return f'{match[0]}\n<div class="ways" {label}>{"".join(parts)}</div>'

        text = page.read_text(encoding="utf-8")
        mended = FIGURE.sub(one, text)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def images(site: Path) -> dict[str, str]:
    """Name of an image of the site -> the figure that it shows, PART/CHAPTER/FIGURE."""
    found = {}
    for path in sorted((site / "_images").glob("*.svg")):
        mark = re.search(rf'{MARK}="([^"]+)"', path.read_text(encoding="utf-8")[:1000])
        if mark and "." not in path.stem:  # no part of it, NAME.1.svg
            found[path.stem] = mark[1]
    return found


def command(chapter: str, profile: str) -> str:
    """How to repeat the run, and see whether it agrees."""
    return f"bnbook run {chapter} --profile {profile} --compare"


def shortened(lines: Sequence[str], longest: int = LONGEST) -> str:
    """The last statements, as many as fit; the first line says where the others are."""
    kept, size = [], 0
    for text in reversed(lines):
        size += text.count("\n") + 1
        if kept and size > longest:
            return "\n".join(["# What comes before stands in the chapter's cells.", *reversed(kept)])
        kept.append(text)
    return "\n".join(reversed(kept))


def _data(site: Path, chapter: Chapter, evidence: Evidence, figure: str) -> tuple[str, str]:
    """Write the figure's file; its address from the site's first page, and what is in it."""
    names, points = behind.results(chapter, figure, evidence.results)
    says = POINTS if points else NAMED if names else ALL
    address = f"data/{chapter.name}/{figure}.csv" if names else f"data/{chapter.name}.csv"
    entries = {name: evidence.results.entries[name] for name in names or evidence.results}
    path = site / address
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rows.as_csv(replace(evidence.results, entries=entries)), encoding="utf-8")
    return address, says


def _code(chapter: Chapter, evidence: Evidence, figure: str, repository: str) -> str:
    text = shortened(behind.lines(chapter, figure))
    commit = str(evidence.results.header.get("provenance", {}).get("commit", ""))
    link = links.at_commit(repository, commit, f"book/{chapter.name}.md")
    return _folded("Code", f"{_highlighted(text, 'python')}<p>{link}</p>")


def _run(chapter: str, evidence: Evidence) -> str:
    return _folded("Run", _highlighted(command(chapter, evidence.profile), "sh"))


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{title}</summary>{inside}</details>"


def _highlighted(text: str, language: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    shown = (
        highlight(text, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
        if text
        else html.escape(text)
    )
    return (
        f'<div class="highlight-{language} notranslate"><div class="highlight">'
        f'<pre tabindex="0">{shown.rstrip()}\n</pre></div></div>'
    )
