"""Under each figure: its data, and the command that repeats it."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from bookpress.book import chapter_names
from bookpress.pipeline import inks
from bookpress.profiles import PROFILES
from bookpress.results import Results
from bookpress.site import shell

ENTRIES = {name: {"values": [1.0], "unit": "", "seeds": [0]} for name in ("a", "b", "c")}
TEXT = "```{figure} coin.figures/one.svg\n```\n"
CHAPTER = SimpleNamespace(name="part/coin", path=Path("coin.md"), text=TEXT)


@pytest.mark.parametrize(
    ("reads", "place", "says", "names"),
    [
        (("b", "a"), "data/part/coin/one.csv", "what the figure draws", "ab"),
        ((), "data/part/coin.csv", "every recorded result of the chapter", "abc"),
    ],
)
def test_a_figures_data_are_what_it_draws_else_all(tmp_path, reads, place, says, names):
    (tmp_path / "part/coin.figures").mkdir(parents=True)
    drawing = inks.themed('<svg viewBox="0 0 1 1"></svg>', "part/coin/one", reads)
    (tmp_path / "part/coin.figures/one.svg").write_text(drawing)
    run = SimpleNamespace(chapter=CHAPTER, results=Results({}, ENTRIES), profile="laptop")
    found = dict(shell.ways([run], tmp_path))
    assert found == {"part/coin/one": (place, says, "bnbook run part/coin --profile laptop --compare")}
    with (tmp_path / place).open(encoding="utf-8") as file:
        assert "".join(row["name"] for row in csv.DictReader(file)) == names


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
