"""Three floors: what measures, the chapters, the press; pyproject.toml says what may import what."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from importlinter.application.use_cases import lint_imports
from importlinter.configuration import configure

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "src").rglob("*.py"))
#: A public name, or an alias beside it, would make the published runs of eight chapters stale: to be had when they are
#: run again.
BORROWED = {"report/instruments.py": {"_layers", "_left", "_owner", "_walk"}}


def test_each_floor_imports_only_what_lies_below(capsys: pytest.CaptureFixture) -> None:
    configure()
    assert lint_imports(str(ROOT / "pyproject.toml"), cache_dir=None), capsys.readouterr().out


def test_private_names_are_imported_by_nobody() -> None:
    for path in MODULES:
        nodes = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ImportFrom)]
        ours = [node for node in nodes if node.level or node.module.split(".")[0] in ("bnbook", "bookpress")]
        private = {alias.name for node in ours for alias in node.names if alias.name.startswith("_")}
        assert private <= {"__version__", *BORROWED.get("/".join(path.parts[-2:]), ())}, path
