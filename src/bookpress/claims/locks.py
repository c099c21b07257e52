"""What was fixed before the data: book/locks.jsonl, a file that only grows.

lines: what a line says · chain: the file, read and added to · deviations: which tests were changed, and why · standing:
whether a run judges a claim by a test that stood before it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, create_model

from bookpress import atomic, paths, stamp
from bookpress.claims.claim import Claim
from bookpress.errors import PressError
from bookpress.results import Results
from bookpress.schema import mistake
from bookpress.texts import read_text

# ---- The lines of book/locks.jsonl: one JSON object an event, each with the hash of the line before it -------------
# "Before it" is the line before of the same chapter, so that work on two chapters can be merged; what is in the
# file is never rewritten.

NAME = "locks.jsonl"
AFTER = " after its data"  # what the reason of a line ends with of which planned seeds were `seen`


def _to_the_minute(value: str) -> str:
    """In UTC: as texts they are in the order of time."""
    if not re.fullmatch(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\dZ", value):
        raise ValueError(f"is {value!r}; expected one such as 2026-05-02T10:00Z")
    return value


TEXTS = list[str]
RANGES = list[Annotated[list[int], Field(min_length=2, max_length=2)]]  # of seeds, first and last
#: Of a profile: a hash of its settings, and beside it numbers of seeds.
PLAN = create_model("PLAN", __config__=ConfigDict(strict=True, extra="allow"), settings=(str, ...))
FIXED = {"measure": str, "planned": dict[str, PLAN], "seen": dict[str, RANGES]}
#: As lines were written until November 2026, a claim each.
OLD = FIXED | {"claim": str, "test": str, "says": str, "stop": str}
EVENTS: dict[str, dict[str, Any]] = {
    # the tests of claims, all that were fixed at one stroke: how they are measured, what is planned, what had been seen
    "lock": FIXED | {"tests": dict[str, str]},
    "locked": OLD,  # a first test
    "changed": OLD,  # another test, plan or way to measure
    # measured otherwise, with the same numbers: by what code and settings before and from here on
    "carried": {"profile": str, "claims": TEXTS, "was": TEXTS, "now": TEXTS},
    # other code, the same numbers, whatever the profile: what measured before and from here on (`same`)
    "same": {"was": str, "now": str},
    "published": {"profile": str, "content": str, "seeds": RANGES},  # results that are known from here on
    "withdrawn": {"claim": str, "why": str},  # the book no longer lists the claim
}
ALL = {"event": str, "chapter": str, "date": Annotated[str, AfterValidator(_to_the_minute)], "previous": str}
#: `why` may stand in every line, `commit` in those entered from the history.
MAY = {"why": (str, ""), "commit": (str, ""), "power": (dict[str, TEXTS], {})}


@lru_cache
def _form(event: str) -> Any:
    """What validates the lines of an event; KeyError for none that there is."""
    needed = {name: (kind, ...) for name, kind in (ALL | EVENTS[event]).items()}
    return create_model(event, __config__=ConfigDict(strict=True, extra="forbid"), **MAY | needed)


class Line(dict):
    """One event; `number` counts the lines of the file from 1, `digest` is the SHA-256 of its text, `tests` has the claims
    whose test it fixes, each with the short hash of that."""

    def __init__(self, number: int, digest: str, content: Mapping[str, Any]) -> None:
        super().__init__({"why": "", "commit": ""} | content)
        self.number, self.digest, self.event = number, digest, content["event"]
        old = self.event in ("locked", "changed")
        self.tests = {content["claim"]: content["test"]} if old else content.get("tests", {})


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


def line_of(number: int, written: str) -> Line:
    """What a line says; PressError where it is no event with the fields that it needs."""
    try:
        content = json.loads(written)
        form = _form(content["event"])
    except (ValueError, TypeError, KeyError, RecursionError):
        fail(number, "it is no event", f'{{"event": one of {", ".join(EVENTS)}, …}}, as `lock` writes it')
    try:
        form.model_validate(content)
    except ValidationError as error:
        raise PressError(f"{NAME}, line {number}: {content['event']}: {mistake(error)}") from None
    if content.get("seen") and not content.get("why"):
        fail(number, "its data were known and it does not say why it came after them", "`why`")
    return Line(number, hashlib.sha256(written.encode("utf-8")).hexdigest(), content)


def fail(number: int, wrong: str, expected: str) -> NoReturn:
    """PressError about one line."""
    raise PressError(f"{NAME}, line {number}: {wrong}; expected {expected}")


# ---- The chain of book/locks.jsonl: read whole, added to at its end ------------------------------------------------


class Chain:
    """All lines in their order."""

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.lines = tuple(lines)
        self._by_chapter, self._by_claim = (
            defaultdict[str, list[Line]](list),
            defaultdict[str, list[Line]](list),
        )
        self._alike = dict[tuple[str, str], str]()  # (chapter, what measures) -> what gave the same numbers
        self._names = dict[tuple[str, str], str]()  # what `measured` is asked again and again
        for line in self.lines:
            chapter = line["chapter"]
            self._by_chapter[chapter].append(line)
            for claim in {line.get("claim"), *line.tests, *line.get("claims", ())} - {None}:
                self._by_claim[claim].append(line)
            if line.event == "same":
                was, now = (self._first(chapter, line[key]) for key in ("was", "now"))
                self._alike |= {(chapter, now): was} if was != now else {}

    def _first(self, chapter: str, named: str) -> str:
        named = stamp.name_now(named)
        while (chapter, named) in self._alike:
            named = self._alike[chapter, named]
        return named

    def measured(self, chapter: str, named: str) -> str:
        """What measures a chapter, by its short name, as one name for all that is known to give the same numbers."""
        if (chapter, named) not in self._names:
            self._names[chapter, named] = self._first(chapter, named)
        return self._names[chapter, named]

    def of_chapter(self, chapter: str) -> list[Line]:
        return self._by_chapter.get(chapter, [])

    def of_claim(self, claim: str) -> list[Line]:
        return self._by_claim.get(claim, [])

    def tests_of(self, claim: str) -> list[Line]:
        """Those that fix a test of the claim."""
        return [line for line in self.of_claim(claim) if line.tests]

    def head(self, chapter: str) -> str:
        """The hash of a chapter's last line: what a run notes when it starts; "" where it has none."""
        return next((line.digest for line in reversed(self.of_chapter(chapter))), "")

    def position(self, chapter: str, head: str) -> int | None:
        """The number of the chapter's line with that hash, 0 for "", None where there is no such line."""
        numbers = (line.number for line in self.of_chapter(chapter) if line.digest == head)
        return next(numbers, None) if head else 0


