"""No module changes anything else when it is imported, in a way that the chapters' stamps do not see.

They see every loose statement of a module that measures, and of any other those that assign to an attribute
or an entry. They do not see a call alone in a part that does not measure, one whose result is bound to a name
that nothing mentions, one in the body of a class or in a default, nor what a decorator does besides. These
are refused here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bnbook
from bookpress.fingerprint.sources import _idle, measures, take_apart

SRC = Path(bnbook.__file__).parents[1]
#: What stands in the packages; nothing of it reaches into what is measured.
STANDS = {
    "bookpress.pipeline": {"sys.modules.setdefault('rfc3987_syntax', None)"},  # a broken optional dependency
    "bookpress.pipeline.prose": {"_Strict.yaml_implicit_resolvers"},  # of a class of its own
    "bookpress.site.board": {
        "rendering.add(forest=forest, deciding=deciding, standing=standing)"
    },  # of templates
    "bookpress.site.claim_pages": {"rendering.add(met=_met, marks_of_test=_marks)"},
    "bookpress.site.exports": {"rendering.add(line=_line, asked=_asked, of=lambda name, known: known[name])"},
    "bookpress.site.pages": {
        "rendering.add(tally=chapter_runs.tally, seeds=_seed_words, most_seeds=_most_seeds, "
        "not_as_locked=gate.not_as_locked)"
    },
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
            if isinstance(each, ast.AST) and not (isinstance(each, ast.stmt) and _idle(each)):
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
    if not measures(name):
        package = name.rpartition(".")[0]
        found |= {ast.unparse(each) for each in take_apart(source, name, package).loose if _is_import(each)}
    return found


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


MODULES = {_name(path): path for path in sorted(SRC.rglob("*.py"))}


def test_what_is_done_on_import_is_what_is_known():
    found = {name: refused(path.read_text(encoding="utf-8"), name) for name, path in MODULES.items()}
    found = {name: rows for name, rows in found.items() if rows}
    assert found == STANDS, "no stamp sees it: put it where it is called, or name it here"


PLANTED = {
    "torch.set_num_threads(4)": {"torch.set_num_threads(4)"},
    "_ = torch.manual_seed(1)": {"torch.manual_seed(1)"},
    "OLD: dict = np.seterr(all='ignore')": {"np.seterr(all='ignore')"},
    "ON, OFF = 1, setattr(np, 'max', min)": {"setattr(np, 'max', min)"},
    "ROWS = [vars(np).update(max=min)]": {"vars(np).update(max=min)"},
    "class A:\n    torch.use_deterministic_algorithms(True)": {"torch.use_deterministic_algorithms(True)"},
    "class A:\n    np.max = min": {"np.max"},
    "if SLOW:\n    np.max = min": {"np.max"},
    "for np.max in (min,):\n    pass": {"np.max"},
    "del np.max": {"np.max"},
    "with torch.no_grad():\n    run()": {"run()"},
    "def f(x=np.random.seed(0)):\n    return x": {"np.random.seed(0)"},
    "f = lambda x=random.seed(0): x": {"random.seed(0)"},
    "def f():\n    @hook(np)\n    def g(): pass": {"@hook(np)"},
    "@torch.library.register_fake('a::b')\ndef f(): pass": {
        "@torch.library.register_fake('a::b')",
        "torch.library.register_fake('a::b')",
    },
    "import intel_extension": {"import intel_extension"},
    "from patches import np": {"import patches.np"},
    # and these are free
    "KINDS, EDGES = set('ab'), np.insert(row, 1, 2)": set(),
    "@dataclass(frozen=True)\nclass A:\n    x: int = field(default=1)": set(),
    "class A:\n    @property\n    def y(self): return 1": set(),
    "@torch.no_grad()\ndef f():\n    torch.manual_seed(0)\n    np.max = min": set(),
    "@functools.cache\ndef f(x: setattr(np, 'a', 1) = 1): pass": set(),
    'import os\nHERE = os.environ.get(\'A\')\n"""words"""': set(),
    "if __name__ == '__main__':\n    main()": set(),
}


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_patch_is_refused(source: str):
    assert refused(source, "bookpress.results") == PLANTED[source]


def test_an_import_for_what_it_does_is_refused_where_no_stamp_sees_it():
    assert refused("import scipy.special", "bnbook.plots.panels") == {"import scipy"}
    assert refused("import scipy.special", "bnbook.probes.fisher") == set()
