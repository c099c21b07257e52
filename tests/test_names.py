"""Every name that a chapter or the package uses is defined: a run of an hour shall not end at a lost
import."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from pyflakes.checker import Checker
from pyflakes.messages import ImportShadowedByLoopVar, RedefinedWhileUnused, UndefinedLocal, UndefinedName

import bnbook
from bnbook.pipeline import chapters

WRONG = (UndefinedName, UndefinedLocal, ImportShadowedByLoopVar, RedefinedWhileUnused)
CHAPTERS = {chapter.name: chapter for chapter in chapters.discover()}


def complaints(source: str) -> list[str]:
    found = Checker(ast.parse(source), withDoctest=False).messages
    return [f"line {m.lineno}: {m.message % m.message_args}" for m in found if isinstance(m, WRONG)]


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_uses_names_that_it_has(name) -> None:
    cells = [cell.source for cell in CHAPTERS[name].notebook.cells if cell.cell_type == "code"]
    assert complaints("\n".join(cells)) == []


def test_the_package_uses_names_that_it_has() -> None:
    for path in sorted(Path(bnbook.__file__).parent.rglob("*.py")):
        assert complaints(path.read_text(encoding="utf-8")) == [], path


def test_a_lost_import_is_seen() -> None:
    assert complaints("import numpy as np\nprint(np.pi)") == []
    assert "undefined name 'np'" in complaints("print(np.pi)")[0]
