"""What a cell takes from `bnbook.plots`, and of a chapter's module what no stamp sees, it draws: a change there
makes no chapter stale, so no number may hang on it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from bookpress import stamp
from bookpress.book import book
from bookpress.pipeline import chapters

CHAPTERS = "bnbook.chapters"
DRAWING = ("bnbook.plots", CHAPTERS)
CODE = stamp.Code()
CELLS = stamp.Module("", "")

Parents = dict[ast.AST, ast.AST]
DRAWN = {"save_figure": 0, "figure": 1}  # which argument is the drawing


class Cells:
    """The code of a chapter, and what in it stands where only a figure can come of it."""

    def __init__(self, source: str, *parts: str) -> None:
        self.tree, self.parts = ast.parse(source), parts or DRAWING
        self.parents: Parents = {
            inner: node for node in ast.walk(self.tree) for inner in ast.iter_child_nodes(node)
        }
        self.loads: dict[str, list[ast.Name]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads.setdefault(node.id, []).append(node)

    def imported(self) -> Iterator[tuple[str, str]]:
        """Local names and full names of all that is imported from the parts."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    if self._part(full):
                        yield alias.asname or alias.name, full
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if self._part(alias.name):
                        yield (alias.asname, alias.name) if alias.asname else ("bnbook", "bnbook")

    def used(self) -> set[str]:
        """Full names of what takes part in anything but a drawing."""
        every = list(self.imported())
        found = {
            self._full(load, full)
            for local, full in every
            for load in self.loads.get(local, [])
            if not self._only_drawn(load)
        }
        found |= {full for local, full in every if local == "*"}
        return {name.removeprefix(f"{self._part(name)}.") for name in found if not _is_stamped(name)}

    def _part(self, full: str) -> str:
        return next((part for part in self.parts if f"{full}.".startswith(f"{part}.")), "")

    def _full(self, node: ast.AST, name: str) -> str:
        while isinstance(above := self.parents[node], ast.Attribute):
            node, name = above, f"{name}.{above.attr}"
        return name

    def _only_drawn(self, load: ast.AST) -> bool:
        """Whether it stands in the first argument of `save_figure` or the second of `figure`, or in a function or in
        what is bound to a name that stands nowhere else."""
        node, inside = load, load
        while (inside := self.parents.get(inside)) is not None and not isinstance(inside, ast.FunctionDef):
            pass
        while (above := self.parents.get(node)) is not None:
            if isinstance(above, ast.Call) and (place := DRAWN.get(getattr(above.func, "id", ""), -1)) >= 0:
                return above.args[place : place + 1] == [node]
            if isinstance(above, ast.FunctionDef):
                return bool(own := self.loads.get(above.name)) and all(map(self._only_drawn, own))
            if isinstance(above, ast.Assign) and inside is None:
                own = self.loads.get(getattr(above.targets[0], "id", ""), [])
                return len(above.targets) == len(own) == 1 and self._only_drawn(own[0])
            node = above
        return False


def _is_stamped(full: str) -> bool:
    """Whether it is a definition of a chapter's module that counts in stamps."""
    place, (_, *names) = stamp.Place("bnbook", ""), full.split(".")
    while names and not place.name:
        place = CODE.resolve(stamp.Place(place.module, names.pop(0)))
    nodes = CODE.module(place.module).defined.get(place.name, []) if place.name else []
    return bool(nodes) and place.module.startswith(f"{CHAPTERS}.") and not any(map(stamp.draws, nodes))


@cache
def code(name: str) -> str:
    (chapter,) = chapters.select([name])
    return "\n".join(chapter.code_cells)


NAMES = [chapter.name for chapter in chapters.discover()]


@pytest.mark.parametrize("name", NAMES)
def test_a_chapter_only_draws_with_what_no_stamp_sees(name: str) -> None:
    assert Cells(code(name)).used() == set(), "a number may hang on it"


#: What cells do with the other parts that no stamp sees: they record, train, judge and show; an error ends a trial; of
#: what they have recorded they take the parameters, which are their own.
DOING = {
    "errors.BnbookError",
    "results.current",
    "figures.use_style",
    "figures.figure",
    "claims.show_verdicts",
    "runs.train_all",
}
DOING |= {"results.record", "results.record_table", "results.record_device"}
DOING |= {"results.number_seeds_from"}


def test_of_other_parts_that_no_stamp_sees_no_value_is_taken() -> None:
    found = set()
    for part in set(book().not_measuring) - {"plots"}:
        for name in (name for name in NAMES if part.rsplit(".")[-1] in code(name)):
            found |= {f"{part}.{used}" for used in Cells(code(name), f"bnbook.{part}").used()}
    assert found == DOING, "a number may hang on it: no stamp sees it change"
    taken = {after for name in NAMES for after in re.findall(r"\bcurrent\(\)(.*?\])", code(name))}
    assert taken == {'.header["parameters"]'}


@pytest.mark.parametrize("name", NAMES)
def test_what_measures_in_a_chapters_module_takes_nothing_that_no_stamp_sees(name: str) -> None:
    met = CODE.closure(place for _, place in CODE.mentioned(stamp.Reading(ast.parse(code(name)).body), CELLS))
    taken = {
        to for place in met if place.module.startswith(CHAPTERS) for _, to in met[place] if to not in met
    }
    # Errors end a trial; cores say how many processes share the seeds, of one thread each; what trains an arm is
    # stamped with the arm's class; what records hands nothing back.
    known = {"BnbookError", "cores", "train_members", "record", "record_table"}
    found = {to.name for to in taken if to.module.startswith("bnbook") and not _draws(to)}
    assert found <= known, "a number may hang on it"


def _draws(place: stamp.Place) -> bool:
    return any(map(stamp.draws, CODE.module(place.module).defined.get(place.name, [])))


PLANTED = {
    "run(shared.CLASSES, shared.pooled(x))": set(),
    "run(exercises.answers(x))": {"exercises.answers"},
    "run(exercises)": {"exercises"},
    "save_figure(exercises.answers(x), 'rates')": set(),
    "figure('rates', exercises.answers)": set(),
    "def late(results):\n    return plots.rates(results)\n\nfigure('rates', late)": set(),
    "drawn = plots.rates(x)\nsave_figure(drawn, 'rates')": set(),
    "save_figure(plots.rates(x), 'rates', plots.curves(x))": {"x.curves"},
    "curves = plots.strips(x)\nsave_figure(plots.rates(curves), 'rates', curves)": {"x.strips"},
    "steps = plots.drawn_steps(9)\nrecord('x', loss[steps])": {"x.drawn_steps"},
    "def measured():\n    return plots.ARMS": {"x.ARMS"},
    "run(norms := plots.ARMS)": {"x.ARMS"},
    "import bnbook.plots.axes\nrun(bnbook.plots.axes.power(3))": {"axes.power"},
    "from bnbook.plots.lp import *\nrun(NORMS)": {"lp.*"},
}


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_use_is_told_from_a_drawing(source: str) -> None:
    head = "from bnbook.plots import printed, x as plots\nfrom bnbook.plots.panels import panels\n"
    head += "from bnbook.chapters import exercises, shared\n"
    assert Cells(head + source).used() == PLANTED[source]
