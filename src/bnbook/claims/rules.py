"""The rules that turn numbers into verdicts, hashed: a run notes them, so that a later change is named."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from bnbook.fingerprint import digest

START = "bnbook.claims.judging"
#: What only words tests, effects, verdicts or complaints: modules, and methods of the kinds of test.
WORDS = {"errors", "claims.directions", "claims.scope", "claims.units", "claims.words"}
WORDING = ("asks", "effect", "words")


@cache
def judging_rules() -> str:
    """SHA-256 of the modules that compute a verdict, without comments, docstrings and layout."""
    found: dict[str, str] = {}
    waiting = [START]
    while waiting:
        name = waiting.pop()
        if name in found or name.removeprefix("bnbook.") in WORDS or not (path := _file(name)):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        waiting += _imports(tree)
        found[name] = ast.unparse(_Bare().visit(tree))
    return digest(sorted(found.items()))


def _file(name: str) -> Path | None:
    """The file of a module of the package; a package only passes names on."""
    spec = find_spec(name)
    return Path(spec.origin) if spec and spec.origin and not spec.submodule_search_locations else None


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bnbook"):
            yield node.module
            own = (each.name for each in node.names)
            yield from (f"{node.module}.{name}" for name in own if _is_module(node.module, name))


def _is_module(package: str, name: str) -> bool:
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec else None
    return any((Path(folder) / f"{name}.py").is_file() for folder in folders or ())


class _Bare(ast.NodeTransformer):
    """Takes docstrings and what words a kind of test away."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        methods = (ast.FunctionDef, ast.AsyncFunctionDef)
        node.body = [each for each in node.body if not (isinstance(each, methods) and each.name in WORDING)]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node
