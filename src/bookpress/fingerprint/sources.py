"""Source files taken apart: what each top-level name of a module is bound to."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bookpress.book import PRESS, book, folders

#: The press runs, records, judges and shows, and makes no number but these: a change in it makes nothing stale.
MEASURES = (f"{PRESS}.intervals",)


@dataclass(frozen=True)
class Definition:
    """A function, class or constant of the package that measures."""

    module: str
    name: str


@dataclass(frozen=True)
class Whole:
    """A module of the package, passed on as a value."""

    module: str


@dataclass(frozen=True)
class Outside:
    """Anything else by its full name: of another package, or of a part of this one that does not measure."""

    name: str


Binding = Definition | Whole | Outside


@dataclass
class Module:
    """The top level of a source file."""

    name: str
    package: str  # that relative imports start from
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # local name -> (module, name or "")
    stars: list[str] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)  # modules that an import runs, as written
    loose: list[ast.stmt] = field(default_factory=list)  # run on import and define nothing


class Sources:
    """The source files of the book's package under one folder, and of the press beside it or, where it is not
    there, as it is imported; a checkout of another commit has another folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.roots = folders()
        if root is not None:
            self.roots[book().package] = root
            beside = root.parent / PRESS
            self.roots[PRESS] = beside if beside.is_dir() else self.roots[PRESS]
        self._modules: dict[str, Module | None] = {}
        self._paths: dict[str, Path | None] = {}
        self._tables: dict[str, dict[str, str]] = {}

    def module(self, name: str) -> Module | None:
        """A module of the packages, taken apart; None for any other name."""
        if name not in self._modules:
            path = self.path(name)
            package = name if path is None or path.name == "__init__.py" else name.rpartition(".")[0]
            self._modules[name] = path and take_apart(self.read(path), name, package)
        return self._modules[name]

    def read(self, path: Path) -> str:
        return path.read_text(encoding="utf-8")

    def path(self, name: str) -> Path | None:
        """The file of a module of the packages."""
        first, *rest = name.split(".")
        if first not in self.roots:
            return None
        if name not in self._paths:
            folder = self.roots[first].joinpath(*rest)
            files = [folder / "__init__.py", folder.with_suffix(".py")] if rest else [folder / "__init__.py"]
            self._paths[name] = next((path for path in files if path.is_file()), None)
        return self._paths[name]

    def resolve(self, module: str, name: str) -> Binding:
        """What `module.name` stands for, followed through every module that only passes it on."""
        if not name:
            return Whole(module) if self.path(module) and measures(module) else Outside(module)
        found = self.module(module)
        if found is None:
            return Outside(f"{module}.{name}")
        if name in found.definitions:
            aside = self.aside(module, name)
            return Outside(aside) if aside else Definition(module, name)
        if name in found.imports and found.imports[name] != (
            module,
            name,
        ):  # else a package's import of its own part
            return self.resolve(*found.imports[name])
        if self.path(f"{module}.{name}"):
            return self.resolve(f"{module}.{name}", "")
        for star in found.stars:
            bound = self.resolve(star, name)
            if not isinstance(bound, Outside) or self.module(star) is None:
                return bound
        # Not to be found by reading (a module-level __getattr__): the whole module counts.
        return Whole(module) if measures(module) else Outside(f"{book().package}:{name}")

    def aside(self, module: str, name: str) -> str:
        """What stamps call a definition of which no result comes; empty for one that measures. Of a chapter's module,
        a function that returns a figure is one, and what the tables of the chapters' package name."""
        if not measures(module):
            return f"{book().package}:{name}"
        chapter = module.removeprefix(f"{book().package}.chapters.")
        if chapter == module:
            return ""
        hints = [getattr(node, "returns", None) for node in self.module(module).definitions[name]]
        figure = any(hint is not None and "Figure" in ast.unparse(hint) for hint in hints)
        if not figure and name not in self.table("ASIDE").get(chapter, "").split():
            return ""
        lay = self.table("LAY")
        place = lay.get(f"{chapter}.{name}") or lay.get(chapter)
        return f"{book().package}.{place}.{name}" if place else f"{book().package}:{name}"

    def table(self, name: str) -> dict[str, str]:
        """A table of the chapters, read without importing it."""
        if name not in self._tables:
            module = self.module(f"{book().package}.chapters")
            nodes = module.definitions.get(name, []) if module else []
            self._tables[name] = ast.literal_eval(nodes[0].value) if nodes else {}
        return self._tables[name]

    def imported(self, module: Module) -> list[str]:
        """Modules of the package that run when this one does, itself and the packages around it left out."""
        found = {name for name, _ in module.imports.values()} | module.runs | set(module.stars)
        found |= {f"{name}.{part}" for name, part in module.imports.values() if part}
        return sorted(name for name in found if self.path(name))


def take_apart(source: str, name: str, package: str) -> Module:
    """Definitions, imports and loose statements of a source text."""
    module = Module(name, package)
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            read_import(node, module)
        elif names := _defined(node):
            for each in names:
                module.definitions.setdefault(each, []).append(node)
        elif not _idle(node):
            module.loose.append(node)
            for inner in ast.walk(
                node
            ):  # an import under `if` or `try` binds a name of the module all the same
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    read_import(inner, module)
    ours = (book().package, PRESS)
    others = (
        {}
        if name.split(".")[0] not in ours
        else {
            local: (target, part)
            for local, (target, part) in module.imports.items()
            if target.split(".")[0] not in ours and target != "__future__"
        }
    )
    unused = _unused(tree, others)
    for local, (target, part) in others.items():
        if local in unused:
            module.loose.append(ast.parse(f"import {target}.{part}" if part else f"import {target}").body[0])
    return module


def _unused(tree: ast.AST, names: Iterable[str]) -> set[str]:
    """Those of the names that stand nowhere in a tree; most are found in the first function that is met."""
    left, waiting = set(names), [tree]
    while left and waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name):
            left.discard(node.id)
        waiting += ast.iter_child_nodes(node)
    return left


def read_import(node: ast.Import | ast.ImportFrom, module: Module) -> None:
    """The names that an import binds, into `module.imports` and `module.stars`."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            module.runs.add(alias.name)
            target = alias.name if alias.asname else alias.name.split(".")[0]
            module.imports[alias.asname or target] = (target, "")
        return
    base = node.module or ""
    if node.level:
        parents = module.package.split(".")[: len(module.package.split(".")) - node.level + 1]
        base = ".".join([*parents, *([node.module] if node.module else [])])
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(base)
        else:
            module.imports[alias.asname or alias.name] = (base, alias.name)


@cache
def measures(name: str) -> bool:
    """Whether a change in a module can change a result."""
    package, _, inner = name.partition(".")
    if package == PRESS:
        return name in MEASURES
    return not any(inner == other or inner.startswith(f"{other}.") for other in book().not_measuring)


def _defined(node: ast.stmt) -> list[str]:
    """Top-level names that a statement binds; none where it also changes something else (an attribute, an
    entry)."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    flat = [
        each for target in targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    return [each.id for each in flat] if all(isinstance(each, ast.Name) for each in flat) else []


def _idle(node: ast.stmt) -> bool:
    """Whether a statement does nothing on import: a docstring, a block for type checkers or for `python
    -m`."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'")
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
