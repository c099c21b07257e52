"""In no commit did the file of locks do anything but grow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bookpress.claims import locks

ROOT = Path(__file__).resolve().parents[1]
FILE = "book/locks.jsonl"


def git(root: Path, *words: str) -> subprocess.CompletedProcess:
    named = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    return subprocess.run(["git", "-C", str(root), *named, *words], capture_output=True, text=True)


def text_at(root: Path, commit: str) -> str | None:
    """The file at a commit, "" where it is not there yet, None where the commit is beyond a shallow clone."""
    if git(root, "cat-file", "-e", f"{commit}^{{commit}}").returncode:
        return None
    return git(root, "show", f"{commit}:{FILE}").stdout


def shrunk(root: Path) -> tuple[list[str], int]:
    """Commits (or "the working copy") that did not only append, and how many steps could be compared.

    Of a merge, the first parent is continued; the lines of the others are there, in their order.
    """
    found, compared = [], 0
    steps = [line.split() for line in git(root, "log", "--format=%H %P", "--", FILE).stdout.splitlines()]
    for commit, *parents in steps:
        now = text_at(root, commit)
        for number, parent in enumerate(parents):
            then = text_at(root, parent)
            if then is None:
                continue
            compared += 1
            rest = iter(now.split("\n"))
            kept = all(line in rest for line in then.split("\n")) if number else now.startswith(then)
            found += [] if kept else [commit]
    here = root / FILE
    if not (here.read_text("utf-8") if here.is_file() else "").startswith(text_at(root, "HEAD") or ""):
        found.append("the working copy")
    return found, compared


def test_the_locks_of_this_book_only_grew():
    if git(ROOT, "rev-parse", "HEAD").returncode:
        pytest.skip("no git repository here: how the file of locks grew cannot be seen")
    found, compared = shrunk(ROOT)
    assert not found, f"book/locks.jsonl was rewritten in {found}; expected lines added at its end only"
    locks.read(ROOT / FILE)
    if not compared:
        pytest.skip("a shallow clone: no earlier version of the file of locks to compare with")


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "book").mkdir()
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "a\nb\n")
    return tmp_path


def commit(root: Path, text: str) -> None:
    (root / FILE).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "x")


@pytest.mark.parametrize(
    ("text", "wrong"), [("a\nb\nc\n", 0), ("a\n", 1), ("a\nB\nc\n", 1), ("b\na\n", 1), ("c\na\nb\n", 1)]
)
def test_a_history_in_which_it_did_anything_else_is_refused(repository, text, wrong):
    commit(repository, text)
    assert len(shrunk(repository)[0]) == wrong
    commit(repository, "a\nb\n" if wrong else text + "d\n")  # to put it back does not heal it
    assert len(shrunk(repository)[0]) >= wrong and shrunk(repository)[1] >= 1
    (repository / FILE).unlink()
    assert "the working copy" in shrunk(repository)[0]


def test_branches_are_merged_by_keeping_the_lines_of_both(repository):
    (repository / ".gitattributes").write_text((ROOT / ".gitattributes").read_text())
    commit(repository, "a\nb\n")
    git(repository, "checkout", "-qb", "other")
    commit(repository, "a\nb\nother\n")
    git(repository, "checkout", "-q", "main")
    commit(repository, "a\nb\nmine\n")
    assert git(repository, "merge", "-q", "--no-edit", "other").returncode == 0
    assert (repository / FILE).read_text() == "a\nb\nmine\nother\n"
    assert shrunk(repository)[0] == []


def test_a_shallow_clone_is_compared_as_far_as_it_reaches(repository):
    commit(repository, "a\n")
    commit(repository, "a\nb\n")
    clone = repository / "clone"
    git(repository, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    assert shrunk(clone) == ([], 0) and len(shrunk(repository)[0]) == 1
