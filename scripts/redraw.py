"""Draw figures of a published run again, from its results: a view may change, the evidence stays.

    python scripts/redraw.py PART/CHAPTER PROFILE FIGURE...

The chapter's cells say how: imports, and assignments that call nothing but drawing code, are run as they stand; what
a figure's third argument names is its recorded points, and what is missing still is looked for among parameters and
results. Nothing is trained. `executed/rewritten.json` keeps which file of the run each drawing stands for.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bnbook import figures
from bnbook.errors import BnbookError
from bookpress import paths
from bookpress.pipeline.chapter_runs import published
from bookpress.pipeline.chapters import discover
from bookpress.results import Results

DRAWING = ("bnbook.chapters", "bnbook.plots", "bnbook.figures", "builtins", "numpy")


def known_names(results: Results) -> dict[str, Any]:
    """What cells may name beside what they define: parameters, results and the results themselves."""
    own = {name: np.asarray(values)[0] for name, values in results.items() if name.isidentifier()}
    return vars(builtins) | own | results.header["parameters"] | {"current": lambda: results}


def draw(chapter: str, profile: str, wanted: list[str]) -> dict[str, Path]:
    """Figure -> its new file, of each that the published run can be asked for; BnbookError names the first that
    needs what the results do not have."""
    known = {each.name: each for each in discover()}
    if chapter not in known:
        raise BnbookError(f"no chapter {chapter!r}; expected one of {', '.join(known)}")
    evidence = published(known[chapter], profile)
    names, drawn = known_names(evidence.results), {}
    os.environ["BNBOOK_FIGURES"] = folder = tempfile.mkdtemp()
    for cell in evidence.chapter.code_cells:
        for statement in ast.parse(cell).body:
            _run(statement, names, evidence.results, wanted, Path(folder), drawn)
    if missing := [name for name in wanted if name not in drawn]:
        raise BnbookError(f"{chapter} at {profile}: {missing[0]} cannot be drawn from its results alone")
    return drawn


def _run(
    statement: ast.stmt,
    names: dict[str, Any],
    results: Results,
    wanted: list[str],
    folder: Path,
    drawn: dict[str, Path],
) -> None:
    code = compile(ast.Module([statement], []), "cell", "exec")
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        exec(code, names)
        names["current"] = lambda: results
    elif isinstance(statement, ast.Assign) and _is_drawing(statement, names):
        exec(code, names)
    elif isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call):
        if getattr(call.func, "id", "") == "use_style":
            exec(code, names)
        if getattr(call.func, "id", "") != "save_figure" or call.args[1].value not in wanted:
            return
        name = call.args[1].value
        start = f"curve.{name.replace('-', '_')}."
        points = {
            each.removeprefix(start): np.asarray(results[each]) for each in results if each.startswith(start)
        }
        if len(call.args) > 2 and isinstance(call.args[2], ast.Name):
            names[call.args[2].id] = points
        try:
            fig = eval(compile(ast.Expression(call.args[0]), "cell", "eval"), names)
        except (NameError, KeyError):  # it needs what only a run has
            return
        figures.save_figure(fig, name)
        drawn[name] = folder


def _is_drawing(statement: ast.Assign, names: dict[str, Any]) -> bool:
    """Whether it names what is known and calls nothing but drawing code."""
    inside = {
        node.id
        for each in ast.walk(statement)
        if isinstance(each, ast.comprehension)
        for node in ast.walk(each.target)
        if isinstance(node, ast.Name)
    }
    for node in ast.walk(statement.value):
        if isinstance(node, ast.Name) and node.id not in names and node.id not in inside:
            return False
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") not in ("items", "values", "format"):
            if not isinstance(node.func, ast.Name) or node.func.id not in names:
                return False
            module = getattr(names[node.func.id], "__module__", None) or "builtins"
            if not module.startswith(DRAWING):
                return False
    return True


def keep(chapter: str, profile: str, drawn: dict[str, Path]) -> list[str]:
    """Put the drawings in the place of the run's, and write down which they stand for."""
    evidence = published(next(each for each in discover() if each.name == chapter), profile)
    file, of_run = paths.rewritten(), evidence.results.header["files"]
    before, said = json.loads(file.read_bytes()), []
    for name, folder in drawn.items():
        for path in sorted(folder.glob(f"{name}.*svg")):
            place = f"{evidence.figures_folder.name}/{path.name}"
            if place not in of_run:
                continue  # a phone's drawing that the run did not have
            new = path.read_bytes()
            before[hashlib.sha256(new).hexdigest()] = of_run[place]
            (evidence.figures_folder / path.name).write_bytes(new)
            said.append(place)
    file.write_text(json.dumps(before, indent=1) + "\n", encoding="utf-8")
    return said


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        print("\n".join(keep(*sys.argv[1:3], draw(sys.argv[1], sys.argv[2], sys.argv[3:]))))
    except BnbookError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
