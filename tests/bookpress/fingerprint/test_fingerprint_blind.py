"""What measures is written in no way that its stamp cannot follow by reading.

`fingerprint/closure.py` follows names. It does not see through these: a name that is bound twice, once by an
import perhaps; what is found by a text, or as a class's children; the other branch of a block for type
checkers; a data file whose name is put together. Decorators that register and tables that are filled on
import, in whatever order, are refused in test_patches_on_import.py.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

import bnbook
from bookpress.fingerprint.sources import _idle, measures, take_apart
from bookpress.pipeline import chapters

SRC = Path(bnbook.__file__).parent
#: Names that find what no name leads to, and what else opens a file.
FINDING = set("globals locals vars eval exec __import__".split())
FINDING_OF = set("import_module __subclasses__ __init_subclass__".split())
OPENING = set("__file__ open read_text read_bytes files joinpath with_name".split())
#: Rooms of which no number comes, though nothing exempts them.
ASIDE = ("report", "__main__")
#: What stands all the same.
STANDS = {
    "bnbook.data.identity": {"files", "joinpath", "read_text"},  # of known.yml, in full and beside it
    "bnbook.chapters.deep_linear": {"SLOW"},  # added to in the next line
}


def blind(source: str, name: str = "") -> set[str]:
    """What of a module (of a chapter's cells, where it has no name) no stamp sees through."""
    tree, module = ast.parse(source), take_apart(source, name, name.rpartition(".")[0])
    bound = Counter({each: len(nodes) for each, nodes in module.definitions.items()})
    bound.update(module.imports.keys())
    found = {each for each, times in bound.items() if times > 1 and (name or each in module.imports)}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _idle(node) and node.orelse:
            found.add("else")
        if isinstance(node, ast.Name):
            found |= {node.id} & (FINDING | FINDING_OF | (OPENING if name else set()))
        if isinstance(node, ast.Attribute | ast.FunctionDef):
            met = node.attr if isinstance(node, ast.Attribute) else node.name
            found |= {met} & (FINDING_OF | (OPENING if name else set()))
        if isinstance(node, ast.FunctionDef):
            imported = {
                alias.asname or alias.name.split(".")[0]
                for each in ast.walk(node)
                if isinstance(each, ast.Import | ast.ImportFrom)
                for alias in each.names
            }
            stored = (
                each.id
                for each in ast.walk(node)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            )
            found |= imported & set(stored)
    return found


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SRC.parent).with_suffix("").parts).removesuffix(".__init__")


def test_what_measures_can_be_followed_by_reading() -> None:
    names = {_name(path): path for path in sorted(SRC.parent.rglob("*.py"))}
    names = {name: path for name, path in names.items() if measures(name)}
    found = {
        name: blind(path.read_text(encoding="utf-8"), name)
        for name, path in names.items()
        if f"{name}.".split(".")[1] not in ASIDE
    }
    assert {name: rows for name, rows in found.items() if rows} == STANDS, "no stamp sees it change"


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_cells_can_be_followed_by_reading(chapter: chapters.Chapter) -> None:
    assert blind("\n".join(chapter.code_cells)) == set()


PLANTED = {
    "from a import f\nf = cache(f)": {"f"},
    "A = 1\nB = A\nA += 1": {"A"},
    "def f():\n    from a import g\n    g = cache(g)\n    return g": {"g"},
    "def f():\n    return globals()['one']()": {"globals"},
    "import importlib\nx = importlib.import_module('a')": {"import_module"},
    "class A:\n    def __init_subclass__(cls): pass": {"__init_subclass__"},
    "x = A.__subclasses__()": {"__subclasses__"},
    "if TYPE_CHECKING:\n    pass\nelse:\n    A = 1": {"else"},
    "x = Path(__file__).with_name(f'{kind}.yml').read_text()": {"__file__", "with_name", "read_text"},
    # and these are free
    "from a import f\ng = cache(f)\nmodel.eval()": set(),
    "def f():\n    from a import g\n    h = g(1)\n    return h": set(),
    "if TYPE_CHECKING:\n    from a import f": set(),
}


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_form_is_refused(source: str) -> None:
    assert blind(source, "bnbook.chapters.planted") == PLANTED[source]


def test_a_cell_may_bind_its_own_names_again() -> None:
    assert blind("x = 1\nx = 2") == set() and blind("from a import f\nf = print(f) or f") == {"f"}