def since_published(chain: Chain, chapter: str) -> list[Line]:
    """A chapter's lines behind its last publication."""
    own = chain.of_chapter(chapter)
    return own[max((k for k, line in enumerate(own, start=1) if line.event == "published"), default=0) :]


def path() -> Path:
    return paths.book_folder() / NAME


def read(file: Path | None = None) -> Chain:
    """Every line, in order; none where there is no file.

    Raises PressError, one line, for what is no JSON object, an unknown event, a field that is missing or
    unknown or of another form, and a line that was changed, removed, put between others or dated before the
    one above it.
    """
    file = file or path()
    try:
        stat = os.stat(file)
    except OSError:
        return Chain()
    if time.time_ns() - stat.st_mtime_ns < SETTLED:  # it may be written again without a later date
        return parse(read_text(file, file.name))
    return _settled(file, stat.st_mtime_ns, stat.st_size, stat.st_ino)


SETTLED = 10**9  # nanoseconds


@lru_cache(maxsize=4)
def _settled(file: Path, *_: int) -> Chain:
    """The file in one state of it: every verdict asks."""
    return parse(read_text(file, file.name))


@lru_cache(maxsize=8)
def parse(text: str) -> Chain:
    """The chain that a text holds; PressError as `read` says."""
    lines, last = [], dict[str, Line]()
    if text and not text.endswith("\n"):
        fail(text.count("\n") + 1, "it is cut off", "a line break at the end of the file")
    for number, written in enumerate(text.split("\n")[:-1], start=1):  # other separators stand inside texts
        line = line_of(number, written)
        chapter, above = line["chapter"], last.get(line["chapter"])
        if line["previous"] != (above.digest if above else ""):
            wrong = f"`previous` is not the hash of the line of {chapter} before it: a line was changed, removed or put between"
            fail(number, wrong, "a file that only grows; git log -p book/locks.jsonl shows what it was")
        if above and line["date"] < above["date"] and not line["commit"]:
            wrong = f"{line['date']} is before {chapter}'s line above it"
            fail(number, wrong, f"{above['date']} or later")
        last[chapter] = line
        lines.append(line)
    return Chain(lines)


