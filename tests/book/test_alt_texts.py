"""An alternative text is plain: an attribute shows no markup, neither a chip's link nor a small interval."""

from __future__ import annotations

import re

from conftest import ROOT

from bookpress.pipeline import chapter_runs, prose

#: What fills one: no interval, no link.
PLAIN = {"mean", "median", "power", "value", "param", "n", "times", "points", "seeds", "stands"}


def test_what_fills_an_alternative_text_is_plain():
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "book").rglob("*.md"))]
    figures = [alt for text in pages for _, alt, *_ in chapter_runs.referenced_figures(text)]
    texts = figures + [alt for text in pages for alt in re.findall(r"!\[([^\]]+)\]", text)]
    assert len(texts) > 100
    for alt in texts:
        assert {token.verb for token in prose.tokens(alt)} <= PLAIN, alt
        bare = re.sub(r"\{\{ stands:.*?\}\}", "", alt)
        assert not re.search(r"[<*`$\"]| #|\\\|", bare), f"` #` would end it: {alt}"
        assert not prose.malformed(alt), alt
