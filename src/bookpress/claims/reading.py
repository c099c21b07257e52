"""What the files of claims, errata and coverage have in common: entries, and complaints that take one line
each.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from bookpress import contents, paths
from bookpress.claims.claim import COMBINATIONS, SIDES, Claim, Effect, Part, Source, Test
from bookpress.claims.kinds import KINDS, can_hold, kind_of, least_seeds
from bookpress.errors import BnbookError
from bookpress.profiles import PROFILES
from bookpress.texts import parse_yaml, read_text


def read_yaml(path: Path, file: str) -> Any:
    """The content of a YAML file; BnbookError for one that is missing or no YAML, which it calls `file`."""
    return _parse(read_text(path, file), file)


@lru_cache(maxsize=64)  # by content: one command asks many times, and an edited file is another key
def _parse(text: str, file: str) -> Any:
    return parse_yaml(text, file)


def require_once(ids: Iterable[str], file: str, one: str) -> None:
    """BnbookError for the first id that comes a second time."""
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise BnbookError(f"{file}: {one} {name} appears twice; expected every id once")
        seen.add(name)


class Entry:
    """One entry of a file, with the words that every complaint about it starts with."""

    def __init__(self, file: str, content: Any, number: int, what: str) -> None:
        self.where = f"{file}: {what} number {number}"
        self.entry = self._mapping(content, f"the {what}")
        self._named, self._file = what, file

    def _name(self, pattern: Any) -> str:
        """The entry's id; from here on complaints name it."""
        name = self.entry.get("id")
        if not isinstance(name, str) or not pattern.fullmatch(name):
            self._fail(f"id {name!r} is malformed", "lower-case words joined by hyphens")
        self.where = f"{self._file}: {self._named} {name}"
        return name

    def _source(self, content: Any) -> Source:
        content = self._mapping(content, "source")
        self._keys(content, ("key", "version", "where"), (), "source")
        return Source(*(self._text(content, key) for key in ("key", "version", "where")))

    def _text(self, content: Mapping, key: str) -> str:
        value = content[key]
        if not isinstance(value, str) or not value.strip():
            self._fail(f"{key} is {value!r}", "a line of text")
        return " ".join(value.split())

    def _formulas(self, content: Mapping, key: str) -> str:
        """A line of text that may hold $formulas$."""
        text = self._text(content, key)
        if any(ord(character) < 32 for character in content[key].strip()):
            # "\tilde" in double quotes begins with a tab
            self._fail(
                f"{key} has a backslash that YAML read as an escape, or a line break",
                "formulas in single quotes",
            )
        if text.replace("\\$", "").count("$") % 2:
            self._fail(f"{key} has a formula that does not end", "a $ before and after each formula")
        return text

    def _mapping(self, content: Any, what: str) -> Mapping:
        if not isinstance(content, Mapping):
            self._fail(f"{what} is {type(content).__name__}", "keys with values")
        return content

    def _keys(self, content: Mapping, needed: tuple[str, ...], optional: tuple[str, ...], what: str) -> None:
        missing = [key for key in needed if key not in content]
        unknown = [str(key) for key in content if key not in needed and key not in optional]
        expected = f"keys {', '.join(needed)}" + (f"; optional {', '.join(optional)}" if optional else "")
        if missing:
            self._fail(f"{what} lacks {', '.join(missing)}", expected)
        if unknown:
            self._fail(f"{what} has unknown key {', '.join(unknown)}", expected)

    def _fail(self, wrong: str, expected: str) -> NoReturn:
        raise BnbookError(f"{self.where}: {wrong}; expected {expected}")


# ---- What a chapter plans: a test that its seeds cannot make hold is refused when it is read -------------------------

SEEDS = re.compile(r"^\s*(?:\w+_)?seeds(?:: .*? =|:| =) *(\d+)", re.M)
STEPS = re.compile(r"^(?:\w+_)?steps(?:: .*?)? = ", re.M)


def planned_seeds(texts: Iterable[str]) -> int | None:
    """The most seeds that a chapter's text or the settings beside it give to anything; None: no word."""
    return max((int(number) for text in texts for number in SEEDS.findall(text)), default=None)


def trains(chapter: str) -> bool:
    """Whether a chapter's text has steps among its parameters: what it measures may then diverge."""
    return bool(STEPS.search(chapter))


