"""What the site knows of the place where its code lives: one setting, `repository: url:` of _config.yml."""

from __future__ import annotations

from typing import Any

import yaml

from bnbook import paths

BUTTONS = ("use_repository_button", "use_edit_page_button", "use_issues_button")


def repository() -> str:
    """The address of the repository, or nothing while it is not set."""
    return str((_content().get("repository") or {}).get("url") or "").rstrip("/")


def address() -> str:
    """Where the site is published (`html: baseurl:`), or nothing."""
    return str((_content().get("html") or {}).get("baseurl") or "")


def clone() -> str:
    """How to get the code, for the page that says how to run it."""
    address = repository()
    if not address:
        return "Get the book's repository, and in its folder:"
    return f"```sh\ngit clone {address}\n```\n\nThen, in its folder:"


def configuration() -> str:
    """jupyter-book's configuration: with links to the repository, to edit and to issues where it is set."""
    content = _content()
    if repository():
        content["html"] = content.get("html", {}) | dict.fromkeys(BUTTONS, True)
        content["repository"] = {"branch": "main", "path_to_book": "book"} | content["repository"]
    else:
        content.pop("repository", None)
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False)


def _content() -> dict[str, Any]:
    return yaml.safe_load((paths.repository_root() / "_config.yml").read_text(encoding="utf-8"))
