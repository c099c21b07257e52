"""Text and YAML that somebody has written: what cannot be read is one line that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bookpress.errors import BnbookError

#: The same loader in C, for what is long; what is nested ten thousands deep ends the process.
FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Values of a file, those that an alias repeats counted each time: a hundred times those of the longest file here.
LARGEST = 1_000_000


def read_text(path: Path, file: str) -> str:
    """The text of a file; BnbookError for one that is missing or not UTF-8, which it calls `file`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BnbookError(f"no file {file}; expected it under {path.parent.name}/") from None
    except UnicodeDecodeError as error:
        raise BnbookError(f"{file} is not UTF-8 (byte {error.start}); save it as UTF-8") from None


def read_yaml(path: Path, file: str) -> Any:
    """The content of a YAML file; BnbookError as `read_text` and `parse_yaml` say."""
    return parse_yaml(read_text(path, file), file)


def parse_yaml(text: str, file: str, loader: type = yaml.SafeLoader) -> Any:
    """The content of YAML; BnbookError for what is none, with its line where the parser knows it."""
    try:
        content = yaml.load(text, loader)
    except Exception as error:  # beside its own errors PyYAML lets through Python's, as for 2024-99-99
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise BnbookError(f"{file}{line} is not YAML: {getattr(error, 'problem', error)}") from None
    if not _within(content, LARGEST):
        raise BnbookError(
            f"{file} repeats itself by aliases to more than {LARGEST:,} values; write out what you mean"
        )
    return content


def _within(content: Any, largest: int) -> bool:
    """Whether who walks through all of it, aliases and all, meets at most so many values."""
    left, waiting = largest, [content]
    while waiting and left >= 0:
        value = waiting.pop()
        inner = (
            [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
        )
        left -= 1
        if len(inner) > left:
            return False
        waiting += inner
    return left >= 0
