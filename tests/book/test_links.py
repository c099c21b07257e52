"""Links to the repository: on every page from one setting."""

from __future__ import annotations

import re

from bookpress.book import repository
from bookpress.site import build, shell

HUB = "https://github.com/someone/a-book"


def test_the_setting_reaches_every_page_and_notebook(ran):
    """Where it is unset, as in this book: test_pipeline_build.py."""
    config = ran / "_config.yml"
    assert repository() == "" == shell.binder() and "git clone" not in shell.clone()
    text = config.read_text().replace('baseurl: ""', 'baseurl: "https://x.org/b/"', 1)
    config.write_text(text.replace('url: ""', f'url: "{HUB}"', 1))
    assert repository() == HUB
    site = build.build("smoke").parent
    pages = {page.relative_to(site).as_posix(): page.read_text() for page in site.rglob("*.html")}
    found = {
        name: set(re.findall(rf'href="({HUB}[^"]*)"', text))
        for name, text in pages.items()
        if "<article" in text
    }
    assert len(found) >= 5 and all(HUB in each for each in found.values())
    assert all(any("/issues/new" in to for to in each) for each in found.values())
    assert all(pages[name].count('class="cite-this"') == 1 for name in found)
    assert "https://x.org/b/part/coin.html</p>" in pages["part/coin.html"], "where it is cited"
    page = found["part/coin.html"]
    assert f"{HUB}/edit/main/book/part/coin.md" in page, "the text, not a notebook that is made from it"
    assert "https://x.org/b/data/" in (site / "_sources/part/coin.ipynb").read_text(), "its wheel is there"
    assert f"git clone {HUB}\n" in shell.clone()
    assert "(https://mybinder.org/v2/git/https%3A%2F%2F" in shell.binder()
    for to in set.union(*found.values()):
        file = re.search(r"/(?:edit/main|blob/[0-9a-f]+)/(.+)$", to)
        assert file is None or (ran / file[1]).is_file(), to
