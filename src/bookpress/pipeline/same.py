"""Other code, the same numbers: the code of a published run and that of this checkout, both at the smoke profile.

A definition that is renamed, split or written anew makes a run stale. Where every number that a chapter records at the
smoke profile is the same to the last bit by both, one line of the locks says so, and the run is fresh again, its
tests stand as they stood, and its draws are counted with those to come.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bookpress import paths, stamp
from bookpress.atomic import kept
from bookpress.book import PRESS, book
from bookpress.claims import locks
from bookpress.errors import PressError
from bookpress.pipeline.chapter_runs import published_runs
from bookpress.pipeline.chapters import Chapter, is_parameters, only_defines, read
from bookpress.pipeline.execution import copy_packages

#: What runs a chapter's cells, those of its parameters first, by the packages before it: every number as it is and not
#: to nine digits, and the definitions of the package in which functions were called. No kernel, one process, one core.
RUNS = """
import contextlib, importlib, io, json, sys
package, cells, said = json.load(sys.stdin)
importlib.import_module(package + ".book")
from bookpress import results
own, called, printed = results.encode, set(), []
results.encode = lambda array, digits: own(array, 17)
def note(frame, event, _):
    if event == "call":
        called.add((frame.f_globals.get("__name__"), frame.f_code))
sys.setprofile(note)
names = {"__name__": "__main__", "display": lambda *_: None}
for cell in cells:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(cell, "cell", "exec"), names)
    printed.append(out.getvalue())
