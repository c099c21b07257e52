"""What cells and chapters' modules take of what no stamp sees, a drawing or a part that does not measure, gives back no
number: a change there makes no chapter stale."""

from __future__ import annotations

import ast
import re

import pytest

from bnbook import figures
from bookpress import results, stamp
from bookpress.pipeline import chapters
from bookpress.runs import kinds

CODE = stamp.Code()
CELLS = {chapter.name: "\n".join(chapter.code_cells) for chapter in chapters.discover()}
#: An error ends a trial; what records, trains or judges hands no number back but a training's; cores say how many
#: processes share the seeds.
KNOWN = {
    "bnbook.claims:show_verdicts",
    "bnbook.errors:BnbookError",
    "bnbook.figures:use_style",
    "bnbook.results:current",
    "bnbook.results:number_seeds_from",
    "bnbook.results:record",
    "bnbook.results:record_device",
    "bnbook.results:record_table",
    "bnbook.runs:train_all",
    "bnbook.runs:train_members",
    "bookpress.cores:cores",
}


def draws(place: stamp.Place) -> bool:
    there = CODE.module(place.module)
    return any(map(stamp.draws, there.defined.get(place.name, []) if there else []))


def unseen(source: str) -> set[str]:
    """What cells take, and the chapters' modules for them, that no stamp sees: of `figure(...)` only the points."""
    nodes = []
    for node in ast.parse(source).body:
        figure = stamp.draws(node) and isinstance(node, ast.Expr)
        nodes += [ast.Expr(each.value) for each in node.value.keywords] if figure else [node]
    own = {to for _, to in CODE.mentioned(stamp.Reading(nodes), stamp.Module("", ""))}
    met = CODE.closure(own)
    inner = (to for place in met if place.module.startswith("bnbook.chapters") for _, to in met[place])
    taken = own | {to for to in inner if not draws(to)}  # in a module a local name may be that of a drawing
    return {":".join(to) for to in taken - {*met} if to.module.split(".")[0] in ("bnbook", "bookpress")}


@pytest.mark.parametrize("name", CELLS)
def test_no_number_hangs_on_what_no_stamp_sees(name):
    assert unseen(CELLS[name]) <= KNOWN
    taken = re.findall(r"\bcurrent\(\)(.*?\])", CELLS[name])
    assert {*taken} <= {'.header["parameters"]'}, "of what was recorded nothing but a chapter's parameters"


HEAD = "from bnbook.chapters import landscape, shared\nfrom bnbook.plots.axes import number, power\n"
PLANTED = {
    "figure('sharp', landscape.random)": set(),
    "run(shared.pooled(x))": set(),
    "run(landscape.random(x))": {"bnbook.chapters.landscape:random"},
    "run(landscape)": {"bnbook.chapters.landscape:*"},
    "record('x', power(3))": {"bnbook.plots.axes:power"},
    "figure('sharp', landscape.random, points={'x': power(3)})": {"bnbook.plots.axes:power"},
    "def late():\n    return number": {"bnbook.plots.axes:number"},
}


@pytest.mark.parametrize("source", PLANTED)
def test_a_planted_use_is_told_from_a_drawing(source):
    assert unseen(HEAD + source) == PLANTED[source]


def test_what_changes_committed_numbers_and_makes_no_chapter_stale():
    assert kinds.THREADS == 1  # another count of threads is another training
    assert results.DIGITS == 9 and figures.CURVE_DIGITS == 4  # of every recorded number, of every drawn point
