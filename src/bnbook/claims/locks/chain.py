"""The chain of book/locks.jsonl: read whole, added to at its end."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from bnbook import paths
from bnbook.claims.locks.lines import NAME, Line, as_text, content_of, digest, fail
from bnbook.texts import read_text


@dataclass(frozen=True)
class Chain:
    """All lines in their order."""

    lines: tuple[Line, ...] = ()
    _of: dict[str, list[Line]] = field(default_factory=dict, repr=False, compare=False)

    def of_chapter(self, chapter: str) -> list[Line]:
        return [line for line in self.lines if line["chapter"] == chapter]

    def of_claim(self, claim: str) -> list[Line]:
        if not self._of:
            for line in self.lines:
                for name in filter(None, (line.get("claim"), *line.get("claims", ()))):
                    self._of.setdefault(name, []).append(line)
        return self._of.get(claim, [])

    def head(self, chapter: str) -> str:
        """The hash of a chapter's last line: what a run notes when it starts; "" where it has none."""
        own = self.of_chapter(chapter)
        return own[-1].digest if own else ""

    def position(self, chapter: str, head: str) -> int | None:
        """The number of the chapter's line with that hash, 0 for "", None where there is no such line."""
        if not head:
            return 0
        return next((line.number for line in self.of_chapter(chapter) if line.digest == head), None)


def path() -> Path:
    return paths.book_folder() / NAME


def read(file: Path | None = None) -> Chain:
    """Every line, in order; none where there is no file.

    Raises BnbookError, one line, for what is no JSON object, an unknown event, a field that is missing or
    unknown, and a line that was changed, removed or put between others.
    """
    file = file or path()
    if not file.is_file():
        return Chain()
    return parse(read_text(file, file.name))


@lru_cache(maxsize=8)  # one command asks for every verdict
def parse(text: str) -> Chain:
    """The chain that a text holds; BnbookError as `read` says."""
    lines, heads = [], {}
    if text and not text.endswith("\n"):
        fail(text.count("\n") + 1, "it is cut off", "a line break at the end of the file")
    for number, written in enumerate(text.splitlines(), start=1):
        line = Line(number, digest(written), content_of(number, written))
        chapter = line["chapter"]
        if line["previous"] != heads.get(chapter, ""):
            fail(
                number,
                f"`previous` is not the hash of the line of {chapter} before it: a line was changed, "
                "removed or put between",
                "a file that only grows; git log -p book/locks.jsonl shows what it was",
            )
        heads[chapter] = line.digest
        lines.append(line)
    return Chain(tuple(lines))


def has_new_tests(committed: str) -> bool:
    """Whether the file has more than publications that the committed text has not, or is another."""
    chain = read()
    then = parse(committed + "\n" * bool(committed and not committed.endswith("\n")))
    new = chain.lines[len(then.lines) :]
    same = [line.digest for line in then.lines] == [line.digest for line in chain.lines[: len(then.lines)]]
    return not same or any(line.event not in ("published", "carried") for line in new)


def append(contents: Sequence[Mapping[str, Any]]) -> Chain:
    """Write new events below what is there, each with its date (unless it has one) and `previous`; returns
    the chain that the file now holds."""
    chain, file = read(), path()
    heads = {content["chapter"]: chain.head(content["chapter"]) for content in contents}
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")
    written = []
    for content in contents:
        chapter = content["chapter"]
        text = as_text({**content, "date": content.get("date", now), "previous": heads[chapter]})
        content_of(len(chain.lines) + len(written) + 1, text)
        heads[chapter] = digest(text)
        written.append(text + "\n")
    with file.open("a", encoding="utf-8") as out:
        out.write("".join(written))
    return read(file)
