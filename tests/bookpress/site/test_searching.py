"""What the search knows and shows: titles first, no code, no list of contents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import browsing
import pytest
from docutils import nodes
from docutils.utils import new_document

from bookpress.site import searching

PAGES = {
    "index": "# A book\n\n```{toctree}\ndecay\ninstruments\n```\n",
    "decay": "# Is weight decay a learning rate?\n\nIt is.\n\n```python\nsecretcode = 1\n```\n",
    "instruments": "# Instruments\n\n## Weight decay\n\nweight decay weight decay weight decay\n",
}


def test_code_and_what_it_prints_are_not_known():
    page = new_document("page")
    page += nodes.section("", nodes.title("", "A title"), nodes.paragraph("", "prose"), ids=["a"])
    page += nodes.literal_block("", "secretcode")
    page += nodes.container("", nodes.paragraph("", "printed"), classes=["cell_output"])
    before = page.astext()
    left = searching.text_of(page).astext()
    assert "prose" in left and "A title" in left and "secretcode" not in left and "printed" not in left
    assert page.astext() == before, "the page itself stays as it is"


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A site of three pages by Sphinx with this search."""
    root = tmp_path_factory.mktemp("small")
    (root / "pages").mkdir()
    (root / "pages" / "conf.py").write_text("extensions = ['myst_parser', 'bookpress.site.searching']\n")
    for name, text in PAGES.items():
        (root / "pages" / f"{name}.md").write_text(text)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", root / "pages", root / "html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return root / "html"


def test_the_index_has_the_text_and_not_the_code(small):
    index = json.loads(re.search(r"setIndex\((.*)\)", (small / "searchindex.js").read_text())[1])
    assert (
        "weight" in index["terms"]
        and "secretcod" not in index["terms"]
        and "secretcode" not in index["terms"]
    )


@pytest.mark.skipif(browsing.CHROMIUM is None, reason="no browser is installed")
def test_a_page_whose_title_has_the_words_is_found_first(small):
    with browsing.chromium() as browser:
        page = browser.new_page()
        page.goto(f"{(small / 'search.html').as_uri()}?q=weight+decay")
        page.wait_for_function("document.querySelectorAll('#search-results li').length > 1")
        first = page.locator("#search-results li a").first.inner_text()
        text = "<article><nav>Contents</nav><p>The text.</p><pre>code</pre></article>"
        quoted = page.evaluate("text => Search.htmlToText(text, '')", text)
    assert first == "Is weight decay a learning rate?" and quoted == "The text."
