"""What a page loads, what others show of it, and the same pages on paper."""

from __future__ import annotations

import pytest
from conftest import ROOT
from PIL import Image
from site_rows import rows

from bnbook.errors import BnbookError
from bookpress.site import build, pages, pdf, shell

MATH = '<span class="math notranslate nohighlight"'
F = rf"{MATH}>\(y=\pm1\)</span>"
LOADS = '<script>window.MathJax = {"a": 1}</script>\n<script defer="defer" src="m/tex-chtml.js"></script>'
HEADING = '<h3>On coins<a class="headerlink" href="#on-coins" title="x">#</a></h3>'
LABEL, LINK = '<span id="erratum-coin"></span>', '<a class="reference internal" href="#a">'
FOLD = '<details class="admonition hide above-input">\n<summary>Show</summary>\n<div>{}</div>\n</details>\n'
CELL = f'<div class="cell tag_hide-input docutils container">\n{FOLD}{{}}</div>\n'
SAID, SHORT = (f"2 (95 % interval 1 to 3) and 5 ({words}4 to 6)." for words in ("95 % interval ", ""))
#: What mends a page, the page before, and after; None: it stays as it is.
MENDS = [
    (build.mended, f"<head>{LOADS}</head><p>words</p>", "<head></head><p>words</p>"),
    (build.mended, f'<head>{LOADS}</head><span class="math">x</span>', None),
    (
        build.mended,
        '<script src="../_static/board.js?v=1"></script>\n<script src="../_static/explorers/data/fuse.js"></script>',
        "",
    ),
    (build.mended, '<script defer="defer" src="../_static/board.js?v=1"></script>', None),
    (build.mended, '<script src="../_static/doctools.js"></script>', None),
    (
        build.mended,
        '<h2><span class="pre">a.b_c</span></h2><p>a.b',
        '<h2><span class="pre">a.<wbr>b_<wbr>c</span></h2><p>a.b',
    ),
    (build.mended, f"one {F}, two {F} three", f'one <span class="unbroken">{F},</span> two {F} three'),
    (
        build.mended,
        f"“{F}” ({F} b",
        f'<span class="unbroken">“{F}”</span> <span class="unbroken">({F}</span> b',
    ),
    (build.mended, f"{F}).</p>", f'<span class="unbroken">{F}).</span></p>'),
    (build.mended, '<div class="bd-article-container">x', '<div class="bd-article-container wide">x'),
    (build.mended, '<div class="bd-article-container">x<div class="bd-sidebar-secondary">', None),
    (build.mended, f"Solution to{LINK} Exercise 3", f"Solution to {LINK}Exercise 3"),
    (
        build.mended,
        HEADING + LABEL + HEADING,
        HEADING + LABEL + HEADING.replace("#on-coins", "#erratum-coin"),
    ),
    (build.mended, f"{LABEL}<p>A paragraph.</p>{HEADING}", None),
    (
        build.mended,
        '<a href="../_sources/a/b.ipynb" title="x">',
        '<a href="../_sources/a/b.ipynb" download title="x">',
    ),
    (build.mended, "<p>95 % of\n5\n%, a % b</p>", "<p>95\u00a0% of\n5\u00a0%, a % b</p>"),
    (
        build.mended,
        CELL.format("1", "") + CELL.format("2", "<p>3</p>\n") + CELL.format("4", ""),
        CELL.format("1", "").replace(
            "\n</details>\n</div>\n", "\n<div>2</div>\n</details>\n<p>3</p>\n</div>\n"
        )
        + CELL.format("4", ""),
    ),
    (
        pages.said_once,
        f"{SAID}\n\n## Next\n\n{SAID}\n\n:::{{admonition}} In short\n{SAID}\n:::",
        f"{SHORT}\n\n## Next\n\n{SHORT}\n\n:::{{admonition}} In short\n{SHORT}\n:::",
    ),
]


@pytest.mark.parametrize(("mend", "before", "after"), MENDS)
def test_what_is_mended_in_a_page(mend, before, after):
    assert mend(before) == (before if after is None else after)


