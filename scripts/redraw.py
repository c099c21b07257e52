"""Draw figures of a published run again, from its results: a view may change, the evidence stays.

    python scripts/redraw.py PART/CHAPTER PROFILE FIGURE...

The chapter's cells say how: a statement runs where it calls nothing that measures, by the rule of the stamps; a
training is its steps alone, a figure's third argument its recorded points, and what is missing still is looked for
among parameters and results. `executed/rewritten.json` keeps which file of the run each drawing stands for.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import json
import os
import sys
import tempfile
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bnbook import figures
from bnbook.errors import BnbookError
from bookpress import paths
from bookpress.fingerprint.sources import Sources
from bookpress.pipeline.chapter_runs import published
from bookpress.pipeline.chapters import discover
from bookpress.results import Results

DRAWS = (
    "bnbook.plots",
    "bnbook.figures",
    "bookpress.claims",
    "bnbook.claims",
    "bnbook.data",
    "builtins",
    "numpy",
    "dataclasses",
)
PLAIN = {
    "batch_steps",
    "matched_rates",
    "moves",
    "stronger",
}  # places of points, settings of arms, closed forms
METHODS = {"items", "keys", "values", "index", "endswith", "startswith", "split", "format", "fromkeys"}
SOURCES = Sources()


def steps_alone(arms: Iterable[Any], *_: Any, **__: Any) -> dict[Any, dict[str, np.ndarray]]:
    """Of each arm's training what is known without it: the steps at which it is looked at, (1, T)."""
    ways = {"step": "checkpoints", "loss_step": "loss_steps", "probe_step": "probe_steps"}
    found: dict[Any, dict[str, np.ndarray]] = {}
    for arm in arms:
        has = {name: getattr(arm, way) for name, way in ways.items() if hasattr(arm, way)}
        found[arm] = {name: np.array([way() if callable(way) else way]) for name, way in has.items()}
    return found


def draw(chapter: str, profile: str, wanted: list[str]) -> dict[str, Path]:
    """Figure -> the folder of its new files, of each that the published run can be asked for; BnbookError names the
    first that needs what the results do not have."""
    known = {each.name: each for each in discover()}
    if chapter not in known:
        raise BnbookError(f"no chapter {chapter!r}; expected one of {', '.join(known)}")
    evidence = published(known[chapter], profile)
    os.environ["BNBOOK_FIGURES"] = folder = tempfile.mkdtemp()
    cells = Cells(evidence.results, wanted)
    for cell in evidence.chapter.code_cells:
        for statement in ast.parse(cell).body:
            cells.run(statement)
    if missing := [name for name in wanted if name not in cells.drawn]:
        why = cells.why.get(missing[0], "it has no such figure")
        raise BnbookError(
            f"{chapter} at {profile}: {missing[0]} cannot be drawn from its results alone ({why})"
        )
    return dict.fromkeys(wanted, Path(folder))


