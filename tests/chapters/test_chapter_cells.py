"""A cell that a chapter shows is one idea, at most 24 lines of 110 columns; a folded one, which sets up or records, at
most twice as long; both formatted as the package is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bookpress.pipeline import chapters

ROOT = Path(__file__).resolve().parents[2]
LINES, COLUMNS, FOLDED = 24, 110, "hide-input"


@pytest.mark.parametrize("chapter", chapters.discover(), ids=lambda chapter: chapter.name)
def test_cells_are_short_and_formatted(chapter, tmp_path):
    long = []
    cells = [cell for cell in chapter.notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(cells):
        tags, source = cell.metadata.get("tags", []), cell.source
        if "parameters" in tags:
            continue
        most = 2 * LINES if FOLDED in tags else LINES
        (tmp_path / f"cell{number}.py").write_text(source + "\n", encoding="utf-8")
        lines = [line for line in source.splitlines() if line.strip()]
        if len(lines) > most or max(map(len, lines)) > COLUMNS:
            long.append(f"cell {number} begins {lines[0]!r}")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    words = [sys.executable, "-m", "ruff", "format", "--check", "--quiet", "."]
    badly = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True).returncode != 0
    assert not long and not badly
