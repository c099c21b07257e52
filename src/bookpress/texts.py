"""Text and YAML that somebody has written: what cannot be read is one line that names the file; and tables for others."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from bookpress.errors import PressError

#: YAML is read in C where that is built: ten times as fast, but what is nested ten thousands deep ends the process.
_FAST: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Levels: as many as are read at all, and as many as anything here is made of.
READABLE, DEEPEST = 10_000, 100


class Unclear(yaml.constructor.ConstructorError):
    """YAML that does not mean what it looks like."""


class LOADER(_FAST):
    """YAML that means what it looks like: no name twice, no number that a leading zero makes octal."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        lines: dict[str, int] = {}
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            name, line = key.value, key.start_mark.line + 1
            if isinstance(name, str) and name != "<<":
                if name in lines:
                    words = f"{name!r} stands there and in line {lines[name]}; keep one of them"
                    raise Unclear(None, None, words, key.start_mark)
                lines[name] = line
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        if re.fullmatch(r"[-+]?0[0-7_]+", node.value):
            sign, digits = re.fullmatch("([-+]?)0[0_]*(.*)", node.value).groups()
            words = (
                f"{node.value} is octal to YAML, which reads {int(node.value, 8)}; write {sign}{digits or 0}"
            )
            raise Unclear(None, None, words, node.start_mark)
        return super().construct_yaml_int(node)


LOADER.add_constructor("tag:yaml.org,2002:int", LOADER.construct_yaml_int)
#: What a line of nested lists and keys begins with.
INDENT = re.compile(r"^[ \t?:-]*", re.M)
#: Words of the parser, in C and in Python, for the commonest slips -> what to do.
ADVICE = {
    "mapping values are not allowed": "put a text with a colon and a space into quotes, or mend the indentation",
    "did not find expected key": "begin it in the column of its neighbours, and mind quotes within quotes",
    "expected <block end>": "begin it in the column of its neighbours, and mind quotes within quotes",
    "tab character": "indent by spaces",
    "cannot start any token": "indent by spaces, not by a tab; put a text that begins with @, ` or % into quotes",
    "expected ',' or '}'": "put commas between entries, and close the brace",
    "expected ',' or ']'": "put commas between entries, and close the bracket",
    "unexpected end of stream": "close the quote or bracket",
    "unknown escape character": "put a text with a backslash into single quotes",
}
#: Values of a file, those that an alias repeats counted each time: a hundred times those of the longest file here.
LARGEST = 1_000_000


def read_text(path: Path, file: str, most: int | None = None) -> str:
    """The text of a file, no more than `most` characters of it; PressError for one that is missing or not UTF-8, which
    it calls `file`."""
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(most)
    except FileNotFoundError:
        raise PressError(f"no file {file}; expected it under {path.parent.name}/") from None
    except UnicodeDecodeError as error:
        raise PressError(f"{file} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    if text.startswith("\ufeff"):
        raise PressError(f"{file} begins with a byte order mark; save it as UTF-8 without one")
    return text


def read_yaml(path: Path, file: str) -> Any:
    """The content of a YAML file; PressError as `read_text` and `parse_yaml` say."""
    return parse_yaml(read_text(path, file), file)


def parse_yaml(text: str, file: str, loader: type = LOADER) -> Any:
    """The content of YAML; PressError for what is none, with its line where the parser knows it."""
    # no level is without a bracket of its own or a column of the deepest line; a list may stand right below its key
    most = text.count("[") + text.count("{") + 2 * max(map(len, INDENT.findall(text)))
    try:
        content = yaml.load(text, loader) if most <= READABLE else None
    except Exception as error:  # beside its own errors PyYAML lets through Python's, as for 2024-99-99
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = ":" if isinstance(error, Unclear) else " is not YAML:"
        problem = str(getattr(error, "problem", error))
        advice = next((f"; {do}" for words, do in ADVICE.items() if words in problem), "")
        raise PressError(f"{file}{line}{what} {problem}{advice}") from None
    if most > READABLE or not _within(content):
        raise PressError(
            f"{file} is nested more than {DEEPEST} levels deep, or repeats itself by aliases to more than "
            f"{LARGEST:,} values; write out what you mean"
        )
    return content


def _within(content: Any) -> bool:
    """Whether who walks through all of it, aliases and all, meets at most `LARGEST` values, none deeper than
    `DEEPEST`."""
    left, level = LARGEST, [content]
    for _ in range(DEEPEST + 1):
        left -= len(level)
        inner: list[Any] = []
        for value in level:
            inner += value.keys() if isinstance(value, dict) else ()
            inner += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            if len(inner) > left:
                return False
        level = inner
    return not level


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """A line each, the first of them the names of the columns."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
