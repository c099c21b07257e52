"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_book

ROOT = Path(__file__).resolve().parents[1]
VARIABLES = (
    "BNBOOK_ROOT",
    "BNBOOK_RUNS",
    "BNBOOK_STORE",
    "BNBOOK_EXECUTED",
    "BNBOOK_RESULTS",
    "BNBOOK_FIGURES",
)


@pytest.fixture
def tiny(tmp_path, monkeypatch) -> Path:
    """The root of a fresh one-chapter book, and the one that `bnbook` finds."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    tiny_book.write(tmp_path, ROOT / "_config.yml")
    return tmp_path


@pytest.fixture(scope="session")
def tiny_ran(tmp_path_factory) -> Path:
    """A one-chapter book whose chapter ran at smoke and at laptop; copy it before changing it."""
    root = tmp_path_factory.mktemp("ran")
    tiny_book.write(root, ROOT / "_config.yml")
    git = ["git", "-C", str(root), "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "book", "_config.yml", "_toc.yml"], ["commit", "-qm", "A coin"]):
        subprocess.run([*git, *words], check=True)
    for profile in ("smoke", "laptop"):
        bnbook("run", "coin", "--profile", profile, root=root)
    return root


@pytest.fixture
def ran(tiny_ran, tmp_path, monkeypatch) -> Path:
    """A private copy of `tiny_ran`, and the book that `bnbook` finds."""
    root = tmp_path / "book"
    shutil.copytree(tiny_ran, root)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BNBOOK_ROOT", str(root))
    return root


def bnbook(*words: str, root: Path, code: int = 0, **environment: str) -> subprocess.CompletedProcess:
    """Run the command in a process of its own, as a user does, and check its exit code."""
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    clean |= {"BNBOOK_ROOT": str(root), **environment}
    command = [sys.executable, "-m", "bnbook", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=clean, cwd=root, timeout=1800)
    assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def built_site(tmp_path_factory) -> Path:
    """The site folder of the real book, every chapter run at the smoke profile: the longest part of the
    suite."""
    runs = tmp_path_factory.mktemp("runs")
    places = {"BNBOOK_RUNS": str(runs), "BNBOOK_STORE": str(runs / "store")}
    bnbook("run", "--all", "--profile", "smoke", root=ROOT, **places)
    bnbook("check", "--runs", "--profile", "smoke", root=ROOT, **places)
    site = tmp_path_factory.mktemp("site")
    bnbook("build", "--runs", "--profile", "smoke", root=ROOT, BNBOOK_BUILD=str(site), **places)
    (site / "runs").symlink_to(runs)
    return site
