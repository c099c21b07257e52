"""In no commit did the file of locks do anything but grow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bookpress.claims import locks

ROOT = Path(__file__).resolve().parents[2]
FILE = "book/locks.jsonl"


def git(root: Path, *words: str) -> subprocess.CompletedProcess:
    named = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    return subprocess.run(["git", "-C", str(root), *named, *words], capture_output=True, text=True)


def shrunk(root: Path) -> list[str]:
    """The steps of the history that took a line out or changed one: commits, merges against the branch that they were
    made on, and the working copy. What is put between lines breaks the chain (`locks.read`)."""
    asked = (["log", "--format="], ["log", "--format=", "--first-parent", "-m"], ["diff", "HEAD"])
    said = (git(root, *words, "--numstat", "--", FILE).stdout.splitlines() for words in asked)
    return [line for lines in said for line in lines if line and line.split()[1] != "0"]


def test_the_locks_of_this_book_only_grew():
    if git(ROOT, "rev-parse", "HEAD").returncode:
        pytest.skip("no git repository here: how the file of locks grew cannot be seen")
    assert shrunk(ROOT) == [], "book/locks.jsonl was rewritten; expected lines added at its end only"
    locks.read(ROOT / FILE)


def test_a_history_in_which_it_did_anything_else_is_refused(tmp_path):
    def commit(text: str) -> None:
        (tmp_path / FILE).write_text(text)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", "x")

    (tmp_path / "book").mkdir()
    git(tmp_path, "init", "-q", "-b", "main")
    commit("a\nb\n")
    commit("a\nb\nc\n")
    assert shrunk(tmp_path) == []
    git(tmp_path, "checkout", "-qb", "other")
    commit("a\nb\nc\nd\n")
    git(tmp_path, "checkout", "-q", "main")
    commit("a\nb\nc\ne\n")
    git(tmp_path, "merge", "-q", "--no-commit", "-s", "ours", "other")
    commit("a\nb\nc\nd\n")
    assert len(shrunk(tmp_path)) == 1, "a merge that loses a line of its own branch"
    commit("a\nB\nc\nd\n")
    commit("a\nb\nc\nd\n")  # to put it back does not heal it
    (tmp_path / FILE).write_text("a\n")
    assert len(shrunk(tmp_path)) >= 4
