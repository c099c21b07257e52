"""In no commit did the file of locks do anything but grow."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from bookpress.claims import locks

ROOT = Path(__file__).resolve().parents[2]
FILE = "book/locks.jsonl"
CHAPTER = re.compile(r'"chapter":"[^"]+"')


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

    Of a merge, each chapter's lines go on from one parent; the lines of the others are there, in their order.
    """
    found, compared = [], 0
    steps = [line.split() for line in git(root, "log", "--format=%H %P", "--", FILE).stdout.splitlines()]
    for commit, *parents in steps:
        now = text_at(root, commit)
        before = [then for parent in parents if (then := text_at(root, parent)) is not None]
        compared += len(before)
        kept = all(_in_order(then.split("\n"), now.split("\n")) for then in before)
        if before and not (kept and _continues(now, before)):
            found.append(commit)
    here = root / FILE
    if not (here.read_text("utf-8") if here.is_file() else "").startswith(text_at(root, "HEAD") or ""):
        found.append("the working copy")
    return found, compared


def _in_order(lines, all_of_them):
    rest = iter(all_of_them)
    return all(line in rest for line in lines)


def _continues(now, before):
    """Whether a version goes on from the one before it, or a merge, chapter by chapter, from one of those before it."""
    if len(before) == 1:
        return now.startswith(before[0])
    after, *were = map(_by_chapter, (now, *before))
    return all(any(lines[: len(then[name])] == then[name] for then in were) for name, lines in after.items())


def _by_chapter(text):
    found = defaultdict(list)
    for line in text.splitlines():
        found["".join(CHAPTER.findall(line)[:1])].append(line)
    return found


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


def test_a_shallow_clone_is_compared_as_far_as_it_reaches(repository):
    commit(repository, "a\n")
    commit(repository, "a\nb\n")
    clone = repository / "clone"
    git(repository, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    assert shrunk(clone) == ([], 0) and len(shrunk(repository)[0]) == 1
