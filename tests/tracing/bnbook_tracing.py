"""Imported when a kernel starts: notes in BNBOOK_TRACES which functions of the package its chapter runs.

Each function of the package, and nothing else, is compiled with a first line that notes it: a profiler, even
the interpreter's own, costs a chapter three seconds, for it sees every call of every library. Files are named
as in the package, of which a run works on a copy.
"""

import ast
import atexit
import builtins
import json
import os
import sys
import threading
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

EVERY = 5.0  # seconds: a kernel may be killed before it says goodbye
FOLDER, CHAPTER = os.environ["BNBOOK_TRACES"], os.environ.get("BNBOOK_CHAPTER")
NOTE = "__bnbook_ran__"
PACKAGE = "bnbook"
ran: set[tuple[str, int]] = set()  # file in the package and line of a definition


class Noting(SourceFileLoader):
    """Compiles the package's sources with the notes, never from a cache."""

    def get_code(self, fullname: str) -> CodeType:
        path = Path(self.get_filename(fullname))
        place = path.as_posix().rpartition(f"/{PACKAGE}/")[2]
        return compile(noting(ast.parse(path.read_bytes()), place), str(path), "exec")


class Finder:
    """Finds the package's modules as the others would, and has them loaded with the notes."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> object:
        if name.partition(".")[0] != PACKAGE:
            return None
        others = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not cls)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = Noting(name, spec.loader.path)
        return spec


def noting(tree: ast.Module, path: str) -> ast.Module:
    """Every function begins with the note; a lambda takes the second of (note, its value)."""
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            after_docstring = int(ast.get_docstring(node, clean=False) is not None)
            node.body.insert(after_docstring, ast.Expr(_note(path, node.lineno)))
        elif isinstance(node, ast.Lambda):
            both = ast.Tuple([_note(path, node.lineno), node.body], ast.Load())
            node.body = ast.Subscript(both, ast.Constant(1), ast.Load())
    return ast.fix_missing_locations(tree)


def _note(path: str, line: int) -> ast.Call:
    return ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant((path, line))], [])


def write() -> None:
    path = os.path.join(FOLDER, f"{CHAPTER.replace('/', '--')}.{os.getpid()}.json")
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(sorted(ran), file)
    os.replace(f"{path}.new", path)


def write_now_and_then() -> None:
    while not threading.Event().wait(EVERY):
        write()


if CHAPTER:
    setattr(builtins, NOTE, ran.add)
    sys.meta_path.insert(0, Finder)
    threading.Thread(target=write_now_and_then, daemon=True).start()
    atexit.register(write)
