"""The chain of book/locks.jsonl: read whole, added to at its end."""

from __future__ import annotations

import datetime
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows, where two commands at once are not kept apart
    fcntl = None

from bnbook import atomic, paths
from bnbook.claims.locks.lines import NAME, Line, as_text, content_of, digest, fail
from bnbook.texts import read_text


@dataclass(frozen=True)
class Chain:
    """All lines in their order."""

    lines: tuple[Line, ...] = ()

    @cached_property
    def _by_chapter(self) -> dict[str, dict[str, Line]]:
        """Chapter -> its lines in their order, by their hashes."""
        found: dict[str, dict[str, Line]] = {}
        for line in self.lines:
            found.setdefault(line["chapter"], {})[line.digest] = line
        return found

    @cached_property
    def _by_claim(self) -> dict[str, list[Line]]:
        found: dict[str, list[Line]] = {}
        for line in self.lines:
            for name in filter(None, (line.get("claim"), *line.get("claims", ()))):
                found.setdefault(name, []).append(line)
        return found

    def of_chapter(self, chapter: str) -> list[Line]:
        return list(self._by_chapter.get(chapter, {}).values())

    def of_claim(self, claim: str) -> list[Line]:
        return self._by_claim.get(claim, [])

    def head(self, chapter: str) -> str:
        """The hash of a chapter's last line: what a run notes when it starts; "" where it has none."""
        own = self.of_chapter(chapter)
        return own[-1].digest if own else ""

    def position(self, chapter: str, head: str) -> int | None:
        """The number of the chapter's line with that hash, 0 for "", None where there is no such line."""
        if not head:
            return 0
        line = self._by_chapter.get(chapter, {}).get(head)
        return line and line.number


def path() -> Path:
    return paths.book_folder() / NAME


def read(file: Path | None = None) -> Chain:
    """Every line, in order; none where there is no file.

    Raises BnbookError, one line, for what is no JSON object, an unknown event, a field that is missing or
    unknown or of another form, and a line that was changed, removed, put between others or dated before the
    one above it.
    """
    global _last
    file = file or path()
    if not file.is_file():
        return Chain()
    content = file.read_bytes()
    if content != _last[0]:  # one command asks for every verdict; bytes compare faster than they decode
        _last = content, parse(read_text(file, file.name))
    return _last[1]


_last: tuple[bytes, Chain] = (b"", Chain())


@lru_cache(maxsize=8)
def parse(text: str) -> Chain:
    """The chain that a text holds; BnbookError as `read` says."""
    lines, heads, dates = [], {}, {}
    if text and not text.endswith("\n"):
        fail(text.count("\n") + 1, "it is cut off", "a line break at the end of the file")
    for number, written in enumerate(text.split("\n")[:-1], start=1):  # other separators stand inside texts
        line = Line(number, digest(written), content_of(number, written))
        chapter = line["chapter"]
        if line["previous"] != heads.get(chapter, ""):
            fail(
                number,
                f"`previous` is not the hash of the line of {chapter} before it: a line was changed, "
                "removed or put between",
                "a file that only grows; git log -p book/locks.jsonl shows what it was",
            )
        if line["date"] < dates.get(chapter, "") and not line.get("commit"):
            above = dates[chapter]
            fail(number, f"{line['date']} is before {chapter}'s line above it", f"{above} or later")
        heads[chapter], dates[chapter] = line.digest, line["date"]
        lines.append(line)
    return Chain(tuple(lines))


def has_new_tests(committed: str) -> bool:
    """Whether the file has more than publications that the committed text has not, or is another."""
    chain = read()
    then = parse(committed + "\n" * bool(committed and not committed.endswith("\n")))
    new = chain.lines[len(then.lines) :]
    same = [line.digest for line in then.lines] == [line.digest for line in chain.lines[: len(then.lines)]]
    return not same or any(line.event not in ("published", "carried") for line in new)


@contextmanager
def alone() -> Iterator[None]:
    """Let one process at a time look at the file and add to it; the others wait. Within itself it is free.

    The lock is one of the folder, for the file is replaced, and dies with the process that holds it.
    """
    global _alone
    if _alone or fcntl is None:
        yield
        return
    folder = os.open(path().parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        _alone = True
        yield
    finally:
        _alone = False
        os.close(folder)


_alone = False


def now() -> str:
    """The date of a line that is written now."""
    return _text(datetime.datetime.now(datetime.UTC))


def _text(date: datetime.datetime) -> str:
    return date.strftime("%Y-%m-%dT%H:%MZ")


def append(contents: Sequence[Mapping[str, Any]]) -> Chain:
    """Write new events below what is there, all of them or none, each with its date and `previous`; returns
    the chain that the file now holds.

    The date is now's, or that of the chapter's line before where another clock was ahead.
    """
    with alone():
        chain, file = read(), path()
        last = {content["chapter"]: chain.of_chapter(content["chapter"])[-1:] for content in contents}
        heads = {chapter: chain.head(chapter) for chapter in last}
        dates = {chapter: max([now(), *(line["date"] for line in lines)]) for chapter, lines in last.items()}
        written = []
        for content in contents:
            chapter = content["chapter"]
            text = as_text({**content, "date": dates[chapter], "previous": heads[chapter]})
            content_of(len(chain.lines) + len(written) + 1, text)
            heads[chapter] = digest(text)
            written.append(text + "\n")
        before = file.read_bytes() if file.is_file() else b""
        atomic.write_bytes(file, before + "".join(written).encode("utf-8"))
        return read(file)


def misdated() -> list[str]:
    """Lines whose date cannot be, one line each: it is to come, or after the commit that brought the line."""
    latest, committed, found = now(), _committed(), []
    for line in read().lines:
        bound = min(latest, committed.get(line.number, latest))
        if line["date"] > bound:
            found.append(f"{NAME}, line {line.number} is dated {line['date']}; expected {bound} or earlier")
    return found


def _committed() -> dict[int, str]:
    """Line -> date of the commit that brought it, as far as git knows."""
    words = ["git", "-C", str(path().parent), "blame", "--porcelain", "--", NAME]
    try:
        said = subprocess.run(words, capture_output=True, encoding="utf-8", errors="replace").stdout
    except OSError:  # no git
        return {}
    brought, dates, commit = {}, {}, ""
    for row in said.split("\n"):
        if head := re.match(r"([0-9a-f]{40}) \d+ (\d+)", row):
            commit, brought[int(head[2])] = head[1], head[1]
        elif row.startswith("committer-time "):
            dates[commit] = _text(datetime.datetime.fromtimestamp(int(row.split()[1]), datetime.UTC))
    return {number: dates[commit] for number, commit in brought.items() if int(commit, 16)}
