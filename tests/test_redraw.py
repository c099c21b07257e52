"""Figures of a published run drawn again from its results, and those that these do not hold."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bnbook.training.arm import Arm
from bookpress.pipeline.chapter_runs import published
from bookpress.pipeline.chapters import discover

SCRIPT = Path(__file__).parents[1] / "scripts" / "redraw.py"
SPEC = importlib.util.spec_from_file_location("redraw", SCRIPT)
redraw = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(redraw)


@pytest.fixture
def evidence(monkeypatch):
    monkeypatch.setenv("BNBOOK_FIGURES", "")  # set by the script, and put back
    return published({each.name: each for each in discover()}["theory/minima"], "laptop")


@pytest.fixture
def cells(evidence):
    cells = redraw.Cells(evidence.results, [])

    def run(code):
        for statement in ast.parse(code).body:
            cells.run(statement)
        return cells.names

    return run


def test_a_figure_whose_code_did_not_change_is_drawn_as_it_was(evidence):
    folder = redraw.draw("theory/minima", "laptop", ["margins"])["margins"]
    assert {path.name for path in folder.iterdir()} == {"margins.svg", "margins.narrow.svg"}
    for path in folder.iterdir():
        words, numbers = taken_apart(path)
        before, drawn = taken_apart(evidence.figures_folder / path.name)
        assert words == before
        np.testing.assert_allclose(numbers, drawn, atol=2e-3)  # another processor may round otherwise


def taken_apart(path):
    """The text of a drawing without its numbers and the names that hang on them, and the numbers."""
    text = re.sub(r"\b[pmhC][0-9a-f_]{10,}\b", "", path.read_text(encoding="utf-8"))
    number = re.compile(r"-?\d+\.\d+")
    return number.sub("", text), [float(each) for each in number.findall(text)]


@pytest.mark.parametrize(
    "words, said",
    [
        (("theory/minima", "laptop", "plane"), "plane cannot be drawn from its results alone (NameError"),
        (("theory/minima", "laptop", "none"), "none cannot be drawn from its results alone (it has no such"),
        (("theory/none", "laptop", "plane"), "no chapter 'theory/none'; expected one of "),
    ],
)
def test_what_cannot_be_drawn_is_said_in_a_line(words, said):
    found = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)
    assert found.returncode == 2 and not found.stdout
    assert said in found.stderr and found.stderr.count("\n") == 1


def test_nothing_that_measures_is_run_and_no_older_value_stands_for_it(cells):
    names = cells(
        "from bnbook.chapters.theorems import violations\n"
        "x, y, z = {}, {}, 1\n"
        "for k in range(3):\n    y[k] = 2 * k\n    x[k] = violations([[k]])\n"
        "z = violations([[0]])\n"
        "def own(k):\n    return violations([[k]])\n"
        "w = own(1)\n"
    )
    assert names["y"] == {0: 0, 1: 2, 2: 4}
    assert not {"x", "z", "w"} & set(names)


def test_what_is_recorded_stands_for_what_was_measured(cells, evidence):
    name = next(name for name in evidence.results if name.startswith("share."))
    names = cells(
        "from bnbook.chapters.theorems import violations\nfrom bnbook.results import record\n"
        f"table = {{}}\nfor k in ('{name}',):\n"
        "    table[k] = found = violations([[0]])\n    record(k, found, note='')\n"
    )
    assert np.array_equal(names["table"][name], evidence.results[name])
    assert names["found"] is names["table"][name]


def test_of_a_training_its_steps_are_known():
    arm = Arm(norm="none", steps=10, evaluate_every=5)
    assert redraw.steps_alone([arm])[arm]["step"].tolist() == [[0, 5, 10]]
