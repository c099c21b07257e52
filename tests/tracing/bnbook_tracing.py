"""Imported when a kernel starts: notes in BNBOOK_TRACES which functions of the package its chapter runs.

Each function of the package, and nothing else, is compiled with a first line that notes it: a profiler, even
the interpreter's own, costs a chapter three seconds, for it sees every call of every library. A run's witness
compiles the package from its source anyhow (src/bnbook/pipeline/execution/witness.py).
"""

import ast
import atexit
import builtins
import json
import os
import sys
import threading
from types import CodeType

EVERY = 5.0  # seconds: a kernel may be killed before it says goodbye
FOLDER, CHAPTER = os.environ["BNBOOK_TRACES"], os.environ.get("BNBOOK_CHAPTER")
NOTE = "__bnbook_ran__"
ran: set[tuple[str, int]] = set()  # file and line of a definition


def source_to_code(_, data: bytes, path: str) -> CodeType:
    return compile(noting(ast.parse(data), path), path, "exec")


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
    sys.modules["sitecustomize"].Witness.source_to_code = source_to_code
    threading.Thread(target=write_now_and_then, daemon=True).start()
    atexit.register(write)
