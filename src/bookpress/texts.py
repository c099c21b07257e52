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

#: YAML is read in C where that is built: ten times as fast.
_FAST: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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


def read_text(path: Path, file: str) -> str:
    """The text of a file; PressError for one that is missing or not UTF-8, which it calls `file`."""
    try:
        text = path.read_text(encoding="utf-8")
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
    try:
        return yaml.load(text, loader)
    except Exception as error:  # beside its own errors PyYAML lets through Python's, as for 2024-99-99
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        what = ":" if isinstance(error, Unclear) else " is not YAML:"
        problem = str(getattr(error, "problem", error))
        advice = next((f"; {do}" for words, do in ADVICE.items() if words in problem), "")
        raise PressError(f"{file}{line}{what} {problem}{advice}") from None


def as_csv(rows: Iterable[Sequence[Any]]) -> str:
    """A line each, the first of them the names of the columns."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
