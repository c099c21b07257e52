"""The chapters' names in the order of the table of contents, and what `_config.yml` says."""

from __future__ import annotations

from typing import Any

from bookpress import paths
from bookpress.texts import read_yaml


def chapter_names() -> list[str]:
    """`part/chapter` of every book/PART/CHAPTER.md, in the order of `_toc.yml`; unlisted ones last, by
    name."""
    book = paths.book_folder()
    names = sorted(path.relative_to(book).with_suffix("").as_posix() for path in book.glob("*/*.md"))
    listed = _listed(read_yaml(paths.repository_root() / "_toc.yml", "_toc.yml"))
    place = {name: number for number, name in enumerate(listed)}
    return sorted(names, key=lambda name: place.get(name, len(place)))


def settings() -> dict[str, Any]:
    """All of `_config.yml`."""
    return read_yaml(paths.repository_root() / "_config.yml", "_config.yml")


def repository() -> str:
    """The address of the repository (`repository: url:`), or nothing while it is not set."""
    return str((settings().get("repository") or {}).get("url") or "").rstrip("/")


def _listed(node: Any) -> list[str]:
    """Every `file:` below a node of the table of contents, in order."""
    if isinstance(node, list):
        return [name for item in node for name in _listed(item)]
    if not isinstance(node, dict):
        return []
    own = [str(node["file"]).removesuffix(".md")] if "file" in node else []
    return own + [name for value in node.values() for name in _listed(value)]
