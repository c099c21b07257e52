"""What the extension changes: a small site by Sphinx, whose pages have what the theme and others leave undone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import browsing
import pytest
from conftest import ROOT
from docutils import nodes
from docutils.utils import new_document

from bookpress.pipeline import inks
from bookpress.site import extension, shell

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} 216"><path style="fill: #000000" d="M0 0"/></svg>'
HIDDEN = '```{{code-cell}} python\n:tags: ["hide-input"]\n\n{}\n```\n\n'
PAGES = {
    "index": "# A book\n\n```{toctree}\npart/decay\ninstruments\n```\n\nOne paragraph, long enough to say what it is.\n",
    "part/decay": """# Is weight decay a learning rate?

By $x$, or ($y$) and “$z$”, and $u$ alone. So half, 50 %, of `100 %`.

```python
secretcode = 1
```

(my-label)=
## A heading

```{figure} decay.figures/one.svg
:alt: What "it" shows.

A caption.
```

```{figure} decay.figures/wide.svg
:alt: What else.

Another.
```

![a logo](logo.svg)
""",
    "instruments": "# Instruments\n\n## Weight decay\n\nweight decay weight decay weight decay\n",
    "cells": "---\nfile_format: mystnb\nkernelspec: {name: python3}\n---\n\n# Cells\n\n"
    + "".join(HIDDEN.format(code) for code in ("first = 1", "second = 2"))
    + "Words.\n\n"
    + HIDDEN.format("third = 3"),
}
CONF = """
extensions = ["myst_nb", "sphinx_thebe", "bookpress.site.extension"]
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
html_theme = "sphinx_book_theme"
html_theme_options = {"use_download_button": True}
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_js_files = ["board.js", ["mount.js", {"defer": "defer"}]]
mathjax_path = "tex-chtml.js"
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A site of four pages by Sphinx with this extension."""
    root = tmp_path_factory.mktemp("small")
    pages = root / "pages"
    for name in ("_static", "part/decay.figures"):
        (pages / name).mkdir(parents=True)
    (pages / "conf.py").write_text(CONF)
    for name, text in PAGES.items():
        (pages / f"{name}.md").write_text(text)
    for name in ("board.js", "mount.js"):
        (pages / "_static" / name).write_text("")
    (pages / "part" / "logo.svg").write_text(SVG.format(1))
    for name, width in (("one", 504), ("one.narrow", 288), ("wide", 648)):
        drawing = inks.themed(SVG.format(width), f"part/decay/{name.partition('.')[0]}")
        (pages / "part" / "decay.figures" / f"{name}.svg").write_text(drawing)
    figures = {"part/decay/one": ["data/one.csv", "what it draws", "book run part/decay"]}
    (pages / shell.TOLD).write_text(
        json.dumps({"titles": {"part/decay": "Decay & more"}, "figures": figures})
    )
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", pages, root / "html"]
    environment = os.environ | {shell.MARK: "1", "BNBOOK_ROOT": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return root / "html"


MATH = r'<span class="math notranslate nohighlight">\\\({}\\\)</span>'
ONE = r'<img alt="What &quot;it&quot; shows." loading="lazy" width="{}" height="288" class="only-{}" src="\.\./_images/{}" />'
BOTH = (("light", ""), ("dark", "#dark"))
DRAWN = [
    ONE.format(width, theme, f"{name}.svg{end}")
    for width, name in ((672, "one"), (384, "one.narrow"))
    for theme, end in BOTH
]
#: Page -> what stands in it; what does not.
STANDS = {
    "part/decay": (
        [
            # no line starts with a comma
            f'<span class="unbroken">{MATH.format("x")},</span> or <span class="unbroken">\\({MATH.format("y")}\\)</span>',
            f'<span class="unbroken">“{MATH.format("z")}”,</span> and {MATH.format("u")} alone',
            'half, 50\u00a0%, of <code[^>]*><span class="pre">100</span> <span class="pre">%</span>',
            # a heading's link names its label, and its number or slug is an address still
            r'<section id="my-label">\s*<span id="a-heading"></span><h2>A heading<a class="headerlink" href="#my-label"',
            # each figure once a theme, for a page and for a phone, and what is behind it
            r'<a class="plot stacks" href="\.\./_images/one\.svg" title="Open this figure by itself: What &quot;it&quot; shows\.">'
            rf'<span class="whole">{DRAWN[0]}{DRAWN[1]}</span><span class="columns">{DRAWN[2]}{DRAWN[3]}</span></a>',
            r'</figure>\s*<div class="ways".*?download href="\.\./data/one\.csv" title="CSV: what it draws".*?book run part/decay',
            r'<a class="plot scrolls" style="--wide: 613px" href="\.\./_images/wide\.svg"',  # as its letters need
            r'<img alt="a logo" src="\.\./_images/logo\.svg" />',
            # its head, and how it is cited
            r'<link rel="icon" href="\.\./_static/favicon\.svg">',
            r'og:title" content="Decay &amp; more">',
            r'og:image" content="\.\./_images/preview-part-decay\.png">',
            r'class="cite-this".*?“Is weight decay a learning rate\?”',
            # what the theme leaves undone
            r'<a href="\.\./_sources/part/decay\.md" download',
            r'data-theme="light"',
            r'"theme"\) \|\| \(matchMedia\(',
            r'<div id="pst-primary-sidebar" role="complementary"',
            r"tex-chtml\.js",
            r'<script defer="defer" src="\.\./_static/mount\.js',
            "Content-Security-Policy\" content=\"default-src 'self' file: 'unsafe-inline'; img-src",
        ],
        ["thebe", r"board\.js", 'class="ways".*class="ways"'],
    ),
    "index": (
        [
            r'name="description" content="One paragraph, long enough',
            "preview-index.png",
            "bd-article-container wide",
        ],
        [r"tex-chtml\.js", r"window\.MathJax"],
    ),
    # neighbouring folded cells are under one bar
    "cells": (
        [r"<details(?:(?!<details).)*first(?:(?!<details).)*second(?:(?!<details).)*</details>", "Words"],
        [],
    ),
    "search": (['og:title" content="[Ss]earch"'], []),
}


@pytest.mark.parametrize("page", STANDS)
def test_what_stands_in_a_page(small, page):
    text, (there, not_there) = (small / f"{page}.html").read_text(encoding="utf-8"), STANDS[page]
    assert not [each for each in there if not re.search(each, text, re.S)]
    assert not [each for each in not_there if re.search(each, text, re.S)]
    assert page != "cells" or text.count('<details class="admonition hide above-input"') == 2


def test_code_and_what_it_prints_are_not_known_to_the_search(small):
    page = new_document("page")
    page += nodes.section("", nodes.title("", "A title"), nodes.paragraph("", "prose"), ids=["a"])
    page += nodes.literal_block("", "secretcode")
    page += nodes.container("", nodes.paragraph("", "printed"), classes=["cell_output"])
    before = page.astext()
    left = extension.text_of(page).astext()
    assert "prose" in left and "A title" in left and "secretcode" not in left and "printed" not in left
    assert page.astext() == before, "the page itself stays as it is"
    known = json.loads(re.search(r"setIndex\((.*)\)", (small / "searchindex.js").read_text())[1])["terms"]
    assert "weight" in known and not {"secretcod", "secretcode"} & set(known)


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
