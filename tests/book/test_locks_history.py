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


@pytest.mark.parametrize(
    ("text", "wrong"), [("a\nb\nc\n", 0), ("a\n", 1), ("a\nB\nc\n", 1), ("b\na\n", 1), ("", 1)]
)
def test_a_history_in_which_it_did_anything_else_is_refused(tmp_path, text, wrong):
    def commit(text: str) -> None:
        (tmp_path / FILE).write_text(text)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", "x")

    (tmp_path / "book").mkdir()
    git(tmp_path, "init", "-q", "-b", "main")
    commit("a\nb\n")
    commit(text)
    assert bool(shrunk(tmp_path)) == bool(wrong)
    commit("a\nb\n" if wrong else text + "d\n")  # to put it back does not heal it
    assert bool(shrunk(tmp_path)) == bool(wrong)
    (tmp_path / FILE).write_text("a\n")
    assert len(shrunk(tmp_path)) > wrong


def test_a_merge_that_loses_lines_is_refused(tmp_path):
    (tmp_path / "book").mkdir()
    git(tmp_path, "init", "-q", "-b", "main")
    for branch, text in (("main", "a\n"), ("other", "a\nb\n"), ("main", "a\nc\n")):
        git(tmp_path, "checkout", "-q", *["-b"] * (branch == "other"), branch)
        (tmp_path / FILE).write_text(text)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", text)
    git(tmp_path, "merge", "-q", "-s", "ours", "other")
    assert shrunk(tmp_path) == []  # the other branch locks again
    git(tmp_path, "reset", "-q", "--hard", "HEAD~1")
    git(tmp_path, "merge", "-q", "--no-commit", "-s", "ours", "other")
    (tmp_path / FILE).write_text("a\nb\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "merged")
    assert shrunk(tmp_path)