def has_new_tests(committed: str) -> bool:
    """Whether the file has more than publications that the committed text has not, or is another."""
    then = parse(committed + "\n" * bool(committed and not committed.endswith("\n"))).lines
    lines = read().lines
    same = [line.digest for line in then] == [line.digest for line in lines[: len(then)]]
    return not same or any(line.event not in ("published", "carried", "same") for line in lines[len(then) :])


def alone() -> AbstractContextManager:
    """Let one process at a time look at the file and add to it; the others wait. Within itself it is free."""
    from filelock import FileLock

    return FileLock(paths.repository_root() / f".{NAME}.lock", is_singleton=True)


def now() -> str:
    """The date of a line that is written now."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%MZ")


def append(contents: Sequence[Mapping[str, Any]]) -> Chain:
    """Write new events below what is there, all of them or none, each with its date and `previous`; returns
    the chain that the file now holds.

    The date is now's, or that of the chapter's line before where another clock was ahead.
    """
    with alone():
        file, lines, written = path(), read().lines, ""
        last = {line["chapter"]: line for line in lines}
        for number, content in enumerate(contents, start=len(lines) + 1):
            above = last.get(content["chapter"])
            dated = {"date": max(now(), above["date"] if above else "")}
            text = as_text({**content, **dated, "previous": above.digest if above else ""})
            last[content["chapter"]] = line_of(number, text)
            written += text + "\n"
        before = file.read_bytes() if file.is_file() else b""
        atomic.write_bytes(file, before + written.encode("utf-8"))
        return read(file)


def misdated() -> list[str]:
    """Lines whose date is to come, one line each."""
    latest = now()
    return [
        f"{NAME}, line {line.number} is dated {line['date']}; expected {latest} or earlier"
        for line in read().lines
        if line["date"] > latest
    ]


# ---- Where a preregistered test was changed, and why: shown wherever the verdict is --------------------------------

#: What a line says by itself where nobody said why.
UNSAID = "test changed"


class Deviation(NamedTuple):
    """One changed test of a claim; `words`: "2026-11-22, after some of its data: seeds spread by powers of ten"."""

    claim: str
    chapter: str
    words: str


def deviations(lines: Iterable[Line]) -> list[Deviation]:
    """The changes of tests among a chain's lines, in their order; a test that is measured or planned
    otherwise is the same."""
    tests, found = dict[str, str](), []
    for line, claim, test in ((each, *pair) for each in lines for pair in each.tests.items()):
        if tests.setdefault(claim, test) != test:
            why = line["why"].removesuffix(AFTER)
            why = "no reason was written" if why.startswith(UNSAID) else why
            late = ", after some of its data" * bool(line["seen"])
            found.append(Deviation(claim, line["chapter"], f"{line['date'][:10]}{late}: {why}"))
        tests[claim] = test
    return found


# ---- Whether a run judges a claim by a test that stood before its data ---------------------------------------------
# A line of the locks counts for a run if it has the claim's present test, stands before the head of the chain
# that the run noted when it started, and none of the run's seeds had been looked at when it was written. Then
# the run has to measure in the way that was locked, or in one that gave the same numbers, at a profile that was
# planned, with the planned number of seeds and from the first that was planned. More seeds than planned are not
# tested in any sequential way: the new ones alone decide, under a lock of their own.

UNLOCKED = "its test is not locked"
LATE = "test locked after the run began"
REMEASURED = "measured otherwise than locked"
RESET = "other settings than locked"
OTHER_SEEDS = "other seeds than planned"
FIRST_SEED = "first_seed"
UNPLANNED = "no run at this profile was planned"


class Standing(NamedTuple):
    """`exploratory` says why in a few words, "" where the test is locked; `date` is that of the lock that counts."""

    exploratory: str = ""
    date: str = ""


def standing(claim: Claim, recorded: Results, chain: Chain) -> Standing:
    """How the verdict on a claim by these results stands; of several locks of one test the first counts."""
    reasons, before = [], None
    for line in chain.tests_of(claim.id):
        if line.tests[claim.id] == short(claim.test_hash):
            reasons.append(_against(line, before, claim, recorded, chain))
            date = line["date"]
            if not reasons[-1]:
                return Standing("", date)
        before = line
    if reasons and not is_reached(claim, recorded):  # what stands on no data needs no lock before them
        return Standing("", date)
    return Standing(next((each for each in reasons if each != LATE), LATE) if reasons else UNLOCKED)


def _against(line: Line, before: Line | None, claim: Claim, recorded: Results, chain: Chain) -> str:
    """Why a lock does not count for a run, or nothing; `before` is the claim's lock before it."""
    header, planned, used = recorded.header, line["planned"], seeds_used(claim, recorded)
    profile = header.get("profile", "smoke")
    seen = line["seen"].get(profile, []) if profile in planned else sum(line["seen"].values(), [])
    if any(first <= seed <= last for seed in used for first, last in seen):
        return _late(line, before, claim.id)
    if "locks" in header:
        stood_before = line.number <= (chain.position(header.get("chapter", ""), header["locks"]) or 0)
    else:  # a run from before the locks: for it counts what was entered from the history
        stood_before = bool(line["commit"])
    if not stood_before:
        return LATE
    if profile not in planned:
        return "" if profile == "smoke" else UNPLANNED
    now = run_measure(header, chain)
    if now not in same_numbers(line, claim.id, chain, profile):
        return RESET if now[0] == chain.measured(line["chapter"], line["measure"]) else REMEASURED
    if used and min(used) not in firsts(planned[profile]):
        return OTHER_SEEDS
    parameters, entries = header.get("parameters", {}), recorded.entries
    counts = {len(entries[name]["seeds"]) for name in claim.result_names() if name in entries}
    for name, count in planned[profile].items():
        own = parameters.get(name)
        if is_count_of_seeds(name) and isinstance(own, int) and own != count and own in counts:
            return f"{own} seeds where {count} were planned"
    return ""


