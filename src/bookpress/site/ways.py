"""Under each figure: Data (what it draws, as CSV) and Run (the command that repeats it)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from bookpress import results
from bookpress.book import command_name
from bookpress.pipeline import prose
from bookpress.pipeline.chapters import Chapter
from bookpress.pipeline.pictures import Picture
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


class Data:
    """Puts both under the figures of pages, and data/PART/CHAPTER/FIGURE.csv beside the pages."""

    def __init__(
        self, site: Path, chapters: Iterable[Chapter], shown: prose.Pages, figures: Mapping[str, Picture]
    ) -> None:
        self.site, self.shown, self.figures = site, shown, figures
        self.known = {chapter.name: chapter for chapter in chapters}
        self.behind = cache(self._behind)  # an image is on several pages

    def under_figures(self, text: str, page: str) -> str:
        """The text of a page, which is named without .html, with both under each of its figures."""

        def one(match: re.Match) -> str:
            if match[1] not in self.figures:
                return match[0]
            name, _, figure = self.figures[match[1]].of.rpartition("/")
            if name not in self.known or self.shown.evidence[name] is None:
                return match[0]
            address, says = self.behind(name, figure)
            run = command(name, self.shown.evidence[name].profile)
            below = macro("foot.html.j2", "ways")(f"{'../' * page.count('/')}{address}", says, run)
            return f"{match[0]}\n{below}"

        return FIGURE.sub(one, text)

    def _behind(self, name: str, figure: str) -> tuple[str, str]:
        """Write the figure's file; its address from the site's first page, and what is in it."""
        own = self.shown.evidence[name].results
        names, says = results_behind(self.known[name], figure, own)
        address = f"data/{name}.csv" if says == ALL else f"data/{name}/{figure}.csv"
        if not (path := self.site / address).is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            entries = {each: own.entries[each] for each in names}
            path.write_text(results.as_csv(replace(own, entries=entries)), encoding="utf-8")
        return address, says


def command(chapter: str, profile: str) -> str:
    """How to repeat the run, and see whether it agrees."""
    return f"{command_name()} run {chapter} --profile {profile} --compare"
