"""ruff formats and lints everything, a chapter uses only names that it has, for a run of an hour shall not end at a lost
import, and each floor imports what lies below."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from importlinter.application.use_cases import lint_imports
from importlinter.configuration import configure

from bookpress.pipeline import chapters, inks

ROOT = Path(__file__).resolve().parents[2]
CODE = ("src", "tests", "benchmarks")
MODULES = {path: path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
#: A public name, or an alias beside it, would make the published runs of eight chapters stale: to be had when they are
#: run again.
BORROWED = {"report/instruments.py": {"_layers", "_left", "_owner"}, "report/measuring.py": {"_walk"}}


def ruff(*words: str) -> list[str]:
    """The lines in which ruff complains."""
    command = [sys.executable, "-m", "ruff", words[0], "--output-format=concise", *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode == 0) or done.stdout.strip(), done.stderr
    return done.stdout.splitlines() if done.returncode else []


def test_everything_is_formatted_and_passes_the_linter() -> None:
    assert ruff("format", "--check", *CODE) == []
    assert ruff("check", *CODE) == []


def test_a_chapter_uses_names_that_it_has(tmp_path) -> None:
    """No name is undefined, shadowed or bound twice; a parameter's annotation says its bounds in words."""
    for each in chapters.discover():
        path = tmp_path / f"{each.name.replace('/', '-')}.ipynb"
        path.write_text(nbformat.writes(each.notebook), encoding="utf-8")
    assert ruff("check", "--select=F", "--ignore=F401,F722", "--isolated", str(tmp_path)) == []


def test_the_page_of_public_names_has_names_that_there_are():
    page = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^from (bnbook\S*) import (.+)$", page, flags=re.M)
    bound = [(room, name) for room, names in listed for name in names.split(", ")]
    gone = [each for each in bound if not hasattr(importlib.import_module(each[0]), each[1])]
    assert len(listed) > 10 and gone == []
    assert len({name for _, name in bound}) == len(bound), "copied together, one would overwrite another"


def test_a_chapter_checks_its_parameters_before_it_uses_one():
    """Whoever runs a chapter's notebook by papermill alone is told in one line what a parameter may be."""
    for chapter in chapters.discover():
        used = set()
        for statement in (each for cell in chapter.code_cells for each in ast.parse(cell).body):
            if "use_style()" in ast.unparse(statement):
                break
            if not isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef):
                used |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        assert not used & set(chapter.defaults), chapter.name


def test_each_floor_imports_only_what_lies_below(capsys: pytest.CaptureFixture) -> None:
    configure()
    assert lint_imports(str(ROOT / "pyproject.toml"), cache_dir=None), capsys.readouterr().out


def test_private_names_are_imported_by_nobody() -> None:
    for path, source in MODULES.items():
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
        ours = [node for node in nodes if node.level or node.module.split(".")[0] in ("bnbook", "bookpress")]
        private = {alias.name for node in ours for alias in node.names if alias.name.startswith("_")}
        assert private <= {"__version__", *BORROWED.get("/".join(path.parts[-2:]), ())}, path


def test_no_drawing_has_an_ink_without_a_meaning() -> None:
    """One colour, one meaning: PALETTE names each."""
    for path, source in MODULES.items():
        if {"chapters", "plots"} & {*path.parts}:
            inked = re.findall(r"#[0-9a-f]{6}\b", source.lower())
            assert [ink for ink in inked if not inks.is_grey(ink)] == [], path
            assert not re.search(r'"C\d"|"tab:', source), f"{path}: an ink by its number"