# ---- What a notebook carries of the book, for it may be alone: the claims of a chapter and their verdicts ----------


@dataclass(frozen=True)
class Carried:
    """A claim, and what the book's run found: effect and verdict in words, empty where there is none."""

    claim: Claim
    effect: str = ""
    verdict: str = ""


_carried: dict[str, Carried] = {}
settings: dict[str, dict[str, Any]] = {}  # chapter -> parameters of the book's run, its profile among them


def carry(text: str, parameters: Mapping[str, Any] | None = None) -> None:
    """Take over what `as_text` wrote, and the parameters of the book's run; BnbookError where it is something else."""
    try:
        rows = [_from_plain(row) for row in json.loads(text)]
    except (ValueError, TypeError, KeyError):
        raise BnbookError(
            "the notebook's copy of the claims cannot be read; download the notebook again"
        ) from None
    _carried.update({row.claim.id: row for row in rows})
    settings.update({row.claim.chapter: dict(parameters) for row in rows if parameters})


def carried(chapter: str | None = None) -> list[Carried]:
    """What this session carries, of one chapter or of all, in the book's order."""
    return [row for row in _carried.values() if chapter in (None, row.claim.chapter)]


def as_text(rows: Iterable[Carried]) -> str:
    """JSON, a line for each claim."""
    lines = [json.dumps(_sparse(asdict(row)), ensure_ascii=False) for row in rows]
    return "[\n" + ",\n".join(lines) + "\n]"


def _sparse(content: Any) -> Any:
    """Without the fields that are not set: None, empty texts and lists, false."""
    if isinstance(content, Mapping):
        kept = {key: _sparse(value) for key, value in content.items()}
        unset: tuple = (None, "", [])
        return {key: value for key, value in kept.items() if value not in unset and value is not False}
    return [_sparse(item) for item in content] if isinstance(content, (list, tuple)) else content


def _from_plain(row: Mapping[str, Any]) -> Carried:
    fields = dict(row["claim"])
    for name in ("test", "corrected"):
        if name in fields:
            fields[name] = _test(fields[name])
    fields["source"] = Source(**fields["source"])
    fields["parts"] = tuple(
        Part(part["says"], _test(part["test"]), _effect(part)) for part in fields.get("parts", ())
    )
    fields["evidence"], fields["effect"] = tuple(fields["evidence"]), _effect(fields)
    fields["scope"] = tuple(fields.get("scope", ()))
    return Carried(Claim(**fields), row.get("effect", ""), row.get("verdict", ""))


def _effect(content: Mapping[str, Any]) -> Effect | None:
    return Effect(**content["effect"]) if "effect" in content else None


def _test(content: Mapping[str, Any]) -> Test:
    results = content.get("results")
    return Test(**{**content, "results": tuple(results) if results else None})


# ---- Reading one test of a claim: its kind and the keys that belong to it ------------------------------------------

NUMBERS = ("threshold", "margin", "tolerance", "expected", "nonfinite", "resolution")
#: Least value of the keys that count something.
LEAST = {"allowed": 0, "cells": 2}


class TestEntry(Entry):
    """An entry that holds tests."""

    __test__ = False  # not a pytest class

    def _test(self, content: Any, what: str) -> Test:
        content = self._mapping(content, what)
        kind = content.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            self._fail(f"{what} has unknown kind {kind!r}", f"one of {', '.join(KINDS)}")
        known = KINDS[kind]
        given = set(content) - {"kind"}
        # Judge the keys by the alternative that they fit best: the complaint is about the likely slip.
        needed = max(known.needs, key=lambda keys: (len(keys & given), -len(keys - given)))
        self._keys(
            content, ("kind", *sorted(needed)), tuple(sorted(known.may_have)), f"{what} of kind {kind}"
        )
        fields: dict[str, Any] = {"kind": kind}
        for key in given:
            value = content[key]
            if key in NUMBERS:
                fields[key] = self._number(value, f"{key} of {what}")
            elif key in LEAST:
                if isinstance(value, bool) or not isinstance(value, int) or value < LEAST[key]:
                    self._fail(f"{key} {value!r} of {what} is no count", f"a whole number ≥ {LEAST[key]}")
                fields[key] = value
            elif key == "events":
                if value is not True:
                    self._fail(f"events {value!r} of {what}", "`events: true`, or nothing")
                fields[key] = value
            elif key == "results":
                if (
                    not isinstance(value, list)
                    or len(value) < 2
                    or not all(isinstance(r, str) for r in value)
                ):
                    self._fail(
                        f"results of {what} is no list of at least two names", "`results: [low, …, high]`"
                    )
                fields[key] = tuple(value)
            elif key == "b" and isinstance(value, (int, float)):
                fields[key] = self._number(value, f"b of {what}")
            else:
                fields[key] = self._text(content, key)
        if fields.get("side", SIDES[0]) not in SIDES:
            self._fail(f"{what} has unknown side {fields['side']!r}", " or ".join(SIDES))
        if known.in_factors and fields.get("resolution", 1.0) < 1:
            self._fail(f"resolution of {what} is below 1", "the factor between two steps of the grid")
        for key in ("margin", "tolerance", "resolution"):
            if fields.get(key, 0.0) < 0:
                self._fail(f"{key} of {what} is negative", "a number ≥ 0")
        return Test(**fields)

    def _number(self, value: Any, what: str) -> float:
        try:
            if isinstance(value, bool):
                raise ValueError
            number = float(value)
            if not math.isfinite(number):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            self._fail(f"{what} is {value!r}", "a finite number, such as 0.02 or 1e-10")
        return number


