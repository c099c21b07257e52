"""The lines of book/locks.jsonl: one JSON object an event, each with the hash of the line before it.

"Before it" is the line before of the same chapter, so that work on two chapters can be merged; what is in the
file is never rewritten.

| event | says | fields besides `event`, `chapter`, `date`, `previous` |
|---|---|---|
| locked | the first test of a claim | `claim`, `test`, `says`, `measure`, `planned`, `stop`, `seen`, `why` |
| changed | another test, plan or way to measure | the same |
| carried | measured otherwise, with the same numbers | `profile`, `claims`, `was`, `now` |
| published | results that are known from here on | `profile`, `content`, `seeds` |
| withdrawn | the book no longer lists the claim | `claim`, `why` |
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from bnbook import paths
from bnbook.errors import BnbookError

NAME = "locks.jsonl"
FIXED = "fixed n"  # the one rule for stopping: the planned seeds are run, all of them, and no more
TESTED = {"claim", "test", "says", "measure", "planned", "stop", "seen"}
#: Event -> fields that it needs; `why` may stand in every line, `commit` in those entered from the history.
EVENTS = {
    "locked": TESTED,
    "changed": TESTED,
    "carried": {"profile", "claims", "was", "now"},
    "published": {"profile", "content", "seeds"},
    "withdrawn": {"claim", "why"},
}
ALL = {"event", "chapter", "date", "previous"}


@dataclass(frozen=True)
class Line:
    """One event; `number` counts the lines of the file from 1, `digest` is the SHA-256 of the line's text."""

    number: int
    digest: str
    content: Mapping[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.content[key]

    def get(self, key: str, default: Any = "") -> Any:
        return self.content.get(key, default)

    @property
    def event(self) -> str:
        return self.content["event"]

    @property
    def tests(self) -> bool:
        """Whether it fixes a test."""
        return self.event in ("locked", "changed")

    def names(self, claim: str) -> bool:
        return self.get("claim") == claim or claim in self.get("claims", ())


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
    return parse(file.read_text(encoding="utf-8"))


@lru_cache(maxsize=8)  # one command asks for every verdict
def parse(text: str) -> Chain:
    """The chain that a text holds; BnbookError as `read` says."""
    lines, heads = [], {}
    if text and not text.endswith("\n"):
        _fail(text.count("\n") + 1, "it is cut off", "a line break at the end of the file")
    for number, written in enumerate(text.splitlines(), start=1):
        line = Line(number, digest(written), _content(number, written))
        chapter = line["chapter"]
        if line["previous"] != heads.get(chapter, ""):
            _fail(
                number,
                f"`previous` is not the hash of the line of {chapter} before it: a line was changed, "
                "removed or put between",
                "a file that only grows; git log -p book/locks.jsonl shows what it was",
            )
        heads[chapter] = line.digest
        lines.append(line)
    return Chain(tuple(lines))


def append(contents: Sequence[Mapping[str, Any]]) -> Chain:
    """Write new events below what is there, each with its date (unless it has one) and `previous`; returns
    the chain that the file now holds."""
    chain, file = read(), path()
    heads = {content["chapter"]: chain.head(content["chapter"]) for content in contents}
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")
    written = []
    for content in contents:
        chapter = content["chapter"]
        text = _text({**content, "date": content.get("date", now), "previous": heads[chapter]})
        _content(len(chain.lines) + len(written) + 1, text)
        heads[chapter] = digest(text)
        written.append(text + "\n")
    with file.open("a", encoding="utf-8") as out:
        out.write("".join(written))
    return read(file)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def short(value: str) -> str:
    """As much of a hash as a line keeps."""
    return value[:16]


def ranges(seeds: Iterable[int]) -> list[list[int]]:
    """Seeds as first and last of each run of them: [0, 1, 2, 7] is [[0, 2], [7, 7]]."""
    found: list[list[int]] = []
    for seed in sorted(set(seeds)):
        if found and seed == found[-1][1] + 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return found


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _content(number: int, written: str) -> Mapping[str, Any]:
    try:
        content = json.loads(written)
        event = content["event"]
    except (ValueError, TypeError, KeyError):
        _fail(number, "it is no event", '{"event": "locked", …}, as `bnbook lock` writes it')
    if event not in EVENTS:
        _fail(number, f"event {event!r} is unknown", f"one of {', '.join(EVENTS)}")
    needed, given = ALL | EVENTS[event], set(content)
    if missing := sorted(needed - given):
        _fail(number, f"it lacks {', '.join(missing)}", f"{event} with {', '.join(sorted(needed))}")
    if unknown := sorted(given - needed - {"why", "commit"}):
        _fail(number, f"it has unknown {', '.join(unknown)}", f"{event} with {', '.join(sorted(needed))}")
    if content.get("seen") and not content.get("why"):
        _fail(number, "its data were known and it does not say why it came after them", "`why`")
    return content


def _fail(number: int, wrong: str, expected: str) -> NoReturn:
    raise BnbookError(f"{NAME}, line {number}: {wrong}; expected {expected}")
