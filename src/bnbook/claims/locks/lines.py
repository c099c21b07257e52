"""The lines of book/locks.jsonl: one JSON object an event, each with the hash of the line before it.

"Before it" is the line before of the same chapter, so that work on two chapters can be merged; what is in the
file is never rewritten.

| event | says | fields besides `event`, `chapter`, `date`, `previous` |
|---|---|---|
| locked | a first test | `claim`, `test`, `says`, `measure`, `planned`, `stop`, `seen`, `why`, `power` |
| changed | another test, plan or way to measure | the same |
| carried | measured otherwise, with the same numbers | `profile`, `claims`, `was`, `now` |
| published | results that are known from here on | `profile`, `content`, `seeds` |
| withdrawn | the book no longer lists the claim | `claim`, `why` |
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from bnbook.errors import BnbookError

NAME = "locks.jsonl"
FIXED = "fixed n"  # the one rule for stopping: the planned seeds are run, all of them, and no more
AFTER = " after its data"  # what the reason of a line ends with that had something in `seen`
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
MAY = {"why", "commit", "power"}
#: To the minute, in UTC: as texts they are in the order of time.
DATE = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\dZ")
#: Fields that are no text.
TYPES = dict.fromkeys(("planned", "seen", "power"), dict)
TYPES |= dict.fromkeys(("claims", "was", "now", "seeds"), list)


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


def as_text(content: Mapping[str, Any]) -> str:
    """A line as it is written: whatever its texts hold, it has no line break and is UTF-8."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def written_by_hand(text: str) -> str:
    """A reason as one line of characters that print: all white space is one space, all else its number."""
    words = " ".join(text.split())
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in words)


def content_of(number: int, written: str) -> Mapping[str, Any]:
    """What a line says; BnbookError where it is no event with the fields that it needs."""
    try:
        content = json.loads(written)
        event = content["event"]
    except (ValueError, TypeError, KeyError, RecursionError):
        fail(number, "it is no event", '{"event": "locked", …}, as `bnbook lock` writes it')
    if event not in list(EVENTS):
        fail(number, f"event {event!r} is unknown", f"one of {', '.join(EVENTS)}")
    needed, given = ALL | EVENTS[event], set(content)
    if missing := sorted(needed - given):
        fail(number, f"it lacks {', '.join(missing)}", f"{event} with {', '.join(sorted(needed))}")
    if unknown := sorted(given - needed - MAY):
        fail(number, f"it has unknown {', '.join(unknown)}", f"{event} with {', '.join(sorted(needed))}")
    for name in sorted(given):
        if not _is_well(name, content[name]):
            fail(number, f"its {name} is {str(content[name])[:60]!r}", "one as `bnbook lock` writes it")
    if content.get("seen") and not content.get("why"):
        fail(number, "its data were known and it does not say why it came after them", "`why`")
    return content


def _is_well(name: str, value: Any) -> bool:
    """Whether a field has the form that its readers rest on."""
    if not isinstance(value, TYPES.get(name, str)):
        return False
    if name == "date":
        return bool(DATE.fullmatch(value))
    if name == "planned":
        plans = value.values()
        return all(isinstance(each, dict) and isinstance(each.get("settings"), str) for each in plans)
    if name in ("seen", "power") and not all(isinstance(each, list) for each in value.values()):
        return False
    listed = [each for part in value.values() for each in part] if isinstance(value, dict) else value
    if name in ("seen", "seeds"):
        return all(map(_is_range, listed))
    return isinstance(listed, str) or all(isinstance(each, str) for each in listed)


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(seed, int) for seed in value)


def fail(number: int, wrong: str, expected: str) -> NoReturn:
    """BnbookError about one line."""
    raise BnbookError(f"{NAME}, line {number}: {wrong}; expected {expected}")