# ---- Reading what a claim of several tests is made of: parts, the rungs of a ladder, and how effects are -----------
# said.


#: What stands for the rung in the names of a test's results.
PLACE = "{rung}"


def filled(content: Any, rung: str) -> Any:
    """A test as it is written, with the rung put into the names of its results."""
    if isinstance(content, str):
        return content.replace(PLACE, rung)
    if isinstance(content, list):
        return [filled(each, rung) for each in content]
    return (
        {key: filled(each, rung) for key, each in content.items()} if isinstance(content, dict) else content
    )


class PartsEntry(TestEntry):
    """An entry that holds parts."""

    def _effect(self, content: Mapping) -> Effect | None:
        """A unit alone, or a mapping with words for both directions."""
        if "effect" not in content:
            return None
        if isinstance(content["effect"], str):
            return Effect(self._text(content, "effect"))
        shown = self._mapping(content["effect"], "effect")
        self._keys(shown, (), ("unit", "more", "less"), "effect")
        if "less" in shown and "more" not in shown:
            self._fail("its effect has a word for less and none for more", "`more: …` beside it")
        words = {key: self._text(shown, key) for key in shown}
        return Effect(**{"less": words.get("more", ""), **words})

    def _parts(self, content: Any) -> tuple[Part, ...]:
        if not isinstance(content, list) or len(content) < 2:
            self._fail("parts is no list of at least two", "`parts: [{says: …, test: …}, …]`")
        parts = []
        for number, part in enumerate(content, start=1):
            part = self._mapping(part, f"part {number}")
            self._keys(part, ("says", "test"), ("effect",), f"part {number}")
            test = self._test(part["test"], f"test of part {number}")
            parts.append(Part(self._text(part, "says"), test, self._effect(part)))
        return tuple(parts)

    def _rungs(self, entry: Mapping, words: Any) -> tuple[Part, ...]:
        """One part a rung; the head of the file has the words for each, the claim may name some of them."""
        words = self._mapping(words, "rungs in the head of the file")
        names = entry["rungs"] if "rungs" in self.entry else list(words)
        if not isinstance(names, list) or not names or not set(names) <= set(words):
            self._fail(f"sizes {names!r} are unknown", f"a list of some of {', '.join(map(str, words))}")
        if "test" not in entry or PLACE not in str(entry["test"]):
            self._fail(f"it is judged size by size and no result has {PLACE}", f"`a: speed.{PLACE}.batch`")
        return tuple(
            Part(self._text(words, name), self._test(filled(entry["test"], name), f"test at {name}"))
            for name in names
        )


# ---- Reading book/PART/CHAPTER.claims.yml: a mistake in one is one line: the file, the claim, what is wrong and
# expected.

SUFFIX = ".claims.yml"
CLAIM_ID = re.compile(r"[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*")
NEEDED = ("id", "source", "says", "figure")
OPTIONAL = ("test", "parts", "evidence", "statement", "corrected", "correction", "condition", "asks")
OPTIONAL += ("combine", "decided_by", "effect", "scope", "out_of_reach", "rungs", "was", "of")
#: What the head of a file may give for each of its claims that does not say it itself.
DEFAULTS = ("source", "figure", "evidence", "statement", "scope", "rungs")


