"""Whatever of the package ran in a smoke run of a chapter was hashed: each chapter runs under a tracer."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bnbook import fingerprint
from bnbook.fingerprint.sources import measures
from bnbook.pipeline.chapters import discover

SRC = Path(fingerprint.__file__).resolve().parents[2]
#: Bands and verdicts call these on behalf of parts that do not measure; `fingerprint.BANDS` is followed by
#: itself.
ON_BEHALF = "bnbook.intervals"

#: Chapters in turn, each in a child of its own; the profiler is the interpreter's own, for a tracer in Python
#: is slow. Code without fast locals is the body of a module or class, which defines and does not measure.
TRACED = """
import cProfile, inspect, json, os, sys
import matplotlib.pyplot, numpy, scipy.stats, sklearn.datasets, torch, torchvision
from IPython import display
from bnbook.pipeline.chapters import discover
package, folder = sys.argv[1:]
display.display = lambda *words, **names: None
for chapter in discover():
    child = os.fork()
    if child == 0:
        profile = cProfile.Profile(builtins=False)
        names = {"__name__": "__main__"}
        for cell in chapter.notebook.cells:
            if cell.cell_type == "code":
                code = compile(cell.source, "cell", "exec")
                profile.runctx(code, names, names)
        codes = [row.code for row in profile.getstats() if hasattr(row.code, "co_flags")]
        rows = [(code.co_filename, code.co_firstlineno) for code in codes
                if code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(package)]
        with open(os.path.join(folder, chapter.name.replace("/", "--")), "w") as file:
            json.dump(rows, file)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{chapter.name} failed")
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file a chapter: places of all functions of the package that ran."""
    folder = tmp_path_factory.mktemp("traces")
    variables = os.environ | {
        "MPLBACKEND": "agg",
        "BNBOOK_STORE": str(folder / "store"),
        "OMP_NUM_THREADS": "1",
    }
    variables |= {"PYTHONPATH": str(SRC), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", TRACED, str(SRC / "bnbook"), str(folder)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, cwd=SRC.parent)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.mark.parametrize("chapter", discover(), ids=lambda chapter: chapter.name)
def test_what_ran_was_hashed(chapter, traces: Path) -> None:
    rows = json.loads((traces / chapter.name.replace("/", "--")).read_text())
    ran = {_definition(Path(file), line) for file, line in rows}
    ran = {name for name in ran if measures(name.split(":")[0]) and not name.startswith(ON_BEHALF)}
    ran = {name for name in ran if not name.endswith(":__getattr__")}  # asked for names that no module has
    closure, _ = fingerprint.read_cells(chapter.code_cells)
    assert ran, "a chapter that measures runs something of the package"
    assert sorted(ran - fingerprint.definitions(closure)) == []


def _definition(file: Path, line: int) -> str:
    """The top-level definition of the package that a line belongs to, as "module:name"."""
    module = ".".join(file.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        if first <= line <= node.end_lineno:
            named = node.targets[0] if isinstance(node, ast.Assign) else node
            return f"{module}:{getattr(named, 'name', None) or getattr(named, 'id', '?')}"
    return f"{module}:?"
