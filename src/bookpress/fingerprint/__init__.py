"""What a result rests on, hashed: code, parameters and data; never comments, times, or where a definition
stands.

sources: files taken apart · closure: what code rests on, as text · here: the hashes that decide whether
evidence is fresh.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from bookpress.book import book
from bookpress.fingerprint.closure import Closure
from bookpress.fingerprint.sources import Definition, Sources, take_apart

#: What the book calls its table: class of an arm -> the function that trains it. An arm is trained by the press,
#: which does not measure, but what it is trained with does.
TABLE = "TRAINS"
#: The bands of every figure: drawing does not measure, but this does.
BANDS = ("bookpress.intervals", "mean_and_interval")


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def code_of(*names: str, last: tuple[str, ...] = (), sources: Sources | None = None) -> str:
    """SHA-256 of definitions of the package ("package.x:name") and of all that they rest on; those of `last`
    change nothing where they are met anyhow."""
    return _code_of(names, last, sources or _sources())


def chapter_fingerprint(
    cells: Sequence[str],
    parameters: dict[str, Any],
    data: list[dict[str, Any]],
    sources: Sources | None = None,
) -> dict[str, str]:
    """The four hashes that decide freshness; cells: sources of the code cells without the parameters cell."""
    closure, code = read_cells(cells, sources)
    closure.follow(closure.sources.resolve(*BANDS))
    closure.finish()
    return {
        "code": digest(code),
        "package": digest([closure.texts, closure.loose()]),
        "parameters": digest(parameters),
        "data": data_digest(data),
    }


def read_cells(
    cells: Sequence[str], sources: Sources | None = None, trains: dict[str, str] | None = None
) -> tuple[Closure, str]:
    """The text of a chapter's code, and the closure of all that it rests on."""
    sources = sources or _sources()
    closure = Closure(sources, trains if trains is not None else trainers(sources))
    source = "\n".join(cells)
    return closure, closure.read(ast.parse(source).body, take_apart(source, "", ""))


def definitions(closure: Closure) -> set[str]:
    """What was met, as "module:name"."""
    return {f"{each.module}:{each.name}" for each in closure.numbers if isinstance(each, Definition)}


def data_digest(rows: Iterable[dict[str, Any]]) -> str:
    return digest(sorted(json.dumps(row, sort_keys=True) for row in rows))


def trainers(sources: Sources) -> dict[str, str]:
    """The book's table, read without importing it."""
    module = sources.module(book().trainings_module)
    nodes = module.definitions.get(TABLE, []) if module else []
    return {name: trainer for node in nodes for name, trainer in ast.literal_eval(node.value).items()}


def forget() -> None:
    """Read the sources anew from now on: they may have changed on disk."""
    _sources.cache_clear()
    _code_of.cache_clear()


@cache
def _sources() -> Sources:
    return Sources()


@cache
def _code_of(names: tuple[str, ...], last: tuple[str, ...], sources: Sources) -> str:
    closure = Closure(sources, trainers(sources))
    for group in (names, last):
        for name in group:
            closure.follow(sources.resolve(*name.split(":")))
        closure.finish()
    return digest([closure.texts, closure.loose()])
