"""An alternative text says what is drawn; a finding in it is a number of the run or bears the mark of its verdict."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

from bookpress.pipeline import chapter_runs, prose

PAGES = {
    path.relative_to(ROOT / "book").with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "book").rglob("*.md"))
}
PLAIN = ("mean", "median", "power", "value", "param", "n", "times", "points", "seeds")  # no interval, no link


def images(text: str) -> list[str]:
    """The alternative texts of a page."""
    return [alt for _, alt, *_ in chapter_runs.referenced_figures(text)] + re.findall(r"!\[([^\]]+)\]", text)


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if "{{" in "".join(images(text))])
def test_what_fills_an_alternative_text_is_plain(page):
    """An attribute shows no markup, neither a chip's link nor a small interval; ` #` would end it."""
    for alt in images(PAGES[page]):
        assert {token.verb for token in prose.tokens(alt)} <= {*PLAIN, "stands"}, alt
        assert not re.search(r"[<*`$\"]| #|\\\|", re.sub(r"\{\{ stands:.*?\}\}", "", alt)), alt
        assert not prose.malformed(alt), alt
