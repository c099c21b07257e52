"""Under each figure: Data (what it draws, as CSV) and Run (the command that repeats it)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from bookpress import results
from bookpress.book import command_name
from bookpress.pipeline import prose
from bookpress.pipeline.chapter_runs import Evidence
from bookpress.pipeline.chapters import Chapter
from bookpress.pipeline.inks import MARK
from bookpress.site.rendering import macro

FIGURE = re.compile(r'<figure\b(?:(?!</figure>).)*?href="[^"]*_images/([^"/]+)\.svg".*?</figure>', re.S)
#: A text of code that may name results; what stands in its braces may be anything.
NAME = re.compile(r"""(?<![\w\])"'])f?(["'])([a-z][a-z0-9_]{3}[a-z0-9_.{}]*)\1""")
POINTS = "what the figure draws"
NAMED = "what the figure’s cell names; its single points were not recorded"
ALL = "every recorded result of the chapter; the figure’s own points were not recorded"


def results_behind(chapter: Chapter, figure: str, recorded: Iterable[str]) -> tuple[list[str], str]:
    """The recorded results that the figure draws, and how sure that is: its points are `curve.FIGURE.…`; without
    them the results that its cell names, or those that begin with such a name, else all."""
    recorded = list(recorded)
    if own := [name for name in recorded if name.startswith(f"curve.{figure.replace('-', '_')}.")]:
        return own, POINTS
    cell = next((each for each in chapter.code_cells if re.search(rf"([\"']){figure}\1", each)), "")
    named = [re.sub(r"\\\{\w*\\\}", "[a-z0-9_.]+", re.escape(name)) for _, name in NAME.findall(cell)]
    pattern = re.compile(rf"({'|'.join(named)})(\..+)?")
    found = [name for name in recorded if named and not name.startswith("curve.") and pattern.fullmatch(name)]
    return (found, NAMED) if found else (recorded, ALL)


def write(site: Path, chapters: Iterable[Chapter], shown: prose.Pages) -> None:
    """Put both under every figure of every page, and data/PART/CHAPTER/FIGURE.csv beside the pages."""
    known = {chapter.name: chapter for chapter in chapters}
    drawn, behind_it = images(site), {}  # an image is on several pages
    for page in site.rglob("*.html"):
        root = "../" * (len(page.relative_to(site).parts) - 1)

        def one(match: re.Match, root: str = root) -> str:
            name, _, figure = drawn.get(match[1], "").rpartition("/")
            if name not in known or (evidence := shown.evidence[name]) is None:
                return match[0]
            if match[1] not in behind_it:
                behind_it[match[1]] = _data(site, known[name], evidence, figure)
            address, says = behind_it[match[1]]
            below = macro("foot.html.j2", "ways")(f"{root}{address}", says, command(name, evidence.profile))
            return f"{match[0]}\n{below}"

        text = page.read_text(encoding="utf-8")
        mended = FIGURE.sub(one, text)
        if mended != text:
            page.write_text(mended, encoding="utf-8")


def images(site: Path) -> dict[str, str]:
    """Name of an image of the site -> the figure that it shows, PART/CHAPTER/FIGURE."""
    found = {}
    for path in sorted((site / "_images").glob("*.svg")):
        with path.open(encoding="utf-8") as file:
            mark = re.search(rf'{MARK}="([^"]+)"', file.read(1000))
        if mark and "." not in path.stem:  # no part of it, NAME.1.svg
            found[path.stem] = mark[1]
    return found


def command(chapter: str, profile: str) -> str:
    """How to repeat the run, and see whether it agrees."""
    return f"{command_name()} run {chapter} --profile {profile} --compare"


def _data(site: Path, chapter: Chapter, evidence: Evidence, figure: str) -> tuple[str, str]:
    """Write the figure's file; its address from the site's first page, and what is in it."""
    names, says = results_behind(chapter, figure, evidence.results)
    address = f"data/{chapter.name}.csv" if says == ALL else f"data/{chapter.name}/{figure}.csv"
    entries = {name: evidence.results.entries[name] for name in names}
    path = site / address
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(results.as_csv(replace(evidence.results, entries=entries)), encoding="utf-8")
    return address, says
