"""Names inside a definition: which of them it binds itself, and statements that reach into something else."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from bookpress.fingerprint.sources import Binding, Module, Sources, read_import

Scope = dict[str, Binding | None]  # names of one function or class; None: bound there, to no import
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound_in(body: Iterable[ast.AST], module: Module, sources: Sources) -> Scope:
    """Names that a function or class body binds itself, those of imports with what they stand for."""
    names: Scope = {}
    declared: set[str] = set()
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Global | ast.Nonlocal):
            declared.update(node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            inside = Module(module.name, module.package)
            read_import(node, inside)
            names |= {name: sources.resolve(*target) for name, target in inside.imports.items()}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            names.setdefault(node.id, None)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names[node.name] = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names[node.name] = None
            continue
        if isinstance(node, COMPREHENSIONS):  # only what is assigned by := leaves it
            waiting += [inner.target for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)
    return {name: bound for name, bound in names.items() if name not in declared}


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0].value if body and isinstance(body[0], ast.Expr) else None
    return body[1:] if isinstance(first, ast.Constant) and isinstance(first.value, str) else body


def patches(node: ast.stmt) -> bool:
    """Whether a statement reaches into something else: an assignment to an attribute or entry, or setattr."""
    targets = [each for inner in ast.walk(node) for each in _targets(inner)]
    called = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return any(isinstance(each, ast.Attribute | ast.Subscript) for each in targets) or any(
        isinstance(function, ast.Name) and function.id == "setattr" for function in called
    )


def _targets(node: ast.AST) -> list[ast.expr]:
    return (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AugAssign)
        else []
    )
