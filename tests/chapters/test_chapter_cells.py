"""A cell that a chapter shows is one idea, at most 24 lines of 110 columns; a folded one, which sets up or records, at
most twice as long; both formatted as the package is."""

from __future__ import annotations

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

from bookpress.pipeline import chapters, publishing

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


def test_the_notebooks_of_published_runs_find_what_they_import():
    missing = []
    for name, run in publishing.kept_runs(chapters.discover()).items():
        code = [cell.source for cell in run.notebook.cells if cell.cell_type == "code"]
        for node in (node for source in code for node in ast.walk(ast.parse(source))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("bnbook"):
                missing += [
                    f"{name}: {node.module}.{each.name}"
                    for each in node.names
                    if not _found(node.module, each.name)
                ]
    assert not missing, "moved or renamed: python scripts/rewrite.py"


def _found(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(
            importlib.import_module(f"{module}.{name}")
        )
    except ModuleNotFoundError:
        return False
