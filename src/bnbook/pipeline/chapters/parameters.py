"""The parameters of a chapter: read from its own `parameters` cell, overridden with names and types
checked."""

from __future__ import annotations

import ast
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from bnbook.errors import BnbookError
from bnbook.texts import parse_yaml, read_yaml

#: Bytes of a parameter file; YAML is read slowly, and a chapter has some tens of parameters.
LARGEST = 64 << 10


def read_cell(source: str, chapter: str) -> dict[str, Any]:
    """The names and literal defaults that a parameters cell assigns."""
    values: dict[str, Any] = {}
    try:
        nodes = ast.parse(source).body
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, before Python 3.12
        where = f"line {getattr(error, 'lineno', 1)} of its parameters cell"
        raise BnbookError(f"{chapter}: {where}: {getattr(error, 'msg', error)}") from None
    for node in nodes:
        simple = (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        )
        try:
            values[node.targets[0].id] = ast.literal_eval(node.value) if simple else _reject(chapter, node)
        except (ValueError, TypeError):
            _reject(chapter, node)
    return values


def override(defaults: dict[str, Any], changes: dict[str, Any], chapter: str) -> dict[str, Any]:
    """The defaults with `changes` applied; BnbookError for an unknown name or a value of the wrong type.

    Text is read by the default's type, so that `1e-3` is a number even where YAML made it a string.
    """
    result = dict(defaults)
    for name, value in changes.items():
        if name not in defaults:
            known = ", ".join(sorted(defaults))
            raise BnbookError(f"{chapter} has no parameter {name!r}; it has: {known}")
        result[name] = coerce(value, defaults[name], f"{chapter}: parameter {name}")
    return result


def coerce(value: Any, default: Any, what: str) -> Any:
    """`value` as the type of `default` (bool, int, float, str, or a list of one of these)."""
    wanted = type(default).__name__
    error = BnbookError(f"{what} is {value!r}; expected {wanted} like its default {default!r}")
    if isinstance(default, bool):
        words = {"true": True, "false": False}
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.strip().lower() in words:
            return words[value.strip().lower()]
        raise error
    if isinstance(default, (int, float)):
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise error
        if isinstance(default, int) and not isinstance(value, float):
            with suppress(ValueError):  # 1e3 is a whole number, too, but no float keeps 2**53 + 1
                return int(value)
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise error from None
        if not math.isfinite(number):
            raise error
        if isinstance(default, float):
            return number
        if not number.is_integer():
            raise error
        return int(number)
    if isinstance(default, list):
        try:
            items = parse_yaml(value, what) if isinstance(value, str) and value.lstrip()[:1] == "[" else value
        except BnbookError:
            raise error from None
        if isinstance(items, str):
            items = [part.strip() for part in items.split(",")]
        if not isinstance(items, list):
            items = [items]
        if not items:
            raise error
        return [coerce(item, default[0], what) for item in items] if default else items
    if isinstance(default, str):
        if isinstance(value, (list, dict, bool)) or value is None:
            raise error
        return str(value)
    raise error


def parse_assignments(pairs: list[str]) -> dict[str, str]:
    """`["lr=1e-3"]` -> `{"lr": "1e-3"}`, the `--set` options of the command line."""
    changes: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise BnbookError(
                f"--set {pair!r} is not of the form name=value; write for example --set steps=100"
            )
        changes[name.strip()] = value.strip()
    return changes


def read_file(path: str) -> dict[str, Any]:
    """The parameters of a `--params` YAML file."""
    try:
        size = Path(path).stat().st_size
        if size > LARGEST:
            raise BnbookError(f"--params {path} has {size >> 10} KiB; expected at most {LARGEST >> 10}")
        content = read_yaml(Path(path), f"--params {path}")
    except OSError as error:
        why = (error.strerror or "cannot be read").lower()
        raise BnbookError(f"--params {path}: {why}; expected a YAML file of name: value lines") from None
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise BnbookError(f"--params {path} holds no parameters; expected name: value lines")
    return content


def _reject(chapter: str, node: ast.AST) -> None:
    raise BnbookError(
        f"{chapter}: line {node.lineno} of its parameters cell is not `name = literal`; move other code "
        "to the next cell"
    )