def _late(line: Line, before: Line | None, claim: str) -> str:
    """What came after the data, in a few words; the line's own `why` may be long."""
    if line["commit"]:
        return line["why"]
    if before is None:
        what = "test written"
    elif before.tests[claim] != line.tests[claim]:
        what = "test changed"
    else:
        what = "planned anew" if before["measure"] == line["measure"] else "measured otherwise"
    return what + AFTER


def same_numbers(line: Line, claim: str, chain: Chain, profile: str) -> set[tuple[str, str]]:
    """(measure, settings) that gave the same numbers as those of a claim's lock, by the `carried` lines of the
    claim and the `same` lines of its chapter."""
    if profile not in line["planned"]:
        return set()
    named = lambda measure, settings: (chain.measured(line["chapter"], measure), settings)
    found = {named(line["measure"], line["planned"][profile]["settings"])}
    for each in chain.of_claim(claim):
        if each.event == "carried" and each["profile"] == profile and named(*each["was"]) in found:
            found.add(named(*each["now"]))
    return found


def run_measure(header: Mapping[str, Any], chain: Chain | None = None) -> tuple[str, str]:
    """What a run measured with, its code as one short name, and the hash of its settings."""
    own = stamp.measure(header.get("fingerprint", {}))
    own = (chain or read()).measured(header.get("chapter", ""), own)
    return own, plan(header.get("parameters", {}))["settings"]


def plan(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What a lock fixes of a profile: numbers of seeds (parameters named …seeds), the first seeds (…first_seed),
    and a hash of all other parameters."""
    seeds = {name: value for name, value in parameters.items() if is_count_of_seeds(name)}
    first = {name: value for name, value in parameters.items() if name.endswith(FIRST_SEED) and value}
    others = {n: value for n, value in parameters.items() if not is_of_seeds(n) and n != "profile"}
    return {**seeds, **first, "settings": stamp.digest(others)[:8]}


def firsts(planned: Mapping[str, Any]) -> set[int]:
    """The seeds from which a plan counts: its first seed, and those of arms that have one of their own."""
    return {planned.get(FIRST_SEED, 0)} | {planned[name] for name in planned if name.endswith(FIRST_SEED)}


def is_count_of_seeds(name: str) -> bool:
    return name == "seeds" or name.endswith("_seeds")


def is_of_seeds(name: str) -> bool:
    """Whether a parameter says how many seeds are drawn, or which."""
    return is_count_of_seeds(name) or name.endswith(FIRST_SEED)


def is_reached(claim: Claim, recorded: Results) -> bool:
    """Whether a run has all that one of the claim's tests reads: of rungs it may have none."""
    return any(set(test.result_names()) <= set(recorded) for test in claim.tests)


def seeds_used(claim: Claim, recorded: Results) -> set[int]:
    """Seeds of the results that a claim reads; a theory's one value beside measured ones has none."""
    listed = [recorded.entries[name]["seeds"] for name in claim.result_names() if name in recorded.entries]
    several = [seeds for seeds in listed if len(seeds) > 1]
    return {seed for seeds in several or listed for seed in seeds}
