"""What a page loads, what others show of it, and the same pages on paper."""

from __future__ import annotations

import pytest
from PIL import Image
from site_rows import rows

from bnbook.errors import BnbookError
from bookpress.book import book
from bookpress.pipeline.chapters import Chapter
from bookpress.site import build, pdf, reference, shell


def test_mathematics_is_loaded_where_there_is_any():
    loaded = (
        '<script>window.MathJax = {"a": 1}</script>\n<script defer="defer" src="m/tex-chtml.js"></script>'
    )
    assert build.without_idle_mathjax(f"<head>{loaded}</head><p>words</p>") == "<head></head><p>words</p>"
    with_formula = f'<head>{loaded}</head><span class="math">x</span>'
    assert build.without_idle_mathjax(with_formula) == with_formula


def test_scripts_that_are_named_are_not_loaded_twice():
    page = (
        '<script defer="defer" src="../_static/board.js?v=1"></script>'
        '<script src="../_static/board.js?v=1"></script>\n'
        '<script src="../_static/explorers/data/fuse.js"></script>'
        '<script src="../_static/doctools.js"></script>'
    )
    left = build.without_doubles(page)
    assert left.count("board.js") == 1 and "fuse.js" not in left and "doctools.js" in left


def test_a_page_has_a_description_and_a_picture(tmp_path):
    (tmp_path / "_images").mkdir()
    (tmp_path / "part").mkdir()
    text = (
        "<head><title>A coin</title></head><article><h1>A coin</h1>"
        '<div class="run-stamp docutils"><p>Numbers on this page: laptop profile, and more.</p></div>'
        "<p>Is it <em>fair</em>? Heads came up in half of the tosses &amp; more.</p></article>"
    )
    for name in ("index", "part/coin"):
        (tmp_path / f"{name}.html").write_text(text)
    shell.write_previews(tmp_path, [Chapter("part/coin", None, "A coin & its two sides")], rows())
    page = (tmp_path / "part" / "coin.html").read_text()
    assert 'name="description" content="Is it fair? Heads came up in half of the tosses &amp; more' in page
    assert 'property="og:image" content="../_images/preview-part-coin.png"' in page
    assert 'property="og:title" content="A coin &amp; its two sides"' in page
    with Image.open(tmp_path / "_images" / "preview-index.png") as picture:
        assert picture.size == shell.SIZE and len(picture.getcolors(1 << 20)) > 5
    shell.write_previews(tmp_path, [], rows(), "https://example.org/book/")
    page = (tmp_path / "index.html").read_text()
    assert 'content="https://example.org/book/_images/preview-index.png"' in page
    assert shell.description("<article><p>short</p></article>") == ""
    assert (
        100
        < len(shell.description("<article><p>" + "long words " * 60 + "</p>"))
        <= shell.LONGEST_DESCRIPTION + 2
    )


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


def test_the_page_of_names_has_every_public_name_with_its_docstring():
    text = reference.names()
    for module, listed in book().public.items():
        for name in listed:
            assert f"{module}.{name}(" in text, name
    assert "`make_normalizer` builds one" in text, "code in a docstring stays as it is"
    assert "\n    name: str,\n" in text or "name: str" in text
    assert max(map(len, text.splitlines())) < 220
    assert 'norm: Norm = "none"' in text.replace("'", '"') and "model: nn.Module" in text
    assert "h<sup>l-1</sup>" in text and "W<sub>i</sub>" in text and "*whole*" in text, "set, not spelled"
    assert "n\\_mu" in text and "q\\_hat\\_0" in text, "names of code are no formulas"


def test_a_long_name_in_a_heading_breaks_behind_its_dots():
    heading = '<h2><code><span class="pre">bnbook.probes.covariate_shift</span></code></h2><p>a.b</p>'
    assert "bnbook.<wbr>probes.<wbr>covariate_<wbr>shift" in build.names_at_dots(heading)
    assert build.names_at_dots(heading).endswith("<p>a.b</p>")


def test_numbers_keep_their_signs_in_one_line():
    text = "<p>n = 20, p &lt; 0.01, 95 % of\n≤ 10⁻⁹, a = b; 5 <code>n = 20</code></p><script>n = 20</script>"
    shown = shell.with_fixed_spaces(text)
    assert "n\u00a0=\u00a020, p\u00a0&lt;\u00a00.01, 95\u00a0% of\n≤\u00a010⁻⁹, a = b; 5 " in shown
    assert shown.count("n = 20") == 2 and shown.replace("\u00a0", " ") == text


def test_neighbouring_folded_cells_have_one_bar():
    fold = (
        '<details class="admonition hide above-input">\n<summary>Show</summary>\n<div>{}</div>\n</details>\n'
    )
    cell = '<div class="cell tag_hide-input docutils container">\n' + fold + "{}</div>\n"
    page = cell.format("one", "") + cell.format("two", "<p>3</p>\n") + cell.format("four", "") + "<p></p>"
    shown = shell.with_one_fold(page)
    assert shown.count("<summary>") == 2 and shown.count("</details>") == 2
    assert "<div>one</div>\n<div>two</div>\n</details>\n<p>3</p>" in shown, "what is shown stays outside"
    assert shown.count("<div") == shown.count("</div>")


def test_the_picture_of_a_chapter_counts_its_own_claims(tmp_path, monkeypatch):
    from bookpress.pipeline.chapters import Chapter
    from bookpress.site import shell

    drawn = {}
    monkeypatch.setattr(shell, "card", lambda title, own, path: drawn.update({title: len(own)}))
    (tmp_path / "part").mkdir()
    for name in ("index", "part/coin"):
        (tmp_path / f"{name}.html").write_text("<title>x</title>")
    rows = [{"chapter": name, "verdict": "open"} for name in ("part/coin", "part/dice", "part/dice")]
    shell.write_previews(tmp_path, [Chapter("part/coin", None, "A coin")], rows)
    assert list(drawn.values()) == [3, 1]
