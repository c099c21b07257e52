"""What others show of a page, what a page says once, and the same pages on paper."""

from __future__ import annotations

import pytest
from PIL import Image
from site_rows import rows

from bnbook.errors import BnbookError
from bookpress.site import pages, pdf, shell

SAID, SHORT = (f"2 (95 % interval 1 to 3) and 5 ({words}4 to 6)." for words in ("95 % interval ", ""))
FORM = "{0}\n\n## Next\n\n{0}\n\n:::{{admonition}} In short\n{0}\n:::"


def test_each_section_and_box_says_once_what_an_interval_is():
    assert pages.said_once(FORM.format(SAID)) == FORM.format(SHORT)


def test_a_page_has_a_description_and_a_picture_of_its_own_verdicts(ran, tmp_path):
    text = (
        "<head><title>A coin</title></head><article><h1>A coin &amp; more</h1>"
        '<div class="run-stamp docutils"><p>Numbers on this page: laptop profile, and more.</p></div>'
        "<p>Is it <em>fair</em>? Heads came up in half of the tosses &amp; more.</p></article>"
    )
    page = shell.with_head(text, "part/coin", "A coin & its two sides", "index")
    assert 'name="description" content="Is it fair? Heads came up in half of the tosses &amp; more' in page
    assert 'property="og:title" content="A coin &amp; its two sides"' in page
    assert page.count('property="og:image" content="../_images/preview-index.png"') == 1
    assert '<link rel="icon" href="data:,">' in page, "no browser asks for an icon that is not there"
    assert shell.description("<article><p>short</p></article>") == ""
    long = shell.description("<article><p>" + "long words " * 60 + "</p>")
    assert 100 < len(long) <= shell.LONGEST_DESCRIPTION + 2
    config = ran / "_config.yml"
    config.write_text(config.read_text().replace('baseurl: ""', 'baseurl: "https://x.org/b/"'))
    assert shell.picture_of("part/coin", "part/coin") == "https://x.org/b/_images/preview-part-coin.png"
    shell.draw_previews({"index": "A book", "part/coin": "A coin"}, rows(), tmp_path)
    for name in ("index", "part/coin"):
        picture = Image.open(tmp_path / shell.preview(name))
        assert picture.size == shell.SIZE and len(picture.getcolors(1 << 20)) > 5


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
    for program, words in (
        ("/bin/true", r"no site in html/; build it first"),
        (None, "no browser to print with; .*chromium"),
    ):
        monkeypatch.setattr(pdf.shutil, "which", lambda name, program=program: program)
        with pytest.raises(BnbookError, match=words):
            pdf.write(tiny / "html", tiny / "book.pdf")