sys.setprofile(None)
of_package = ((module, code) for module, code in called if str(module).split(".")[0] == package)
inside = ((module, code.co_qualname) for module, code in of_package if code.co_filename[0] != "<")
ran = sorted({module + ":" + name.split(".")[0] for module, name in inside if name[0] != "<"})
json.dump([ran, printed], open(said, "w"))
"""
CLOCK = "h"  # the unit of what a clock said of the run, never the same twice
SHOWN = 5  # of the results that differ, those that are named


@dataclass(frozen=True)
class Tree:
    """A chapter and the code that it leads to, as some commit or this checkout has them."""

    chapter: Chapter
    source: Path  # with the packages
    root: Path  # with the book

    @property
    def code(self) -> stamp.Code:
        return stamp.Code(self.source)

    def name(self, chain: locks.Chain) -> str:
        made = stamp.of_chapter(self.chapter.code_cells, {}, [], self.code)
        return chain.measured(self.chapter.name, stamp.measure(made))

    def numbers(self) -> tuple[dict[str, Any], list[str], list[str]]:
        """What it records at the smoke profile, name -> values, the definitions that ran ("module:name"), and what each
        cell prints that does more than define."""
        cells = [cell for cell in self.chapter.notebook.cells if cell.cell_type == "code"]
        cells.sort(key=lambda cell: not is_parameters(cell))
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            around = {
                "PYTHONPATH": str(self.source), "PYTHONHASHSEED": "0", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1",
                "BNBOOK_ROOT": str(self.root), "BNBOOK_EXECUTED": str(paths.executed_folder()),
                "BNBOOK_RUNS": folder, "BNBOOK_STORE": f"{folder}/store", "BNBOOK_FIGURES": f"{folder}/figures",
                "BNBOOK_RESULTS": f"{folder}/results.json", "BNBOOK_CHAPTER": self.chapter.name, "BNBOOK_CORES": "1",
            }  # fmt: skip
            (place / "figures").mkdir()
            words = json.dumps([book().package, [cell.source for cell in cells], f"{folder}/said"])
            done = subprocess.run(
                [sys.executable, "-c", RUNS], input=words, cwd=place, env={**os.environ, **around},
                capture_output=True, encoding="utf-8",
            )  # fmt: skip
            if done.returncode:
                raise PressError(f"{self.chapter.name} does not run: {done.stderr.strip().splitlines()[-1]}")
            entries = json.loads((place / "results.json").read_bytes())["results"]
            called, printed = json.loads((place / "said").read_bytes())
        return (
            {name: each["values"] for name, each in entries.items() if each["unit"] != CLOCK},
            called,
            [text for cell, text in zip(cells, printed) if not only_defines(cell)],
        )


def same(chapter: Chapter) -> list[str]:
    """Say in the locks that this checkout's code gives the numbers of the chapter's published runs, and of what was
    locked last; the lines in words. PressError where it does not, or no commit has that code."""
    chain = locks.read()
    with tempfile.TemporaryDirectory() as folder:
        now = Tree(chapter, copy_packages(Path(folder)), paths.repository_root())
        name = now.name(chain)
        earlier = [each for each in _earlier(chapter, chain) if each != name]
        if not earlier:
            return [f"nothing to say: {chapter.name} measures by the code of its runs and locks"]
        numbers, said = None, []
        for was in earlier:
            with tempfile.TemporaryDirectory() as place:
                then, commit = _commit_of(was, chapter, chain, Path(place))
                numbers = numbers or now.numbers()
                before, ran_before, printed = _kept(was, then)
                _require_equal(chapter, before, numbers[0])
                _require_words(chapter, printed, numbers[2])
                ran, idle = _changed(then, now, {*ran_before, *numbers[1]})
                count = sum(map(np.size, before.values()))
                why = f"{count:,} numbers in {len(before)} results at the smoke profile, as {commit[:10]} gives them"
                why += f"; of what changed ran {', '.join(ran)}" + f"; not {', '.join(idle)}" * bool(idle)
                said += [f"same {chapter.name}: {why}", *_aliases(then, now)]
                locks.append(
                    [{"event": "same", "chapter": chapter.name, "was": was, "now": name, "why": why}]
                )
        return said


def is_stale(chapter: Chapter) -> bool:
    """Whether a published run is stale by its code alone."""
    return any({"code", "package"} & {*run.stale()} for run in published_runs(chapter))


def _earlier(chapter: Chapter, chain: locks.Chain) -> list[str]:
    """What the published runs measure with, and what was locked since; one name for all that is the same."""
    runs = [locks.run_measure(run.results.header, chain)[0] for run in published_runs(chapter)]
    since = locks.since_published(chain, chapter.name)
    locked = [chain.measured(chapter.name, line["measure"]) for line in since if line.tests][-1:]
    return list(dict.fromkeys([*runs, *locked]))


def _commit_of(was: str, chapter: Chapter, chain: locks.Chain, place: Path) -> tuple[Tree, str]:
    """The newest commit that measures so, put into `place`."""
    page = chapter.path.relative_to(paths.repository_root()).as_posix()
    asked = [f"src/{book().package}", f"src/{PRESS}/intervals.py", page]
    for commit in _git("log", "--format=%H", "--", *asked).decode().split():
        folder = place / commit
        held = _git("archive", commit, "src", "book", "_config.yml", "_toc.yml")
        with tarfile.open(fileobj=io.BytesIO(held)) as packed:
            packed.extractall(folder, filter="data")
        if not (folder / page).is_file():
            break
        tree = Tree(read(folder / page, chapter.name), folder / "src", folder)
        if tree.name(chain) == was:
            return tree, commit
    raise PressError(
        f"{chapter.name}: no commit has the code of its published run under its present names; run it again, or ask "
        "`same` at the commit whose change made it stale"
    )


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", "-C", str(paths.repository_root()), *words], capture_output=True)
    if done.returncode:
        raise PressError(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _kept(was: str, then: Tree) -> tuple[dict[str, Any], list[str], list[str]]:
    """The numbers of the code from before, kept for who tries a change again and again."""
    import torch

    made = [torch.__version__, torch.backends.cpu.get_cpu_capability(), np.__version__, then.chapter.defaults]
    return kept(f"numbers and words of {was}", stamp.digest(made), then.numbers)


def _require_equal(chapter: Chapter, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """A result that is new changes none that stood; a draw without it is not pooled for the claims that read it."""
    differing = []
    for name in sorted(before):
        if name not in now:
            differing.append(f"{name} is gone")
            continue
        old, new = (np.asarray(each[name], dtype=float) for each in (before, now))
        if old.shape != new.shape:
            differing.append(f"{name} has shape {new.shape}, not {old.shape}")
        elif not np.array_equal(old, new, equal_nan=True):
            size = np.nanmax(np.abs(np.where(old == new, 0.0, old - new)))
            differing.append(f"{name} by up to {size:.2g} of {np.nanmax(np.abs(old)):.2g}")
    if differing:
        more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
        raise PressError(
            f"{chapter.name}: {len(differing)} of {len(before)} results differ at the smoke profile: "
            f"{', '.join(differing[:SHOWN])}{more}; expected the same to the last bit; run it again on fresh seeds"
        )


def _require_words(chapter: Chapter, before: Sequence[str], now: Sequence[str]) -> None:
    """The page shows under each cell what it printed in the published run: the cell must print that still."""
    if len(before) != len(now):
        raise PressError(
            f"{chapter.name}: {len(now)} cells, {len(before)} before, those that only define something not counted; "
            "expected as many, for what a run printed stands below the cell that printed it"
        )
    for number, (old, new) in enumerate(zip(before, now), start=1):
        if old != new:
            raise PressError(
                f"{chapter.name}: code cell {number}, those that only define something not counted, prints {new[:60]!r} "
                f"and printed {old[:60]!r}; expected the same words"
            )


def _changed(then: Tree, now: Tree, ran: set[str]) -> tuple[list[str], list[str]]:
    """What differs between two trees of what the cells lead to: what ran, and what did not; PressError where nothing
    ran of it, for then a run says nothing. What is no function or class runs with its module."""
    old, new = (stamp.definitions(tree.chapter.code_cells, tree.code) for tree in (then, now))
    modules = {name.partition(":")[0] for name in ran} | {""}
    met, idle = [], []
    for name in (name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)):
        module, _, own = name.partition(":")
        found = [there for tree in (then, now) if module and (there := tree.code.module(module))]
        runs = any(isinstance(node, stamp.DEFINES) for each in found for node in each.defined.get(own, ()))
        (met if name in ran or not runs and module in modules else idle).append(name)
    if idle and not met:
        raise PressError(
            f"{now.chapter.name}: nothing of what changed runs at the smoke profile ({', '.join(idle[:SHOWN])}); "
            "expected a run that meets it: run the chapter again"
        )
    return [*map(_word, met)], [*map(_word, idle)]


def _word(name: str) -> str:
    return (
        "the cells" if name == ":" else name.removeprefix(f"{book().package}.").replace(":", ".").rstrip(".")
    )


def _aliases(then: Tree, now: Tree) -> list[str]:
    """What finds the published trainings again whose code is called otherwise from now on."""
    if not any(
        run.results.header.get("provenance", {}).get("store", {}).get("kept")
        for run in published_runs(now.chapter)
    ):
        return []
    table, found = book().trainings, {}
    for kind, way in table.TRAINS.items():
        for last in ([], [table.LOADS]):
            old, new = (stamp.code_of([kind, way, *last], tree.code) for tree in (then, now))
            if old[:16] in table.ALIASES and new[:16] not in table.ALIASES:
                found[new[:16]] = table.ALIASES[old[:16]]
    words = f"its trainings are found again with these in ALIASES of {book().trainings_module}:"
    return [words, *(f'    "{new}": "{old}",' for new, old in found.items())] if found else []
