"""What a cell takes from `bnbook.plots`, and of a chapter's module what no stamp sees, it draws: a change there
makes no chapter stale, so no number may hang on it."""

from __future__ import annotations

import ast
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
            if not self._only_drawn(load, frozenset())
        }
        found |= {full for local, full in every if local == "*"}
        return {name.removeprefix(f"{self._part(name)}.") for name in found if not _is_stamped(name)}

    def _part(self, full: str) -> str:
        return next((part for part in self.parts if f"{full}.".startswith(f"{part}.")), "")

    def _full(self, node: ast.AST, name: str) -> str:
        while isinstance(above := self.parents[node], ast.Attribute):
            node, name = above, f"{name}.{above.attr}"
        return name

    def _only_drawn(self, load: ast.AST, seen: frozenset[str]) -> bool:
        """Whether it stands in the first argument of `save_figure` or the second of `figure`, or in what is bound
        to names (or put into them) that stand nowhere else; in a call of one's own that is thrown away; in a function
        that stands there."""
        above: ast.AST | None = load
        while (above := self.parents.get(above)) is not None:
            if isinstance(above, ast.FunctionDef):
                return bool(self.loads.get(above.name)) and self._name_only_drawn(above.name, seen)
        node = load
        while not isinstance(node, ast.stmt):
            above = self.parents[node]
            if isinstance(above, ast.Call) and (place := DRAWN.get(getattr(above.func, "id", ""), -1)) >= 0:
                return above.args[place : place + 1] == [node]
            node = above
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            root = node.value.func
            while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
                root = root.func if isinstance(root, ast.Call) else root.value
            return root is load and bool(seen)  # a method of the figure itself
        if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            return False
        targets = self._bound(node, load)
        return bool(targets) and all(self._name_only_drawn(name, seen) for name in targets)

    def _bound(self, node: ast.stmt, load: ast.AST) -> list[str]:
        """The names that an assignment hands this value to; where they are unpacked alike, its own alone."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        found: list[ast.AST] = []
        for target in targets:
            parts = getattr(target, "elts", None)
            values = getattr(node.value, "elts", None)
            if parts and values and len(parts) == len(values):
                found += [part for part, value in zip(parts, values) if load in ast.walk(value)]
            else:
                found += parts or [target]
        roots = []
        for each in found:
            while isinstance(each, ast.Subscript | ast.Attribute | ast.Starred):
                each = each.value
            roots.append(getattr(each, "id", ""))
        return [] if "" in roots else roots

    def _name_only_drawn(self, name: str, seen: frozenset[str]) -> bool:
        if name in seen:
            return True
        return all(self._only_drawn(load, seen | {name}) for load in self.loads.get(name, []))


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


#: What cells do with the other parts that no stamp sees: they record, train, judge and show.
DOING = {
    "figures.use_style",
    "figures.save_figure",
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


@pytest.mark.parametrize("name", NAMES)
def test_what_measures_in_a_chapters_module_takes_nothing_that_no_stamp_sees(name: str) -> None:
    met = CODE.closure(place for _, place in CODE.mentioned(stamp.Reading(ast.parse(code(name)).body), CELLS))
    taken = {
        to for place in met if place.module.startswith(CHAPTERS) for _, to in met[place] if to not in met
    }
    # Errors end a trial; cores say how many processes share the seeds, of one thread each; what trains an arm is
    # stamped with the arm's class.
    known = {"BnbookError", "cores", "train_members"}
    found = {to.name for to in taken if to.module.startswith("bnbook") and not _draws(to)}
    assert found <= known, "a number may hang on it"


def _draws(place: stamp.Place) -> bool:
    return any(map(stamp.draws, CODE.module(place.module).defined.get(place.name, [])))


PLANTED = {
    "run(exercises.ROWS)": set(),
    "run(exercises.CLASSES, exercises.trials(x))": set(),
    "run(exercises.answers(x))": {"exercises.answers"},
    "save_figure(exercises.answers(x), 'rates')": set(),
    "figure('rates', exercises.answers)": set(),
    "run(exercises)": {"exercises"},
    "from bnbook.chapters.exercises import CLASSES, ROWS\nrun(CLASSES, ROWS)": set(),
    "save_figure(plots.rates(x), 'rates', curves)": set(),
    "fig = plots.rates(x)\nfig.axes[0].set(ylim=(0, 1))\nsave_figure(fig, 'rates', curves)": set(),
    "words = dict(levels=printed.RATE)\nsave_figure(panels(points, **words), 'rates', points)": set(),
    "levels = {}\nlevels['a'] |= printed.RATE\nsave_figure(panels(levels), 'rates')": set(),
    "x, titles = measured, {rate: printed.RATE for rate in rates}\n"
    "record('x', x)\nsave_figure(panels(titles), 'rates')": set(),
    "steps = plots.drawn_steps(9)\nrecord('x', loss[steps])": {"x.drawn_steps"},
    "x, steps = 1, plots.drawn_steps(9)\nrecord('x', loss[steps])": {"x.drawn_steps"},
    "for norm in plots.ARMS:\n    pass": {"x.ARMS"},
    "save_figure(plots.rates(x), 'rates', plots.curves(x))": {"x.curves"},
    "curves = plots.strips(x)\nsave_figure(plots.rates(curves), 'rates', curves)": {"x.strips"},
    "def measured():\n    return plots.ARMS": {"x.ARMS"},
    "record('x', plots.LINES['a'])": {"x.LINES"},
    "if width == printed.SIZE:\n    run()": {"printed.SIZE"},
    "other = plots\nrun(other.ARMS)": {"x"},
    "plots.change(settings)": {"x.change"},
    "settings.norms = plots.ARMS\nrun(settings)": {"x.ARMS"},
    "run(norms := plots.ARMS)": {"x.ARMS"},
    "run(*(f(plots.ARMS) for f in (lambda arms: arms,)))": {"x.ARMS"},
    "import bnbook.plots.axes\nrun(bnbook.plots.axes.power(3))": {"axes.power"},
    "from bnbook.plots.lp import *\nrun(NORMS)": {"lp.*"},
    "def late():\n    from bnbook.plots.lp import NORMS as norms\n    run(norms)": {"lp.NORMS"},
}


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_use_is_told_from_a_drawing(source: str) -> None:
    head = "from bnbook.plots import printed, x as plots\nfrom bnbook.plots.panels import panels\n"
    head += "from bnbook.chapters import exercises\n"
    assert Cells(head + source).used() == PLANTED[source]
