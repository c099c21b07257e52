"""Where things lie: the repository root, chapters, runs, evidence and the built site."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from bookpress.errors import PressError

#: Variables that name a place.
PLACES = [f"BNBOOK_{place}" for place in "ROOT RUNS STORE CACHE EXECUTED BUILD DATA".split()]
#: What the book's folder in a user's cache is called: as its package, once that has told the press of itself.
cached_as = "bookpress"


def settle() -> None:
    """Make the places that the environment names those that they are here: a kernel works in a folder that
    goes away, and everything in it."""
    for name in PLACES:
        if os.environ.get(name):
            os.environ[name] = os.path.abspath(os.path.expanduser(os.environ[name]))


def repository_root() -> Path:
    """The folder that holds `_config.yml` and `book/`: BNBOOK_ROOT, else upwards from here, else from this
    package."""
    return _root(os.environ.get("BNBOOK_ROOT", ""), os.getcwd())


@lru_cache(maxsize=8)
def _root(named: str, here: str) -> Path:
    starts = [Path(here), Path(__file__).resolve().parent]
    tried = [Path(named)] if named else [folder for start in starts for folder in (start, *start.parents)]
    if found := next(filter(_is_of_the_press, tried), None):
        return found
    raise PressError(
        "no book found: expected a folder with book/ and a _config.yml that names its package, here or above; "
        "run the command inside the repository or set BNBOOK_ROOT to it"
    )


def _is_of_the_press(folder: Path) -> bool:
    """A Jupyter Book of somebody else's names no `package:`."""
    try:
        said = (folder / "_config.yml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return (folder / "book").is_dir() and re.search(r"^package:", said, re.M) is not None


def book_folder() -> Path:
    return repository_root() / "book"


def _named(place: str) -> Path | None:
    """Where the environment says that a place is."""
    named = os.environ.get(f"BNBOOK_{place}")
    return Path(named) if named else None


def runs_folder() -> Path:
    """Fresh runs, ignored by git; BNBOOK_RUNS names another place."""
    return _named("RUNS") or repository_root() / "runs"


def store_folder() -> Path:
    """The results store: finished trainings, one file each; BNBOOK_STORE names another place.

    Where there is no book, as for a notebook opened by itself, it is in the user's cache.
    """
    try:
        return _named("STORE") or runs_folder() / "store"
    except PressError:
        if os.environ.get("BNBOOK_ROOT"):
            raise
        return cache_folder() / "store"


def cache_folder() -> Path:
    """What a user keeps for all copies of this book; BNBOOK_CACHE names another place."""
    if named := _named("CACHE"):
        return named.expanduser()
    import platformdirs

    return platformdirs.user_cache_path(cached_as, False, opinion=False)


def executed_folder() -> Path:
    """Committed evidence; BNBOOK_EXECUTED names another place."""
    return _named("EXECUTED") or repository_root() / "executed"


def rewritten() -> Path:
    """See `bookpress.pipeline.chapter_runs.rewritten`."""
    return executed_folder() / "rewritten.json"


def require_named() -> None:
    """PressError where BNBOOK_EXECUTED names a folder that is not there."""
    if _named("EXECUTED") and not executed_folder().is_dir():
        raise PressError(f"BNBOOK_EXECUTED={executed_folder()}: no such folder; expected the evidence")


def trainings_folder() -> Path:
    """Committed trainings of chapters that take hours: entries of the results store."""
    return executed_folder() / "trainings"


def build_folder() -> Path:
    """Where the site is staged and rendered (html/); BNBOOK_BUILD names another place."""
    return _named("BUILD") or repository_root() / "_build"
