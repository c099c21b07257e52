"""What the site knows of the place where its code lives: one setting, `repository: url:` of _config.yml."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import yaml

from bnbook import paths
from bnbook.texts import read_yaml


def repository() -> str:
    """The address of the repository, or nothing while it is not set."""
    return str((_content().get("repository") or {}).get("url") or "").rstrip("/")


def address() -> str:
    """Where the site is published (`html: baseurl:`), or nothing."""
    return str((_content().get("html") or {}).get("baseurl") or "")


def binder() -> str:
    """Where the chapters open on Binder, a sentence with a link; nothing while there is no address."""
    address = repository()
    if not address:
        return ""
    link = f"https://mybinder.org/v2/git/{quote(address, safe='')}/main?urlpath=lab/tree/lab"
    return f"Nothing to install: [all chapters as notebooks on Binder]({link}), which starts slowly."


def clone() -> str:
    """How to get the code, for the page that says how to run it."""
    address = repository()
    if not address:
        return "Get the book's repository, and in its folder:"
    return f"```sh\ngit clone {address}\n```\n\nThen, in its folder:"


def configuration() -> str:
    """jupyter-book's configuration, without the repository: the theme's links lead to notebooks that it does
    not have, those of `bnbook.site.links` to the text."""
    content = _content()
    content.pop("repository", None)
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False)


def _content() -> dict[str, Any]:
    return read_yaml(paths.repository_root() / "_config.yml", "_config.yml")
