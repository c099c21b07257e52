"""What a result rests on, hashed: code cells, imported bnbook code, parameters, data; never comments, never
times."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from bnbook.pipeline.definitions import INTERVALS, Reference, closure, references, take_apart


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def normalised(source: str) -> str:
    """The code without comments, docstrings and layout, so that editing those makes nothing stale."""
    return _normalised(ast.parse(source))


def _normalised(tree: ast.AST) -> str:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body
            if (
                body
                and isinstance(body[0], ast.Expr)
                and isinstance(getattr(body[0], "value", None), ast.Constant)
                and isinstance(body[0].value.value, str)
            ):
                node.body = body[1:] or [ast.Pass()]
    return _dump(tree)


def _dump(node: Any) -> str:
    """A rendering of the syntax tree that is the same under every Python (ast.dump changed with 3.12 and
    3.13)."""
    if isinstance(node, ast.JoinedStr):  # 3.12 adds empty texts between the parts of an f-string
        node.values = [part for part in node.values if getattr(part, "value", None) != ""]
    if isinstance(node, list):
        return "[" + ",".join(map(_dump, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    inner = ",".join(f"{name}={_dump(value)}" for name, value in fields if name not in ("ctx", "kind"))
    return f"{type(node).__name__}({inner})"


def package_fingerprint(names: Iterable[str]) -> str:
    """SHA-256 over the normalised code that these rest on: "bnbook.x:name", a definition, or "bnbook.x", a
    module."""
    return _fingerprint(
        frozenset((name, wanted or "*") for name, _, wanted in (each.partition(":") for each in names))
    )


@cache  # sources are read once a process; each key of the store asks
def _fingerprint(roots: frozenset[Reference]) -> str:
    found = closure(roots)
    return digest(
        {f"{name}:{part}": [_normalised(node) for node in found[name, part]] for name, part in sorted(found)}
    )


def chapter_fingerprint(
    cells: list[str], parameters: dict[str, Any], data: list[dict[str, Any]]
) -> dict[str, str]:
    """The four hashes that decide freshness; cells: sources of the code cells without the parameters cell."""
    whole = take_apart("\n".join(cells), "")
    roots = {(star, "*") for star in whole.stars}
    for cell in cells:
        roots |= set(references(ast.parse(cell).body, whole, ""))
    return {
        "code": digest([normalised(cell) for cell in cells]),
        "package": _fingerprint(frozenset(roots | {(INTERVALS, "*")})),
        "parameters": digest(parameters),
        "data": data_digest(data),
    }


def data_digest(rows: list[dict[str, Any]]) -> str:
    return digest(sorted(json.dumps(row, sort_keys=True) for row in rows))
