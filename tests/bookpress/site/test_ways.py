"""Under each figure: its data, and the command that repeats it."""

from __future__ import annotations

import csv
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from bookpress.book import chapter_names
from bookpress.pipeline import pictures
from bookpress.profiles import PROFILES
from bookpress.results import Results
from bookpress.site import shell

ENTRIES = {name: {"values": [1.0], "unit": "", "seeds": [0]} for name in ("a", "b", "c")}
RUN = SimpleNamespace(results=Results({}, ENTRIES), profile="laptop")


@pytest.mark.parametrize(
    ("reads", "says", "rows"),
    [(("b", "a"), "what the figure draws", "ab"), ((), "every recorded result of the chapter", "abc")],
)
def test_a_figures_data_are_what_it_draws_else_all(tmp_path, reads, says, rows):
    figures = {"one": pictures.Picture("part/coin/one", (1.0, 1.0), None, reads)}
    page = '<figure id="x"><a href="../_images/one.svg">x</a></figure><figure><a href="_images/two.svg"></a></figure>'
    shown = SimpleNamespace(evidence={"part/coin": RUN})
    text = shell.with_ways(page, "claims/x", tmp_path, shown, figures)
    assert text.count('class="ways"') == 1 and "run part/coin --profile laptop --compare" in text
    data, said = re.search(r'download href="\.\./([^"]+)" title="CSV: ([^"]+)"', text).groups()
    with (tmp_path / data).open(encoding="utf-8") as file:
        assert "".join(row["name"] for row in csv.DictReader(file)) == rows and said == says
    assert (
        shell.with_ways(page, "x", tmp_path, SimpleNamespace(evidence={"part/coin": None}), figures) == page
    )


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
