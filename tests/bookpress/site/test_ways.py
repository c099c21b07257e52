"""Under each figure: its data, and the command that repeats it."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path

import pytest

from bookpress.book import chapter_names
from bookpress.pipeline.chapters import Chapter
from bookpress.profiles import PROFILES
from bookpress.site import shell

CELLS = [
    "record('speed', rates)",
    "for r, values in tables.items():\n    record(f'growth.m{r}', values)",
    "record('unseen', found)\nfigure('lines', draw)",
    "record(f'growth.m{r}', tables)\nrecord('slope', [1])\nsave_figure(fig, 'two-words')",
]


class Cells(Chapter):
    code_cells = CELLS


RECORDED = [
    "curve.lines.one",
    "curve.other.x",
    "growth.m1",
    "growth.m2",
    "slope",
    "slope.batch",
    "slopes",
    "speed",
]


@pytest.mark.parametrize(
    ("figure", "behind"),
    [
        ("lines", (["curve.lines.one"], shell.POINTS)),
        ("two-words", (["growth.m1", "growth.m2", "slope", "slope.batch"], shell.NAMED)),
        ("never-saved", (RECORDED, shell.ALL)),
    ],
)
def test_a_figures_data_are_its_points_else_what_its_cell_names_else_all(figure, behind):
    assert shell.results_behind(Cells("part/coin", None, "A coin"), figure, RECORDED) == behind


@pytest.fixture(scope="module")
def site(request) -> Path:
    named = os.environ.get("BNBOOK_SITE")
    return Path(named).resolve() if named else request.getfixturevalue("built_site") / "html"


@pytest.mark.parametrize("page", ["index", *chapter_names()])
def test_each_figure_of_each_page_has_its_data_and_its_command(site, page):
    path = site / f"{page}.html"
    text = path.read_text(encoding="utf-8")
    figures = text.count('<a class="plot')
    under = re.findall(
        r'</figure>\s*<div class="ways".*?<summary>Run</summary>.*?</details></div>', text, re.S
    )
    assert figures == len(under) == text.count("<figure")
    for each in under:
        command = re.sub(r"<[^>]+>", "", re.search(r"<pre[^>]*>(.*?)</pre>", each, re.S)[1])
        asked = re.fullmatch(r"bnbook run (\S+) --profile (\w+) --compare\s*", command)
        assert asked and asked[1] in chapter_names() and asked[2] in PROFILES
        data = re.search(r'<a class="way" download href="([^"]+)" title="CSV: [^"]+">', each)[1]
        with (path.parent / data).open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert rows and {"name", "seed", "place", "value", "unit"} == set(rows[0])
        assert f"data/{asked[1]}" in data
