"""The statements of a chapter's cells: what each reads and binds, and what it calls."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass

from bnbook.pipeline.chapters.chapters import Chapter

CHANGES = ("append", "extend", "update", "setdefault", "add", "insert")


@dataclass(frozen=True)
class Statement:
    """A statement of a chapter's cell: its text, and the names that it reads and binds."""

    cell: int
    node: ast.stmt
    text: str
    reads: frozenset[str]
    binds: frozenset[str]


def statements(chapter: Chapter) -> tuple[Statement, ...]:
    """The top statements of the chapter's code cells, but the parameters."""
    return _of_cells(tuple(chapter.code_cells))


@functools.cache  # every figure of a chapter asks, on every page that shows it
def _of_cells(cells: tuple[str, ...]) -> tuple[Statement, ...]:
    found = []
    for number, source in enumerate(cells):
        rows = source.splitlines()
        for node in ast.parse(source).body:
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
            text = "\n".join(rows[first - 1 : node.end_lineno])
            found.append(Statement(number, node, text, frozenset(_read(node)), frozenset(_bound(node))))
    return tuple(found)


def calls(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))


def called(call: ast.Call) -> str:
    name = call.func
    return name.id if isinstance(name, ast.Name) else name.attr if isinstance(name, ast.Attribute) else ""


def _inner(node: ast.AST) -> set[str]:
    """Names that mean something inside the statement only: of its loops, comprehensions and functions."""
    held: list[ast.AST] = []
    for each in ast.walk(node):
        if isinstance(each, ast.For | ast.comprehension):
            held.append(each.target)
        elif isinstance(each, ast.FunctionDef):
            held += each.body
    names = {each.id for part in held for each in ast.walk(part) if _stored(each)}
    return names | {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}


def _stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _read(node: ast.AST) -> set[str]:
    named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not _stored(each)}
    return named - _inner(node)


def _bound(node: ast.stmt) -> set[str]:
    """Names that hold something else afterwards: bound, or changed by an entry or one of CHANGES."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    found = set()
    for each in ast.walk(node):
        if _stored(each):
            found.add(each.id)
        elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            found |= {name.id for name in ast.walk(each.value) if isinstance(name, ast.Name)}
        elif (
            isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGES
        ):
            found |= {name.id for name in ast.walk(each.func.value) if isinstance(name, ast.Name)}
    return found - _inner(node)
