"""The notation: one table, and a box with the meaning at the first place of each symbol and term."""

from __future__ import annotations

import re

import browsing
import pytest
from conftest import ROOT

from bnbook.errors import BnbookError
from bookpress import contents
from bookpress.site import notation, rendering, shell
from bookpress.site.notation import Notation

MATH = '<span class="math notranslate nohighlight">\\({}\\)</span>'
CODE = '<code class="docutils literal notranslate"><span class="pre">{}</span></code>'
ROWS = [
    Notation("the scale", symbol=("\\gamma", "\\mathcal L"), code=("gamma",)),
    Notation(
        "a path", words=("skip connections", "skip connection"), only=("elsewhere",)
    ),  # a symbol is only there
    Notation("examples", symbol=("m",), only=("part",)),
]


def boxes(page: str) -> list[str]:
    return re.findall(r'<dfn class="term"[^>]*>(.*?)<span class="tip"', page, re.S)


def test_only_the_first_place_of_each_in_running_text_is_boxed():
    gamma, code = MATH.format("\\gamma"), CODE.format("gamma")
    text = (
        f"<h1>{gamma} skip connections</h1>"
        f"<p>A {gamma}, <em>Skip\nconnections</em> and {gamma}, {code}; a skip connection.</p>"
        f"<table><tr><td><p>{code}</p></td></tr></table>"
        f"<p><a>{code}</a> {MATH.format('m')} {MATH.format('mx')}</p>"
    )
    page = f"<p>{gamma}</p><article class='a'>{text}</article><p>{gamma}</p>"
    shown = notation.marked(page, ROWS, "part/coin")
    assert boxes(shown) == [gamma, "Skip\nconnections", code, MATH.format("m")]
    assert "The scale. In the code: gamma.</span></dfn>" in shown
    assert len(set(re.findall(r' id="(term-\d+)"', shown))) == 4 == shown.count("aria-describedby")
    bare = re.sub(r"<dfn[^>]*>|<span class=\"tip\"[^>]*>[^<]*</span></dfn>", "", shown)
    assert bare == page, "nothing else changes"
    assert MATH.format("m") not in boxes(notation.marked(page, ROWS, "parts/coin")), "it means something else"
    spaced = "<article><p>" + MATH.format("\\mathcal  L") + "</p></article>"
    assert len(boxes(notation.marked(spaced, ROWS))) == 1, "spaces say nothing in TeX"


def test_the_books_table_is_whole(monkeypatch, tmp_path):
    monkeypatch.setenv("BNBOOK_ROOT", str(ROOT))
    rows, table = notation.entries(), notation.table()
    assert len(rows) > 20 and table.count("\n") == len(rows) + 3
    assert "$\\gamma$, $\\beta$ | `gamma`, `beta`" in table
    assert r"$\mathcal L$, $\widehat{\mathcal L}$ |" in table, "no symbol stands there twice"
    known = {"/".join(name.split("/")[:k]) for name in contents.chapter_names() for k in (1, 2)}
    assert {place for row in rows for place in row.only or ()} <= known
    (tmp_path / "_config.yml").write_text("title: A")
    (tmp_path / "book").mkdir()
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    assert notation.entries() == []
    (tmp_path / "book/notation.yml").write_text("- {symbol: [a], meaning: x}\n- {symbol: [a], meaning: y}")
    with pytest.raises(BnbookError, match="notation.yml: the symbol a appears twice"):
        notation.entries()


@pytest.mark.skipif(browsing.CHROMIUM is None, reason="no browser is installed")
def test_a_box_opens_without_scripts_by_pointer_key_and_finger(tmp_path):
    text = notation.marked(f"<article><p>{'word ' * 60}skip connections at the end</p></article>", ROWS)
    page = tmp_path / "page.html"
    style = (ROOT / "book/_static/book.css").read_text(encoding="utf-8")
    page.write_text(
        shell.page("A", rendering.Markup(text), "").replace("</head>", f"<style>{style}</style></head>")
    )
    with browsing.chromium() as browser:
        for width in (390, 1280):
            options = {"viewport": {"width": width, "height": 700}, "java_script_enabled": False}
            opened = browser.new_context(**options, has_touch=True).new_page()
            opened.goto(page.as_uri())
            term, tip = opened.locator("dfn.term"), opened.locator(".tip")
            assert not tip.is_visible()
            term.hover()
            assert tip.is_visible()
            opened.mouse.move(0, 650)
            assert not tip.is_visible()
            for _ in range(6):
                opened.keyboard.press("Tab")
                if tip.is_visible():
                    break
            assert tip.is_visible() and tip.inner_text() == "A path."
            box = tip.bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= width and box["y"] + box["height"] <= 700
            opened.keyboard.press("Tab")
            opened.keyboard.press("Tab")
            assert not tip.is_visible()
            term.tap()
            assert tip.is_visible()
