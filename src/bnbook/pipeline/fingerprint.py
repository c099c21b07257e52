"""What a result rests on, hashed: code cells, imported bnbook code, parameters, data; never comments, never times."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

PACKAGE = "bnbook"
#: Recording, drawing, judging, storing and the pipeline pass results on and never make one; how data are found and
#: decoded is vouched for by their SHA-256. A change in these makes nothing stale.
NOT_MEASURING = (
    "bnbook.results", "bnbook.figures", "bnbook.claims", "bnbook.pipeline", "bnbook.errors", "bnbook.paths",
    "bnbook.atomic", "bnbook.cli", "bnbook.training.progress", "bnbook.training.store", "bnbook.training.worker",
    "bnbook.data.cache", "bnbook.data.download", "bnbook.data.folders", "bnbook.data.sources",
    "bnbook.data.progress", "bnbook.data.idx", "bnbook.data.batch_files",
)  # fmt: skip

#: The error bars and bands of every figure: they count in every chapter.
INTERVALS = "bnbook.claims.intervals"


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def normalised(source: str) -> str:
    """The code without comments, docstrings and layout, so that editing those makes nothing stale."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body
            if body and isinstance(body[0], ast.Expr) and isinstance(getattr(body[0], "value", None), ast.Constant):
                if isinstance(body[0].value.value, str):
                    node.body = body[1:] or [ast.Pass()]
    return _dump(tree)


def _dump(node: Any) -> str:
    """A rendering of the syntax tree that is the same under every Python (ast.dump changed with 3.12 and 3.13)."""
    if isinstance(node, ast.JoinedStr):  # 3.12 adds empty texts between the parts of an f-string
        node.values = [part for part in node.values if getattr(part, "value", None) != ""]
    if isinstance(node, list):
        return "[" + ",".join(map(_dump, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
    inner = ",".join(f"{name}={_dump(value)}" for name, value in fields if name not in ("ctx", "kind"))
    return f"{type(node).__name__}({inner})"


def imported_modules(source: str, *, package: str = "") -> set[str]:
    """Names of the bnbook modules that a piece of code imports, at any depth of nesting, relative imports resolved."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(parents + ([node.module] if node.module else []))
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return {name for name in found if name.split(".")[0] == PACKAGE and _file_of(name) is not None}


def package_modules(names: Iterable[str]) -> list[str]:
    """The transitive closure of the named bnbook modules, without those that only record, draw or judge."""
    queue, closure = list(names), set()
    while queue:
        name = queue.pop()
        if name in closure or _left_out(name):
            continue
        path = _file_of(name)
        if path is None:
            continue
        closure.add(name)
        parent = name.rpartition(".")[0]
        if parent:
            queue.append(parent)
        package = name if path.name == "__init__.py" else parent
        queue.extend(imported_modules(path.read_text(encoding="utf-8"), package=package))
    return sorted(closure)


def package_fingerprint(names: Iterable[str]) -> str:
    """SHA-256 over the normalised code of the named bnbook modules and of all that they import from bnbook."""
    return digest({name: _module_digest(_file_of(name)) for name in package_modules(names) if name != PACKAGE})


def chapter_fingerprint(cells: list[str], parameters: dict[str, Any], data: list[dict[str, Any]]) -> dict[str, str]:
    """The four hashes that decide freshness; cells: sources of the code cells without the parameters cell."""
    modules = set().union(*(imported_modules(cell) for cell in cells)) if cells else set()
    return {
        "code": digest([normalised(cell) for cell in cells]),
        "package": package_fingerprint(modules | {INTERVALS}),
        "parameters": digest(parameters),
        "data": data_digest(data),
    }


def data_digest(rows: list[dict[str, Any]]) -> str:
    return digest(sorted(json.dumps(row, sort_keys=True) for row in rows))


def _left_out(name: str) -> bool:
    return name != INTERVALS and any(name == other or name.startswith(f"{other}.") for other in NOT_MEASURING)


@lru_cache(maxsize=None)
def _file_of(name: str) -> Path | None:
    """The source file of a bnbook module, found without importing it."""
    root = Path(importlib.util.find_spec(PACKAGE).origin).parent
    relative = Path(*name.split(".")[1:]) if "." in name else Path()
    for candidate in ((root / relative).with_suffix(".py"), root / relative / "__init__.py"):
        if candidate.is_file() and (relative != Path() or candidate.name == "__init__.py"):
            return candidate
    return None


def _module_digest(path: Path) -> str:
    return hashlib.sha256(normalised(path.read_text(encoding="utf-8")).encode("utf-8")).hexdigest()