def load_claims(path: Path | str | None = None) -> list[Claim]:
    """Read and validate the claims of every chapter, in the book's order, or those of one file, in its own.

    The chapter of a claim is that of its file. Raises BnbookError, one line, for a file that is missing, that
    belongs to no chapter or holds no list `claims:`, an unknown or missing key, an unknown kind or side, a
    threshold that is no number, a doubled id, in the whole book a claim `of` none. `1e-3`, text to YAML, is a
    number. Where there is no book, the claims are those that the notebook carries.
    """
    try:
        files = _files() if path is None else [Path(path)]
    except BnbookError:
        if own := [row.claim for row in carried()]:
            return own
        raise
    claims = [claim for file in files for claim in _read(file)]
    first: dict[str, Claim] = {}
    for claim in claims:
        if claim.id in first:
            places = dict.fromkeys(f"{found.chapter}{SUFFIX}" for found in (first[claim.id], claim))
            raise BnbookError(
                f"{' and '.join(places)}: claim {claim.id} appears twice; expected every id once"
            )
        first[claim.id] = claim
    for claim in claims if path is None else ():
        if claim.of and (claim.of not in first or first[claim.of].rungs):
            raise BnbookError(
                f"{claim.chapter}{SUFFIX}: claim {claim.id} is of {claim.of!r}; expected the id of a claim "
                "that another chapter judges at one size"
            )
    return claims


def chapter_claims(chapter: str) -> list[Claim]:
    """The claims that stand beside one chapter, none where it has no such file."""
    path = paths.book_folder() / f"{chapter}{SUFFIX}"
    return load_claims(path) if path.is_file() else []


def _files() -> list[Path]:
    """The files of claims in the order of the chapters that they stand beside."""
    book, chapters = paths.book_folder(), contents.chapter_names()
    for path in sorted(book.glob(f"**/*{SUFFIX}")):
        if (name := path.relative_to(book).as_posix().removesuffix(SUFFIX)) not in chapters:
            raise BnbookError(f"{name}{SUFFIX} belongs to no chapter; expected book/{name}.md beside it")
    return [path for name in chapters if (path := book / f"{name}{SUFFIX}").is_file()]


def _read(path: Path) -> list[Claim]:
    """The claims of one file, each with what the file's head gives for all."""
    chapter = f"{path.parent.name}/{path.name.removesuffix(SUFFIX)}"
    text, beside = read_text(path, f"{chapter}{SUFFIX}"), path.with_name(f"{Path(chapter).name}.md")
    plans = (beside, *sorted(beside.parent.glob("_*.yml"))) if beside.is_file() else ()
    return [*_listed(chapter, text, tuple(read_text(each, each.name) for each in plans))]


@lru_cache(maxsize=64)  # by content: one command asks many times, and an edited file is another key
def _listed(chapter: str, text: str, plans: tuple[str, ...]) -> tuple[Claim, ...]:
    """The same from the texts: of the file, of the chapter and of the settings beside it."""
    file = f"{chapter}{SUFFIX}"
    content = parse_yaml(text, file)
    if not isinstance(content, dict) or not isinstance(content.get("claims"), list):
        raise BnbookError(f"{file} holds no list of claims; expected `claims:` with one `- id: …` per claim")
    defaults = {key: value for key, value in content.items() if key != "claims"}
    source = defaults.get("source", {})
    rule = defaults.pop("nonfinite", None)
    if set(defaults) - set(DEFAULTS) or not isinstance(source, dict) or set(source) - {"key", "version"}:
        raise BnbookError(
            f"{file}: its head has {', '.join(map(str, defaults))}; expected some of source (key, version), "
            f"{', '.join(DEFAULTS[1:])}, nonfinite, then claims"
        )
    if rule not in (None, "open"):
        raise BnbookError(f"{file}: its head has nonfinite {rule!r}; expected open, or a number in a test")
    readers = [
        _Reader(file, entry, number, "claim") for number, entry in enumerate(content["claims"], start=1)
    ]
    listed = tuple(reader.claim(chapter, defaults) for reader in readers)
    if plans:
        seeds, diverges = planned_seeds(plans), rule is None and trains(plans[0])
        for reader, claim in zip(readers, listed, strict=True):
            reader.judgeable(claim, seeds, diverges)
    return listed


