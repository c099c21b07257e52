"""Links to the repository: on every page from one setting; that each page shows them: golden_site.py."""

from __future__ import annotations

from bookpress.book import repository
from bookpress.site import shell

HUB = "https://github.com/someone/a-book"


def test_the_setting_reaches_every_link(ran):
    config = ran / "_config.yml"
    assert repository() == "" == shell.binder() and "git clone" not in shell.clone()
    config.write_text(config.read_text().replace('url: ""', f'url: "{HUB}"', 1))
    assert repository() == HUB and f"git clone {HUB}\n" in shell.clone()
    assert "(https://mybinder.org/v2/git/https%3A%2F%2F" in shell.binder()
