"""A cell that a chapter shows is one idea, at most 24 lines of 110 columns; a folded one, which sets up or records, at
most twice as long; both formatted as the package is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from bookpress.pipeline import chapters

ROOT = Path(__file__).resolve().parents[2]
LINES, COLUMNS, FOLDED = 24, 110, "hide-input"


def test_cells_are_short_and_formatted(tmp_path):
    long = []
    for chapter in chapters.discover():
        for number, cell in enumerate(cell for cell in chapter.notebook.cells if cell.cell_type == "code"):
            tags = cell.metadata.get("tags", [])
            if "parameters" in tags:
                continue
            most = 2 * LINES if FOLDED in tags else LINES
            name = f"{chapter.name.replace('/', '-')}-{number}"
            (tmp_path / f"{name}.py").write_text(cell.source + "\n", encoding="utf-8")
            lines = [line for line in cell.source.splitlines() if line.strip()]
            long += [name] if len(lines) > most or max(map(len, lines)) > COLUMNS else []
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    words = [sys.executable, "-m", "ruff", "format", "--check", "--quiet", "."]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert not long and done.returncode == 0, done.stdout