class _Reader(PartsEntry):
    """One claim of the file."""

    def claim(self, chapter: str, defaults: Mapping[str, Any]) -> Claim:
        name, entry = self._name(CLAIM_ID), {**defaults, **self.entry}
        self._keys(entry, NEEDED, OPTIONAL, "the claim")
        if ("test" in entry) == ("parts" in entry):
            self._fail("it has both test and parts, or neither", "exactly one of them")
        statement, asks, beyond = (self._truth(entry, key) for key in ("statement", "asks", "out_of_reach"))
        if not statement and ("corrected" in entry or "condition" in entry):
            self._fail(
                "it has a correction or condition but is no statement", "`statement: true` beside them"
            )
        if "correction" in entry and "corrected" not in entry:
            self._fail("it words a correction that nothing tests", "`corrected: {kind: …}` beside it")
        if "parts" in entry and "corrected" in entry:
            self._fail("it has parts and a correction", "one claim per corrected formula")
        if (combine := entry.get("combine", "all")) not in COMBINATIONS:
            self._fail(f"combine {combine!r} is unknown", " or ".join(COMBINATIONS))
        if "combine" in entry and "parts" not in entry:
            self._fail("it combines parts and has none", "`parts: [{says: …, test: …}, …]`")
        parts = self._parts(entry["parts"]) if "parts" in entry else ()
        if "rungs" in entry:
            parts = self._rungs(entry, defaults.get("rungs", {}))
        return Claim(
            id=name,
            chapter=chapter,
            source=self._place(entry["source"], defaults.get("source", {})),
            says=self._text(entry, "says"),
            was=self._text(entry, "was") if "was" in entry else "",
            of=self._text(entry, "of") if "of" in entry else "",
            figure=self._text(entry, "figure"),
            test=self._test(entry["test"], "test") if "test" in entry and "rungs" not in entry else None,
            parts=parts,
            rungs="rungs" in entry,
            evidence=self._evidence(entry.get("evidence", ["laptop", "paper"])),
            statement=statement,
            corrected=self._test(entry["corrected"], "corrected") if "corrected" in entry else None,
            correction=self._text(entry, "correction") if "correction" in entry else "",
            condition=self._text(entry, "condition") if "condition" in entry else "",
            asks=asks,
            out_of_reach=beyond,
            combine=combine,
            decided_by=self._text(entry, "decided_by") if "decided_by" in entry else "",
            effect=self._effect(entry),
            **({"scope": self._scope(entry["scope"])} if "scope" in entry else {}),
        )

    def judgeable(self, claim: Claim, seeds: int | None, diverges: bool) -> None:
        """With the planned seeds its tests can hold, and each says what a seed without a number counts as."""
        for test in claim.tests:
            if seeds and not claim.out_of_reach and not can_hold(test, seeds):
                self._fail(
                    f"with {seeds} seeds its test cannot hold",
                    f"at least {least_seeds(test)} seeds, or `out_of_reach: true` beside it",
                )
            if diverges and test.nonfinite is None and not kind_of(test).exact:
                self._fail(
                    "its chapter trains, but its test says nothing of seeds without a finite value",
                    "`nonfinite: NUMBER` in the test, or `nonfinite: open` in the head of the file",
                )

    def _truth(self, entry: Mapping, key: str) -> bool:
        if not isinstance(value := entry.get(key, False), bool):
            self._fail(f"{key} {value!r} is no truth value", "true or false")
        return value

    def _scope(self, content: Any) -> tuple[str, ...]:
        if not isinstance(content, list) or not all(isinstance(name, str) for name in content):
            self._fail(f"scope {content!r} is no list", "`scope: [data, width, steps]`, names of parameters")
        return tuple(content)

    def _place(self, content: Any, default: Mapping[str, str]) -> Source:
        """The source: the place in the file's own one, or a mapping of what differs from it."""
        own = {"where": content} if isinstance(content, str) else self._mapping(content, "source")
        return self._source({**default, **own})

    def _evidence(self, content: Any) -> tuple[str, ...]:
        if (
            not isinstance(content, list)
            or not content
            or any(profile not in PROFILES for profile in content)
        ):
            self._fail(f"evidence {content!r} is unknown", f"a list of some of {', '.join(PROFILES)}")
        return tuple(content)
