"""Under each figure: the lines that lead to it, its data, and the command that repeats it."""

from __future__ import annotations

import csv
import html
import os
import re
from pathlib import Path

import pytest

from bookpress import contents
from bookpress.pipeline.chapters import Chapter
from bookpress.profiles import PROFILES
from bookpress.site import ways

CELLS = [
    "import numpy as np\nrates = [1, 2]\nrecord('speed', rates)",
    "def grow(x):\n    other = 2\n    return x * other\n\n\ntables = {r: grow(r) for r in rates}\n"
    "for r, values in tables.items():\n    record(f'growth.m{r}', values)\nother = 3",
    "found = {}\nfor name in ('a', 'b'):\n    found[name] = grow(rates)\nrecord('unseen', found)\n"
    "curves = {'one': tables[1]}\nsave_figure(plots.lines(tables, curves), 'lines', curves)",
    "fig, ax = plt.subplots()\nax.plot(found['a'])\nax.set(xlabel='x')\nrecord('slope', [1])\n"
    "def finish(fig, name):\n    save_figure(fig, name)\n\n\nfinish(fig, 'two-words')",
    "for name, found in (('left', rates), ('right', tables)):\n"
    "    save_figure(plots.side(found), name, found)",
]


class Cells(Chapter):
    code_cells = CELLS


@pytest.fixture
def chapter():
    return Cells("part/coin", None, "A coin")


def test_the_lines_behind_a_figure_are_those_that_it_rests_on(chapter):
    assert ways.lines_behind(chapter, "lines") == [
        "rates = [1, 2]",
        "def grow(x):\n    other = 2\n    return x * other",
        "tables = {r: grow(r) for r in rates}",
        "curves = {'one': tables[1]}",
        "save_figure(plots.lines(tables, curves), 'lines', curves)",
    ]
    assert ways.lines_behind(chapter, "two-words") == [
        "rates = [1, 2]",
        "def grow(x):\n    other = 2\n    return x * other",
        "found = {}",
        "for name in ('a', 'b'):\n    found[name] = grow(rates)",
        "fig, ax = plt.subplots()",
        "ax.plot(found['a'])",
        "def finish(fig, name):\n    save_figure(fig, name)",
        "finish(fig, 'two-words')",
    ], "neither what dresses the axes nor what records"
    assert ways.lines_behind(chapter, "never-saved") == []
    assert (
        ways.lines_behind(chapter, "left")
        == ways.lines_behind(chapter, "right")
        == [
            "rates = [1, 2]",
            "def grow(x):\n    other = 2\n    return x * other",
            "tables = {r: grow(r) for r in rates}",
            CELLS[-1],
        ]
    ), "names of a loop"


def test_a_figures_data_are_its_points_and_what_is_recorded_from_what_it_draws(chapter):
    recorded = ["curve.lines.one", "curve.other.x", "growth.m1", "growth.m2", "slope", "speed", "unseen"]
    assert ways.results_behind(chapter, "lines", recorded) == (
        ["curve.lines.one", "growth.m1", "growth.m2"],
        True,
    )
    assert ways.results_behind(chapter, "two-words", recorded) == (["slope"], False), (
        "what its own cell records"
    )
    own = [*recorded, "curve.two_words.a"]
    assert ways.results_behind(chapter, "two-words", own) == (["curve.two_words.a"], True)
    assert ways.results_behind(chapter, "never-saved", recorded) == ([], False)


def test_a_long_way_is_shortened_and_says_so():
    assert ways.shortened(["a", "b\nc"], longest=3) == "a\nb\nc"
    assert ways.shortened(["a", "b\nc"], longest=2).splitlines()[1:] == ["b", "c"]
    assert "cells" in ways.shortened(["a", "b\nc"], longest=2).splitlines()[0]
    assert ways.shortened(["a\nb\nc"], longest=2) == "a\nb\nc", "never nothing"


@pytest.fixture(scope="module")
def site(request) -> Path:
    named = os.environ.get("BNBOOK_SITE")
    return Path(named).resolve() if named else request.getfixturevalue("built_site") / "html"


@pytest.mark.parametrize("page", ["index", *contents.chapter_names()])
def test_each_figure_of_each_page_has_its_code_its_data_and_its_command(site, page):
    path = site / f"{page}.html"
    text = path.read_text(encoding="utf-8")
    figures = text.count('<a class="plot')
    under = re.findall(
        r'</figure>\s*<div class="ways".*?<summary>Run</summary>.*?</details></div>', text, re.S
    )
    assert figures == len(under) == text.count("<figure")
    for each in under:
        code, command = (
            html.unescape(re.sub(r"<[^>]+>", "", pre))
            for pre in re.findall(r"<pre[^>]*>(.*?)</pre>", each, re.S)
        )
        assert re.search(r"\b(figure|save_figure|finish|draw_\w+)\(", code), code
        assert len(code.splitlines()) <= ways.LONGEST + 1
        asked = re.fullmatch(r"bnbook run (\S+) --profile (\w+) --compare\s*", command)
        assert asked and asked[1] in contents.chapter_names() and asked[2] in PROFILES
        data = re.search(r'<a class="way" download href="([^"]+)" title="CSV: [^"]+">', each)[1]
        with (path.parent / data).open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert rows and {"name", "seed", "place", "value", "unit"} == set(rows[0])
        assert f"data/{asked[1]}" in data