class Cells:
    """The cells of a published run, as far as they run without measuring."""

    def __init__(self, results: Results, wanted: list[str]) -> None:
        self.results, self.wanted = results, wanted
        self.values = {name: np.asarray(results[name]) for name in results}
        own = {name: values[0] for name, values in self.values.items() if name.isidentifier()}
        self.ours = {"current": lambda: results, "train_all": steps_alone, "RECORDED": self.values}
        self.first = vars(builtins) | own | results.header["parameters"] | {"__name__": "cell"}
        self.names, self.own = self.first | self.ours, dict[str, ast.FunctionDef]()
        self.same = dict[str, list[ast.expr]]()
        self.drawn, self.why = set[str](), dict[str, str]()

    def run(self, statement: ast.stmt) -> None:
        """Run what is free of it; a name that the rest would have given is given to nothing."""
        if ast.unparse(statement).startswith("figure("):  # of recorded results alone
            name, way = (
                eval(compile(ast.Expression(each), "cell", "eval"), self.names)
                for each in statement.value.args
            )
            if name in self.wanted:
                figures.save_figure(way(self.results), name)
                self.drawn.add(name)
            return
        if _saves(statement):
            name = eval(compile(ast.Expression(statement.value.args[1]), "cell", "eval"), self.names)
            if name in self.wanted:
                self._draw(name, statement.value)
            return
        if isinstance(statement, ast.FunctionDef):
            self.own[statement.name] = statement
        if table := self._recorded(statement):
            self.names[table] = self.values
            return
        if isinstance(statement, ast.Assign):
            pairs = list(_pairs(statement.targets[0], statement.value))
            for name, value in pairs if len(pairs) > 1 else ():
                self._run(ast.copy_location(ast.Assign([name], value), statement))
            if len(pairs) > 1:
                return
        if (
            isinstance(statement, ast.For)
            and isinstance(statement.iter, ast.Tuple)
            and _saves(statement.body[0])
        ):
            for each in statement.iter.elts:
                self.run(ast.copy_location(ast.Assign([statement.target], each), statement))
                self.run(statement.body[0])
            return
        self._run(statement)

    def _run(self, statement: ast.stmt) -> None:
        refused: set[str] = set()
        if kept := self._free(statement, refused):
            try:
                exec(compile(ast.fix_missing_locations(ast.Module([kept], [])), "cell", "exec"), self.names)
            except Exception:  # it needs what only a run has
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    raise
                refused |= _given(statement)
        self.names |= self.ours
        for name in refused:
            self.names.pop(name, None)
            if name in self.first:
                self.names[name] = self.first[name]

    def _draw(self, name: str, call: ast.Call) -> None:
        start = f"curve.{name.replace('-', '_')}."
        points = {
            key.removeprefix(start): values for key, values in self.values.items() if key.startswith(start)
        }
        if len(call.args) > 2 and isinstance(call.args[2], ast.Name):
            self.names[call.args[2].id] = points
        try:
            fig = eval(compile(ast.Expression(call.args[0]), "cell", "eval"), self.names)
        except Exception as error:
            self.why[name] = f"{type(error).__name__}: {error}"
            return
        figures.save_figure(fig, name)
        self.drawn.add(name)

    def _recorded(self, statement: ast.stmt) -> str:
        """The table all of which a loop records, name by name: what the results hold of it stands for it."""
        if not (isinstance(statement, ast.For) and isinstance(statement.target, ast.Tuple)):
            return ""
        pair = ", ".join(map(ast.unparse, statement.target.elts))
        names = [node.id for node in ast.walk(statement.iter) if isinstance(node, ast.Name)]
        tables = [name for name in names if not isinstance(self.names.get(name), types.ModuleType)]
        return tables[0] if tables and ast.unparse(statement.body[0]).startswith(f"record({pair}") else ""

    def _free(self, statement: ast.stmt, refused: set[str]) -> ast.stmt | None:
        """The statement without what measures, None where nothing is left; what is left out joins `refused`."""
        if isinstance(statement, (ast.Import, ast.ImportFrom, ast.FunctionDef)):
            return statement
        if isinstance(statement, (ast.For, ast.If)):
            head = statement.iter if isinstance(statement, ast.For) else statement.test
            body = [kept for each in statement.body if (kept := self._free(each, refused))]
            if body and not getattr(statement, "orelse", []) and self._calls_nothing_else(head):
                fields = dict(ast.iter_fields(statement)) | {"body": body}
                return type(statement)(**fields)
        elif given := self._of_record(statement):
            refused -= _given(given)
            return given
        elif ast.unparse(statement) == "use_style()" or (
            isinstance(statement, (ast.Assign, ast.AugAssign)) and self._calls_nothing_else(statement)
        ):
            return statement
        refused |= _given(statement)
        return None

    def _of_record(self, statement: ast.stmt) -> ast.stmt | None:
        """What a statement records, as given by the results."""
        if isinstance(statement, ast.Assign) and len(statement.targets) > 1:  # one is recorded, all are it
            self.same[ast.unparse(statement.targets[-1])] = statement.targets[:-1]
        if not ast.unparse(statement).startswith("record("):
            return None
        name, what = statement.value.args
        if not isinstance(what, (ast.Name, ast.Subscript)) or isinstance(
            getattr(what, "slice", 0), ast.Slice
        ):
            return None
        targets = [
            ast.parse(f"{ast.unparse(what)} = 0").body[0].targets[0],
            *self.same.get(ast.unparse(what), []),
        ]
        return ast.Assign(targets, ast.Subscript(ast.Name("RECORDED", ast.Load()), name, ast.Load()))

    def _calls_nothing_else(self, node: ast.AST) -> bool:
        return all(self._is_free(each.func) for each in ast.walk(node) if isinstance(each, ast.Call))

    def _is_free(self, func: ast.expr) -> bool:
        """Whether a call draws, or names what a training is, and measures nothing."""
        if isinstance(func, ast.Attribute):
            module = self.names.get(getattr(func.value, "id", ""))
            if not isinstance(module, types.ModuleType):
                return func.attr in METHODS
            called, name = getattr(module, func.attr, None), func.attr
        else:
            name = getattr(func, "id", "")
            if name in self.own:
                return all(self._calls_nothing_else(each) for each in self.own[name].body)
            called = self.names.get(name)
        where = getattr(called, "__module__", None) or "builtins"
        if isinstance(called, type) or called is steps_alone or name in PLAIN or where.startswith(DRAWS):
            return called is not None
        hint = str(getattr(called, "__annotations__", {}).get("return", ""))
        return (
            "Arm" in hint or hint == "str" or bool(where.startswith("bnbook.") and SOURCES.aside(where, name))
        )


def _saves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("save_figure(")


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each name of an assignment and what it is given, where that is written out."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts)
    else:
        yield target, value


def _given(statement: ast.stmt) -> set[str]:
    """The names that a statement gives, or changes an entry of."""
    return {
        node.id
        for each in ast.walk(statement)
        if isinstance(each, (ast.Name, ast.Subscript)) and isinstance(each.ctx, ast.Store)
        for node in [each.value if isinstance(each, ast.Subscript) else each]
        if isinstance(node, ast.Name)
    }


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
