"""What no stamp sees is not written: no module that measures takes a form that cannot be followed by reading, and none
changes anything else when it is imported.

`stamp.py` follows names. It does not see through these: a name that is bound twice, once by an
import perhaps; what is found by a text, or as a class's children; the other branch of a block for type
checkers; a data file whose name is put together. It sees every loose statement of a module that measures, and of any
other those that assign to an attribute or an entry; not a call alone in a part that does not measure, one whose result
is bound to a name that nothing mentions, one in the body of a class or in a default, nor what a decorator does besides.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import bnbook
from bookpress.pipeline import chapters
from bookpress.stamp import Code, Module, idle, measures

SRC = Path(bnbook.__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path.read_text(
        encoding="utf-8"
    )
    for path in sorted(SRC.rglob("*.py"))
    if not path.name.startswith(("in_", "tools."))  # of a library or a tool, run apart from the package
}

# Forms that cannot be followed

#: Names that find what no name leads to, and what else opens a file.
FINDING = set("globals locals vars eval exec __import__".split())
FINDING_OF = set("import_module __subclasses__ __init_subclass__".split())
OPENING = set("__file__ open read_text read_bytes files joinpath with_name".split())
#: Rooms of which no number comes, though nothing exempts them.
ASIDE = ("report", "__main__")
#: What stands all the same.
FOLLOWED_ELSE = {
    "bnbook.data.identity": {"files", "joinpath", "read_text"},  # of known.yml, in full and beside it
    "bnbook.chapters.libraries": {
        "__file__"
    },  # beside which its scripts lie; a run records what they say of themselves
    "bnbook.chapters.other_tools": {"__file__"},  # likewise
    "bnbook.probes.copies": {"vars"},  # the attributes of a stranger's network
}


def apart(source: str, name: str) -> Module:
    return Code().take_apart(Module(name, name.rpartition(".")[0]), source)


def blind(source: str, name: str = "") -> set[str]:
    """What of a module (of a chapter's cells, where it has no name) no stamp sees through."""
    tree, module = ast.parse(source), apart(source, name)
    bound = Counter({each: len(nodes) for each, nodes in module.defined.items()})
    bound.update(module.imports.keys())
    found = {each for each, times in bound.items() if times > 1 and (name or each in module.imports)}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and idle(node) and node.orelse:
            found.add("else")
        if isinstance(node, ast.Name):
            found |= {node.id} & (FINDING | FINDING_OF | (OPENING if name else set()))
        if isinstance(node, ast.Attribute | ast.FunctionDef):
            met = node.attr if isinstance(node, ast.Attribute) else node.name
            found |= {met} & (FINDING_OF | (OPENING if name else set()))
        if isinstance(node, ast.FunctionDef):
            inner = list(ast.walk(node))
            aliases = [
                a for each in inner if isinstance(each, ast.Import | ast.ImportFrom) for a in each.names
            ]
            imported = {alias.asname or alias.name.split(".")[0] for alias in aliases}
            names = [each for each in inner if isinstance(each, ast.Name)]
            found |= imported & {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return found


def test_what_measures_can_be_followed_by_reading() -> None:
    names = [name for name in MODULES if measures(name) and f"{name}.".split(".")[1] not in ASIDE]
    found = {name: blind(MODULES[name], name) for name in names}
    known = {name: rows for name, rows in FOLLOWED_ELSE.items() if name in MODULES}
    assert {name: rows for name, rows in found.items() if rows} == known, "no stamp sees it change"


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_cells_can_be_followed_by_reading(chapter: chapters.Chapter) -> None:
    assert blind("\n".join(chapter.code_cells)) == FOLLOWED_ELSE.get(chapter.name, set())


FORMS = {
    "from a import f\nf = cache(f)": {"f"},
    "A = 1\nB = A\nA += 1": {"A"},
    "def f():\n    from a import g\n    g = cache(g)\n    return g": {"g"},
    "def f():\n    return globals()['one']()": {"globals"},
    "class A:\n    def __init_subclass__(cls): pass": {"__init_subclass__"},
    "if TYPE_CHECKING:\n    pass\nelse:\n    A = 1": {"else"},
    "x = Path(__file__).with_name(f'{kind}.yml').read_text()": {"__file__", "with_name", "read_text"},
    # and these are free
    "from a import f\ng = cache(f)\nmodel.eval()": set(),
    "def f():\n    from a import g\n    h = g(1)\n    return h": set(),
    "if TYPE_CHECKING:\n    from a import f": set(),
}


@pytest.mark.parametrize("source", FORMS)
def test_a_planted_form_is_refused(source: str) -> None:
    assert blind(source, "bnbook.chapters.planted") == FORMS[source]


def test_a_cell_may_bind_its_own_names_again() -> None:
    assert blind("x = 1\nx = 2") == set() and blind("from a import f\nf = print(f) or f") == {"f"}


# What a module changes elsewhere on import

#: What stands in the packages; nothing of it reaches into what is measured.
STANDS = {
    "bookpress.pipeline": {"sys.modules.setdefault('rfc3987_syntax', None)"},  # a broken optional dependency
    "bookpress": {"end_with_parent()"},  # a worker's process
    "bookpress.texts": {
        "LOADER.add_constructor('tag:yaml.org,2002:int', LOADER.construct_yaml_int)"
    },  # of a class of its own
    "bnbook.book": {"register(BOOK)"},  # what the press makes
    "bnbook.results": {"LISTENERS.append(record_data)"},  # which data a chapter loads goes into its results
}
#: By their last name: they give something back and change nothing.
DECORATORS = set(
    "dataclass property cached_property cache lru_cache staticmethod classmethod abstractmethod "
    "contextmanager no_grad inference_mode errstate model model_validator".split()
)
SETTERS = re.compile(
    r"set.+|.*seed|use|use_.*|update|.*patch.*|.*register.*|append|extend|insert|add|pop|clear|remove|delattr|"
    r"exec|eval|__set\w+__|simplefilter|filterwarnings|enable.*|disable.*|import_module|__import__|reload"
)
PURE = {"np.insert"}
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


def refused(source: str, name: str) -> set[str]:
    """What a module does on import that no stamp would see."""
    tree, found = ast.parse(source), set()
    for node in on_import(tree):
        stored = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        if stored or isinstance(node, ast.Expr):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if SETTERS.fullmatch(called.rpartition(".")[2]) and called not in PURE:
                found.add(ast.unparse(node))
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", []):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if ast.unparse(called).rpartition(".")[2] not in DECORATORS:
                found.add(f"@{ast.unparse(decorator)}")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for local, place in apart(source, name).imports.items():
        if place.module.split(".")[0] not in ("bnbook", "bookpress", "__future__") and local not in used:
            found.add(f"import {'.'.join(filter(None, place))}")
    return found


def test_what_is_done_on_import_is_what_is_known():
    found = {name: rows for name, source in MODULES.items() if (rows := refused(source, name))}
    assert found == STANDS, "no stamp sees it: put it where it is called, or name it here"


PLANTED = {
    "torch.set_num_threads(4)": {"torch.set_num_threads(4)"},
    "_ = torch.manual_seed(1)": {"torch.manual_seed(1)"},
    "ROWS = [vars(np).update(max=min)]": {"vars(np).update(max=min)"},
    "class A:\n    torch.use_deterministic_algorithms(True)": {"torch.use_deterministic_algorithms(True)"},
    "class A:\n    np.max = min": {"np.max"},
    "del np.max": {"np.max"},
    "with torch.no_grad():\n    run()": {"run()"},
    "def f(x=np.random.seed(0)):\n    return x": {"np.random.seed(0)"},
    "def f():\n    @hook(np)\n    def g(): pass": {"@hook(np)"},
    "@torch.library.register_fake('a::b')\ndef f(): pass": {
        "@torch.library.register_fake('a::b')",
        "torch.library.register_fake('a::b')",
    },
    "import intel_extension": {"import intel_extension"},
    # and these are free
    "KINDS, EDGES = set('ab'), np.insert(row, 1, 2)": set(),
    "@dataclass(frozen=True)\nclass A:\n    x: int = field(default=1)": set(),
    "class A:\n    @property\n    def y(self): return 1": set(),
    "@torch.no_grad()\ndef f():\n    torch.manual_seed(0)\n    np.max = min": set(),
    "@functools.cache\ndef f(x: setattr(np, 'a', 1) = 1): pass": set(),
    'import os\nHERE = os.environ.get(\'A\')\n"""words"""': set(),
}


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_patch_is_refused(source: str):
    assert refused(source, "bookpress.results") == PLANTED[source]


def test_an_import_for_what_it_does_is_refused():
    assert refused("import scipy.special", "bnbook.probes.fisher") == {"import scipy"}
