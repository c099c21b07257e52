"""What the press knows of the book that it makes: it imports nothing of it, the book's package tells it.

A package has a module `book` that calls `register`; whoever begins with the press alone (`python -m bookpress`, a
process of its own) finds that module by `package:` in the book's `_config.yml`. The press's variables are called
BNBOOK_… after the first book that it made: users have set them since.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bookpress import paths
from bookpress.errors import PressError
from bookpress.texts import read_yaml

PRESS = __name__.partition(".")[0]
Words = Mapping[str, str]


@dataclass(frozen=True)
class Book:
    """A book's package, and what is the book's own; modules are named, and imported when they are needed."""

    package: str  # whose definitions measure; its command has the same name
    version: str
    #: Parts of the package that pass results on and make none: a change in them makes nothing stale.
    not_measuring: tuple[str, ...] = ()
    #: load, prepare, whereabouts and is_kept of a set by name; known_sets; colours; STANDINS, which are no evidence.
    data_module: str = ""
    #: TRAINS, LOADS, ALIASES and numerics, which `bookpress.runs.kinds` asks for.
    trainings_module: str = ""
    #: EXPLORERS: name -> what its page draws from, (pages) -> JSON or None.
    explorers_module: str = ""
    #: PAGES: name of a page of book/ -> what its own tokens `{{ here:NAME }}` stand for, (pages) -> texts.
    pages_module: str = ""
    #: Commands of the book's own: add_commands(add), see `bookpress.cli`.
    commands_module: str = ""
    data_names: Words = field(default_factory=dict)  # set -> as people call it, the one to have first
    arms: Words = field(default_factory=dict)  # last part of a result's name -> in words
    beside: Mapping[str, Words] = field(default_factory=dict)  # arm -> other words for those beside it
    sources: Words = field(default_factory=dict)  # key of a source -> as people call it
    versions: tuple[str, ...] = ()  # of a source that are told apart
    #: drawings(chapter): figure -> draw(results); drawn(draw, results, narrow, formats).
    figures_module: str = ""
    #: The package with a module a chapter, whose FIGURES these may be.
    chapters_package: str = ""
    palette: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # meaning -> (on white, in the dark)
    scales: str = r"(?!)"  # figures whose areas have a colour scale's inks
    painted: str = r"(?!)"  # those whose panels it fills

    data = property(lambda self: importlib.import_module(self.data_module))
    trainings = property(lambda self: importlib.import_module(self.trainings_module))
    figures = property(lambda self: importlib.import_module(self.figures_module))
    explorers = property(lambda self: _table(self.explorers_module, "EXPLORERS"))
    pages = property(lambda self: _table(self.pages_module, "PAGES"))

    def modules(self, chapter: str) -> tuple[str, ...]:
        """The module of a chapter (PART/CHAPTER), where it has one."""
        name = f"{self.chapters_package}.{chapter.rpartition('/')[2].replace('-', '_')}"
        return (name,) if self.chapters_package and importlib.util.find_spec(name) else ()


def _table(module: str, name: str) -> Mapping[str, Callable[[Any], Any]]:
    """A table of a module of the book, empty where it names none."""
    return getattr(importlib.import_module(module), name) if module else {}


_registered: Book | None = None


def register(told: Book) -> Book:
    """From here on the press makes this book."""
    global _registered
    _registered, paths.cached_as = told, told.package
    return told


def book() -> Book:
    """The registered book, else the one around here; PressError where there is none or it names no package."""
    if _registered is None:
        package = (settings() or {}).get("package")
        try:
            importlib.import_module(f"{package}.book")
        except ModuleNotFoundError:
            raise PressError(
                f"_config.yml has package {package!r}; expected one that is installed and whose module `book` registers it"
            ) from None
    return _registered


def command_name() -> str:
    """The command in what is said to a user: the book's, the press's own where no book is known."""
    return _registered.package if _registered else PRESS


def folders() -> dict[str, Path]:
    """Where the code lies that a run rests on, that of the book's package and the press."""
    names = (book().package, PRESS)
    return {name: Path(importlib.util.find_spec(name).origin).parent for name in names}


# ---- What `_config.yml` and `_toc.yml` say of it ------------------------------------------------------------------------


def chapter_names() -> list[str]:
    """`part/chapter` of every book/PART/CHAPTER.md, in the order of `_toc.yml`; unlisted ones last, by
    name."""
    folder = paths.book_folder()
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.md"))
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
    below = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = [str(node["file"]).removesuffix(".md")] if isinstance(node, dict) and "file" in node else []
    return own + [name for each in below for name in _listed(each)]
