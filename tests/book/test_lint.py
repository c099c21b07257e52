"""ruff formats and lints everything, and a chapter uses only names that it has: a run of an hour shall not
end at a lost import."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import nbformat

from bookpress.pipeline import chapters

ROOT = Path(__file__).resolve().parents[2]
CODE = ("src", "tests", "benchmarks")


def ruff(*words: str) -> list[str]:
    """The lines in which ruff complains."""
    command = [sys.executable, "-m", "ruff", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode == 0) or done.stdout.strip(), done.stderr
    return done.stdout.splitlines() if done.returncode else []


def complaints(folder: Path, **notebooks: nbformat.NotebookNode) -> list[str]:
    """Of cells: names that are undefined, shadowed or bound twice, and the like."""
    for name, notebook in notebooks.items():
        (folder / f"{name}.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
    # a parameter's annotation says its bounds in words
    return ruff(
        "check", "--output-format=concise", "--select=F", "--ignore=F401,F722", "--isolated", str(folder)
    )


def test_everything_is_formatted() -> None:
    assert ruff("format", "--check", "--output-format=concise", *CODE) == []


def test_everything_passes_the_linter() -> None:
    assert ruff("check", "--output-format=concise", *CODE) == []


def test_a_chapter_uses_names_that_it_has(tmp_path) -> None:
    assert (
        complaints(tmp_path, **{each.name.replace("/", "-"): each.notebook for each in chapters.discover()})
        == []
    )


def test_the_page_of_public_names_has_names_that_there_are():
    page = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^from (bnbook\S*) import (.+)$", page, flags=re.M)
    gone = [f"{room}.{name}" for room, names in listed for name in names.split(", ")
            if not hasattr(importlib.import_module(room), name)]  # fmt: skip
    assert len(listed) > 10 and gone == []


def test_a_chapter_checks_its_parameters_before_it_uses_one():
    """Whoever runs a chapter's notebook by papermill alone is told in one line what a parameter may be."""
    late = set()
    for chapter in chapters.discover():
        used = set()
        for statement in (each for cell in chapter.code_cells for each in ast.parse(cell).body):
            if "use_style()" in ast.unparse(statement):
                break
            if not isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef):
                used |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        late |= {chapter.name} if used & set(chapter.defaults) else set()
    assert late == set()
