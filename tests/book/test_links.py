"""Links to the repository: on every page from one setting."""

from __future__ import annotations

import re

from bookpress.book import repository
from bookpress.site import shell

HUB = "https://github.com/someone/a-book"


def test_the_setting_reaches_every_link(ran):
    """On the page; that each page shows them: golden_site.py."""
    config = ran / "_config.yml"
    assert repository() == "" == shell.binder() and "git clone" not in shell.clone()
    config.write_text(config.read_text().replace('url: ""', f'url: "{HUB}"', 1))
    assert repository() == HUB and f"git clone {HUB}\n" in shell.clone()
    assert "(https://mybinder.org/v2/git/https%3A%2F%2F" in shell.binder()
    found = re.findall(rf'href="({HUB}[^"]*)"', shell.nav(HUB, "part/coin"))
    assert any("/issues/new" in to for to in found)
    assert f"{HUB}/edit/main/book/part/coin.md" in found, "the text, not a notebook that is made from it"
