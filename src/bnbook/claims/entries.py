"""What the files of claims, errata and coverage have in common: entries, and complaints that take one line
each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from bnbook.claims.claim import Source
from bnbook.errors import BnbookError
from bnbook.texts import FAST, parse_yaml, read_text


def read_yaml(path: Path, file: str) -> Any:
    """The content of a YAML file; BnbookError for one that is missing or no YAML, which it calls `file`."""
    return _parse(read_text(path, file), file)


@lru_cache(maxsize=64)  # by content: one command asks many times, and an edited file is another key
def _parse(text: str, file: str) -> Any:
    return parse_yaml(text, file, FAST)


def require_once(ids: Iterable[str], file: str, one: str) -> None:
    """BnbookError for the first id that comes a second time."""
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise BnbookError(f"{file}: {one} {name} appears twice; expected every id once")
        seen.add(name)


class Entry:
    """One entry of a file, with the words that every complaint about it starts with."""

    def __init__(self, file: str, content: Any, number: int, what: str) -> None:
        self.where = f"{file}: {what} number {number}"
        self.entry = self._mapping(content, f"the {what}")
        self._named, self._file = what, file

    def _name(self, pattern: Any) -> str:
        """The entry's id; from here on complaints name it."""
        name = self.entry.get("id")
        if not isinstance(name, str) or not pattern.fullmatch(name):
            self._fail(f"id {name!r} is malformed", "lower-case words joined by hyphens")
        self.where = f"{self._file}: {self._named} {name}"
        return name

    def _source(self, content: Any) -> Source:
        content = self._mapping(content, "source")
        self._keys(content, ("key", "version", "where"), (), "source")
        return Source(*(self._text(content, key) for key in ("key", "version", "where")))

    def _text(self, content: Mapping, key: str) -> str:
        value = content[key]
        if not isinstance(value, str) or not value.strip():
            self._fail(f"{key} is {value!r}", "a line of text")
        return " ".join(value.split())

    def _formulas(self, content: Mapping, key: str) -> str:
        """A line of text that may hold $formulas$."""
        text = self._text(content, key)
        if any(ord(character) < 32 for character in content[key].strip()):
            # "\tilde" in double quotes begins with a tab
            self._fail(
                f"{key} has a backslash that YAML read as an escape, or a line break",
                "formulas in single quotes",
            )
        if text.replace("\\$", "").count("$") % 2:
            self._fail(f"{key} has a formula that does not end", "a $ before and after each formula")
        return text

    def _mapping(self, content: Any, what: str) -> Mapping:
        if not isinstance(content, Mapping):
            self._fail(f"{what} is {type(content).__name__}", "keys with values")
        return content

    def _keys(self, content: Mapping, needed: tuple[str, ...], optional: tuple[str, ...], what: str) -> None:
        missing = [key for key in needed if key not in content]
        unknown = [str(key) for key in content if key not in needed and key not in optional]
        expected = f"keys {', '.join(needed)}" + (f"; optional {', '.join(optional)}" if optional else "")
        if missing:
            self._fail(f"{what} lacks {', '.join(missing)}", expected)
        if unknown:
            self._fail(f"{what} has unknown key {', '.join(unknown)}", expected)

    def _fail(self, wrong: str, expected: str) -> NoReturn:
        raise BnbookError(f"{self.where}: {wrong}; expected {expected}")
