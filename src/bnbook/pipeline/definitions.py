"""Which definitions of the package a piece of code rests on: functions, classes and constants, not whole
modules.

So a new model or probe makes stale only what uses it. Where the reading of the code cannot tell which
definition is meant (a module passed on as a value, a star import), the whole module counts: too much, never
too little.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGE = "bnbook"
#: Recording, drawing, judging, storing and the pipeline pass results on and never make one; how data are
#: found and decoded is vouched for by their SHA-256. A change in these makes nothing stale.
NOT_MEASURING = (
    "bnbook.results",
    "bnbook.figures",
    "bnbook.plots",
    "bnbook.claims",
    "bnbook.pipeline",
    "bnbook.errors",
    "bnbook.paths",
    "bnbook.atomic",
    "bnbook.cli",
    "bnbook.runs",
    "bnbook.data.cache",
    "bnbook.data.download",
    "bnbook.data.folders",
    "bnbook.data.sources",
    "bnbook.data.progress",
    "bnbook.data.idx",
    "bnbook.data.batch_files",
)
#: The error bars and bands of every figure: they count in every chapter.
INTERVALS = "bnbook.claims.intervals"

#: A module, and the name of a definition in it; the empty name stands for the statements that define nothing,
#: which run whenever the module is imported.
Reference = tuple[str, str]


@dataclass
class Module:
    """The top level of a source file, taken apart."""

    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, Reference] = field(default_factory=dict)  # local name -> what it stands for
    loose: list[ast.stmt] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)


def take_apart(source: str, package: str) -> Module:
    """Definitions, imports and the remaining statements of a source text; `package` resolves relative
    imports."""
    module = Module()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _read_import(node, package, module)
        elif names := _defined(node):
            for name in names:
                module.definitions.setdefault(name, []).append(node)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            module.loose.append(node)
    for node in module.loose:  # an import under `if` or `try` binds a name of the module all the same
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Import, ast.ImportFrom)):
                _read_import(inner, package, module)
    return module


def closure(roots: Iterable[Reference]) -> dict[Reference, list[ast.stmt]]:
    """Everything in the package that the roots rest on, with its code; ("bnbook.x", "*") is a whole
    module."""
    queue, seen, found = list(roots), set(), {}
    while queue:
        reference = queue.pop()
        name, wanted = reference
        if reference in seen or left_out(name) or file_of(name) is None:
            continue
        seen.add(reference)
        module = _module(name)
        parent = name.rpartition(".")[0]
        queue += [(name, "")] + ([(parent, "")] if parent else [])
        if wanted == "*":
            queue += [(name, each) for each in module.definitions] + list(module.imports.values())
            queue += [(star, "*") for star in module.stars]
            continue
        nodes = module.loose if not wanted else module.definitions.get(wanted)
        if nodes is None:  # not defined here: passed on from elsewhere, or a submodule
            queue += _passed_on(name, module, wanted)
            continue
        if nodes:
            found[reference] = nodes
        queue += references(nodes, module, name)
    return found


def references(nodes: Iterable[ast.stmt], module: Module, name: str) -> Iterator[Reference]:
    """What of the package the nodes of module `name` mention."""
    package = _package(name)
    local = Module(imports=dict(module.imports))
    nodes = list(nodes)
    for node in nodes:
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Import, ast.ImportFrom)):
                _read_import(inner, package, local)
    yield from ((star, "*") for star in local.stars)
    inside: set[int] = (
        set()
    )  # parts of a dotted name that has been followed; ast.walk meets the whole of it first
    for node in nodes:
        for inner in ast.walk(node):
            if id(inner) in inside:
                continue
            if isinstance(inner, ast.Attribute):
                parts = _dotted(inner)
                if parts and parts[0] in local.imports and parts[0] not in module.definitions:
                    yield _follow(local.imports[parts[0]], parts[1:])
                    inside.update(id(part) for part in ast.walk(inner))
            elif isinstance(inner, ast.Name):
                if inner.id in module.definitions:
                    yield name, inner.id
                if inner.id in local.imports:
                    yield local.imports[inner.id]


def left_out(name: str) -> bool:
    """Whether a module only passes results on."""
    return name != INTERVALS and any(name == other or name.startswith(f"{other}.") for other in NOT_MEASURING)


@cache
def file_of(name: str) -> Path | None:
    """The source file of a module of the package, found without importing it; None for anything else."""
    if name.split(".")[0] != PACKAGE:
        return None
    root = Path(importlib.util.find_spec(PACKAGE).origin).parent
    relative = root.joinpath(*name.split(".")[1:])
    candidates = [relative / "__init__.py"] + ([relative.with_suffix(".py")] if relative != root else [])
    return next((path for path in candidates if path.is_file()), None)


@cache
def _module(name: str) -> Module:
    return take_apart(file_of(name).read_text(encoding="utf-8"), _package(name))


def _package(name: str) -> str:
    path = file_of(name)
    return name if path is None or path.name == "__init__.py" else name.rpartition(".")[0]


def _read_import(node: ast.Import | ast.ImportFrom, package: str, module: Module) -> None:
    """Names of the package only; a name of a module stands for the whole of it until an attribute says which
    part."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.split(".")[0] == PACKAGE:
                target = alias.name if alias.asname else PACKAGE
                module.imports[alias.asname or PACKAGE] = (target, "*")
        return
    base = node.module or ""
    if node.level:
        parents = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join(parents + ([node.module] if node.module else []))
    if base.split(".")[0] != PACKAGE:
        return
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(base)
        else:
            whole = file_of(f"{base}.{alias.name}") is not None
            module.imports[alias.asname or alias.name] = (
                (f"{base}.{alias.name}", "*") if whole else (base, alias.name)
            )


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return []


def _passed_on(name: str, module: Module, wanted: str) -> list[Reference]:
    if wanted in module.imports:
        return [module.imports[wanted]]
    if file_of(f"{name}.{wanted}") is not None:
        return [(f"{name}.{wanted}", "*")]
    return [(star, wanted) for star in module.stars]


def _follow(start: Reference, rest: list[str]) -> Reference:
    """The definition that a dotted name leads to."""
    name, wanted = start
    if wanted != "*":
        return start
    for part in rest:
        if file_of(f"{name}.{part}") is None or part in _module(name).definitions:
            return name, part
        name = f"{name}.{part}"
    return name, "*"


def _dotted(node: ast.AST) -> list[str] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return [node.id, *reversed(parts)] if isinstance(node, ast.Name) else None