def test_a_page_has_a_description_and_a_picture_of_its_own_verdicts(tmp_path):
    text = (
        "<head><title>A coin</title></head><article><h1>A coin &amp; more</h1>"
        '<div class="run-stamp docutils"><p>Numbers on this page: laptop profile, and more.</p></div>'
        "<p>Is it <em>fair</em>? Heads came up in half of the tosses &amp; more.</p></article>"
    )
    page = shell.with_description(text, "a.png", "A coin & its two sides")
    assert 'name="description" content="Is it fair? Heads came up in half of the tosses &amp; more' in page
    assert 'property="og:title" content="A coin &amp; its two sides"' in page
    assert 'property="og:title" content="A coin &amp; more"' in shell.with_description(text, "a.png")
    assert page.count('property="og:image" content="a.png"') == 1
    assert shell.with_description(page, "b.png").count("og:description") == 1, "what it says of itself stays"
    shell.draw_previews({"index": "A book", "part/coin": "A coin"}, rows(), tmp_path)
    few = [
        len(Image.open(tmp_path / shell.preview(name)).getcolors(1 << 20)) for name in ("index", "part/coin")
    ]
    assert min(few) > 5
    assert Image.open(tmp_path / shell.preview("part/coin")).size == shell.SIZE
    assert shell.description("<article><p>short</p></article>") == ""
    long = shell.description("<article><p>" + "long words " * 60 + "</p>")
    assert 100 < len(long) <= shell.LONGEST_DESCRIPTION + 2


def test_on_paper_addresses_start_from_the_first_page_and_what_is_folded_is_open():
    page = (
        '<article class="x"><img class="only-light" loading="lazy" src="../_images/a.svg" />'
        '<img class="only-dark" src="../_images/a.svg#dark" /><a href="other.html#x">x</a><a href="#y">y</a>'
        '<a href="../scoreboard.html">b</a><details class="admonition"><p>z</p></details></article>'
    )
    text = pdf.article(page, "part")
    assert 'src="_images/a.svg"' in text and "#dark" not in text and 'loading="eager"' in text
    assert 'href="part/other.html#x"' in text and 'href="#y"' in text and 'href="scoreboard.html"' in text
    assert "<details open" in text


def test_without_a_site_or_a_browser_there_is_one_clear_line(tiny, monkeypatch):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: "/bin/true")
    with pytest.raises(BnbookError, match=r"no site in html/; build it first"):
        pdf.write(tiny / "html", tiny / "book.pdf")
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    with pytest.raises(BnbookError, match="no browser to print with; expected one of chromium"):
        pdf.write(tiny / "html", tiny / "book.pdf")


def test_the_books_notation_is_one_table(monkeypatch, tmp_path):
    monkeypatch.setenv("BNBOOK_ROOT", str(ROOT))
    table = pages.notation()
    assert table.count("\n") > 20 and "$\\gamma$, $\\beta$ | `gamma`, `beta`" in table
    assert r"$\mathcal L$, $\widehat{\mathcal L}$ |" in table, "no symbol stands there twice"
    (tmp_path / "_config.yml").write_text("package: bnbook")
    (tmp_path / "book").mkdir()
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    assert pages.notation().count("\n") == 3
    (tmp_path / "book/notation.yml").write_text("- {symbol: [a], mean: x}")
    with pytest.raises(BnbookError, match="notation.yml: row number 1: .* lacks meaning"):
        pages.notation()


def test_a_preview_has_its_whole_address_where_the_site_has_one(ran):
    assert shell.picture_of("part/coin", "part/coin") == "../_images/preview-part-coin.png"
    config = ran / "_config.yml"
    config.write_text(config.read_text().replace('baseurl: ""', 'baseurl: "https://x.org/b/"'))
    assert shell.picture_of("part/coin", "part/coin") == "https://x.org/b/_images/preview-part-coin.png"


def test_no_browser_asks_for_an_icon_that_is_not_there(tmp_path):
    page = "<head><title>A</title></head>"
    assert '<link rel="icon" href="data:,">' in shell.with_icon(page, "../", tmp_path)
    (tmp_path / "_static").mkdir()
    (tmp_path / shell.ICON).write_text("<svg/>")
    assert '<link rel="icon" href="../_static/favicon.svg">' in shell.with_icon(page, "../", tmp_path)
