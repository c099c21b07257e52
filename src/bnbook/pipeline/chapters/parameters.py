"""The parameters of a chapter, read from its own `parameters` cell, and what a command changes of them."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bnbook.errors import BnbookError
from bnbook.parameters import Kind, checked, kind, like
from bnbook.texts import read_yaml

#: Bytes of a parameter file; YAML is read slowly, and a chapter has some tens of parameters.
LARGEST = 64 << 10


def read_cell(source: str, chapter: str) -> tuple[dict[str, Any], dict[str, Kind]]:
    """The names and literal defaults that a parameters cell assigns, and what each may be."""
    values: dict[str, Any] = {}
    kinds: dict[str, Kind] = {}
    try:
        nodes = ast.parse(source).body
    except (SyntaxError, ValueError) as error:  # ValueError: a null byte, before Python 3.12
        where = f"line {getattr(error, 'lineno', 1)} of its parameters cell"
        raise BnbookError(f"{chapter}: {where}: {getattr(error, 'msg', error)}") from None
    for node in nodes:
        try:
            target = node.target if isinstance(node, ast.AnnAssign) else _only(node.targets)
            name, values[name] = target.id, ast.literal_eval(node.value)
        except (ValueError, TypeError, AttributeError):
            raise BnbookError(
                f"{chapter}: line {node.lineno} of its parameters cell is not `name: kind = literal`; move other "
                "code to the next cell"
            ) from None
        hint = node.annotation if isinstance(node, ast.AnnAssign) else None
        try:
            said = hint.value if isinstance(hint, ast.Constant) else ast.unparse(hint) if hint else None
            kinds[name] = kind(said) if said else like(values[name])
        except BnbookError as error:
            raise BnbookError(f"{chapter}: parameter {name}: {error}") from None
    return values, kinds


def with_values(source: str, values: Mapping[str, Any], beside: Mapping[str, Any] | None = None) -> str:
    """The source of a parameters cell that assigns these values in place of its own; `beside`: the book's, said
    in the comment where they differ."""
    lines = source.split("\n")
    for node in reversed(ast.parse(source).body):
        target = node.target if isinstance(node, ast.AnnAssign) else _only(node.targets)
        first, last, place = node.lineno - 1, node.end_lineno - 1, node.value
        own = ast.literal_eval(place)
        value, said = values.get(target.id, own), (beside or {}).get(target.id, own)
        comment = lines[last].encode()[place.end_col_offset :].decode()
        if beside and said != value and target.id != "profile":
            comment = f"{comment}; the book's run: {said!r}" if comment else f"  # the book's run: {said!r}"
        start = lines[place.lineno - 1].encode()[: place.col_offset].decode()
        lines[first : last + 1] = [f"{start}{_literal(value)}{comment}"]
    return "\n".join(lines)


def override(
    defaults: dict[str, Any], changes: dict[str, Any], chapter: str, kinds: Mapping[str, Kind] | None = None
) -> dict[str, Any]:
    """The defaults with `changes` applied; BnbookError for an unknown name, a value of the wrong type and one that
    does not go with the others."""
    kinds = kinds or {name: like(value) for name, value in defaults.items()}
    return checked(kinds, {**defaults, **changes}, chapter)


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


def _only(targets: list[ast.expr]) -> ast.expr:
    (target,) = targets
    return target


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
