"""What no stamp sees is not written: no module that measures takes a form that cannot be followed by reading, and none
changes anything else when it is imported. What stands all the same is listed, and found again by the same rules.

`stamp.py` follows names. It does not see through these: a name that is bound twice, once by an import perhaps; what is
found by a text, or as a class's children; the other branch of a block for type checkers; a data file whose name is put
together. Nor does it see a call alone in a part that does not measure, one whose result is bound to a name that nothing
mentions, one in the body of a class or in a default, nor what a decorator does besides.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import bnbook
from bookpress.pipeline import chapters
from bookpress.stamp import Code, Module, idle, measures

SRC = Path(bnbook.__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
    for path in sorted(SRC.rglob("*.py"))
    if not path.name.startswith(("in_", "tools."))  # of a library or a tool, run apart from the package
}
CODE = Code()
#: Names that find what no name leads to, and what else opens a file.
FINDING = set("globals locals vars eval exec __import__".split())
FINDING_OF = set("import_module __subclasses__ __init_subclass__".split())
OPENING = set("__file__ open read_text read_bytes files joinpath with_name".split())
#: Rooms of which no number comes, though nothing exempts them.
ASIDE = ("report", "__main__")
#: What stands all the same.
FOLLOWED_ELSE = {
    "bnbook.data.identity": {"files", "joinpath", "read_text"},  # of known.yml, in full and beside it
    "bnbook.chapters.libraries": {"__file__"},  # its scripts; a run records what they say of themselves
    "bnbook.chapters.other_tools": {"__file__"},  # likewise
    "bnbook.probes.copies": {"vars"},  # the attributes of a stranger's network
}


def blind(source: str, name: str = "") -> set[str]:
    """What of a module (of a chapter's cells, where it has no name) no stamp sees through."""
    tree, module = ast.parse(source), CODE.take_apart(Module(name, name.rpartition(".")[0]), source)
    bound = Counter({each: len(nodes) for each, nodes in module.defined.items()})
    bound.update(module.imports.keys())
    found = {each for each, times in bound.items() if times > 1 and (name or each in module.imports)}
    opening = OPENING if name else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and idle(node) and node.orelse:
            found.add("else")
        elif isinstance(node, ast.Name):
            found |= {node.id} & (FINDING | FINDING_OF | opening)
        elif isinstance(node, ast.Attribute | ast.FunctionDef):
            found |= {node.attr if isinstance(node, ast.Attribute) else node.name} & (FINDING_OF | opening)
        if isinstance(node, ast.FunctionDef):
            inner = list(ast.walk(node))
            imports = (each.names for each in inner if isinstance(each, ast.Import | ast.ImportFrom))
            local = {alias.asname or alias.name.split(".")[0] for names in imports for alias in names}
            stored = {e.id for e in inner if isinstance(e, ast.Name) and isinstance(e.ctx, ast.Store)}
            found |= local & stored
    return found


def test_what_measures_can_be_followed_by_reading():
    names = [name for name in MODULES if measures(name) and f"{name}.".split(".")[1] not in ASIDE]
    found = {name: blind(MODULES[name], name) for name in names}
    found |= {each.name: blind("\n".join(each.code_cells)) for each in chapters.discover()}
    assert {name: rows for name, rows in found.items() if rows} == FOLLOWED_ELSE, "no stamp sees it change"


#: What stands in the packages; nothing of it reaches into what is measured.
STANDS = {
    "bookpress.pipeline": {"sys.modules.setdefault('rfc3987_syntax', None)"},  # a broken optional dependency
    "bookpress": {"end_with_parent()"},  # a worker's process
    # of a class of its own
    "bookpress.texts": {"LOADER.add_constructor('tag:yaml.org,2002:int', LOADER.construct_yaml_int)"},
    "bnbook.book": {"register(BOOK)"},  # what the press makes
    "bnbook.results": {"LISTENERS.append(record_data)"},  # which data a chapter loads goes into its results
}
#: By their last name: they give something back and change nothing.
DECORATORS = set(
    "dataclass property cached_property cache lru_cache staticmethod classmethod abstractmethod "
    "contextmanager no_grad inference_mode errstate model model_validator".split()
)
SETTERS = re.compile(
    r"set.+|.*seed|use|use_.*|update|.*patch.*|.*register.*|append|extend|add|pop|clear|remove|delattr|"
    r"exec|eval|__set\w+__|simplefilter|filterwarnings|enable.*|disable.*|import_module|__import__|reload"
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def on_import(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that runs when a module is imported: not the bodies of functions, nor type hints."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns") or isinstance(node, FUNCTIONS) and name == "body":
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST) and not (isinstance(each, ast.stmt) and idle(each)):
                yield from on_import(each)


def refused(source: str) -> set[str]:
    """What a module does on import that no stamp would see."""
    found = set()
    for node in on_import(ast.parse(source)):
        stored = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        called = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
        if stored or isinstance(node, ast.Expr) or SETTERS.fullmatch(called):
            found.add(ast.unparse(node))
        for decorator in getattr(node, "decorator_list", []):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(called).rpartition(".")[2] not in DECORATORS:
                found.add(f"@{ast.unparse(decorator)}")
    return found


def test_what_is_done_on_import_is_what_is_known():
    found = {name: rows for name, source in MODULES.items() if (rows := refused(source))}
    assert found == STANDS, "no stamp sees it: put it where it is called, or name it here"
