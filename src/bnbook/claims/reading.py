"""Reading book/claims.yml: a mistake in it is one line: the file, the claim, what is wrong and expected."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import yaml

from bnbook import paths
from bnbook.claims.claim import KINDS, PROFILES, SIDES, Claim, Part, Source, Test
from bnbook.errors import BnbookError

CLAIM_ID = re.compile(r"[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*")
CHAPTER = re.compile(r"[a-z0-9-]+(/[a-z0-9-]+)*")
NEEDED = ("id", "chapter", "source", "says", "figure")
OPTIONAL = ("test", "parts", "evidence", "statement", "corrected", "correction", "condition")
NUMBERS = ("threshold", "margin", "tolerance", "expected", "nonfinite")


def load_claims(path: Path | str | None = None) -> list[Claim]:
    """Read and validate the claims file (by default book/claims.yml), in its order.

    Raises BnbookError, one line, for a file that is missing or no YAML list, an unknown or missing key, an
    unknown kind or side, a threshold that is no number, a doubled id. `1e-3`, text to YAML, is a number.
    """
    path = Path(path) if path is not None else paths.book_folder() / "claims.yml"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BnbookError(
            f"no claims file {path.name}; expected a list of claims at book/claims.yml"
        ) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise BnbookError(f"{path.name}{line} is not YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(content, list):
        raise BnbookError(f"{path.name} holds no list; expected one entry `- id: …` per claim")
    claims = [_Reader(path.name, entry, number).claim() for number, entry in enumerate(content, start=1)]
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise BnbookError(f"{path.name}: claim {claim.id} appears twice; expected every id once")
        seen.add(claim.id)
    return claims


class _Reader:
    """One entry of the file, with the words that every complaint about it starts with."""

    def __init__(self, file: str, entry: Any, number: int) -> None:
        self.where = f"{file}: claim number {number}"
        self.entry = self._mapping(entry, "the claim")
        name = entry.get("id")
        if not isinstance(name, str) or not CLAIM_ID.fullmatch(name):
            self._fail(f"id {name!r} is malformed", "lower-case words joined by hyphens")
        self.where = f"{file}: claim {name}"

    def claim(self) -> Claim:
        entry = self.entry
        self._keys(entry, NEEDED, OPTIONAL, "the claim")
        if ("test" in entry) == ("parts" in entry):
            self._fail("it has both test and parts, or neither", "exactly one of them")
        statement = entry.get("statement", False)
        if not isinstance(statement, bool):
            self._fail(f"statement {statement!r} is no truth value", "true or false")
        if not statement and ("corrected" in entry or "condition" in entry):
            self._fail(
                "it has a correction or condition but is no statement", "`statement: true` beside them"
            )
        if "correction" in entry and "corrected" not in entry:
            self._fail("it words a correction that nothing tests", "`corrected: {kind: …}` beside it")
        if "parts" in entry and "corrected" in entry:
            self._fail("it has parts and a correction", "one claim per corrected formula")
        chapter = self._text(entry, "chapter")
        if not CHAPTER.fullmatch(chapter):
            self._fail(f"chapter {chapter!r} is malformed", "PART/chapter as under book/, without .md")
        return Claim(
            id=entry["id"],
            chapter=chapter,
            source=self._source(entry["source"]),
            says=self._text(entry, "says"),
            figure=self._text(entry, "figure"),
            test=self._test(entry["test"], "test") if "test" in entry else None,
            parts=self._parts(entry["parts"]) if "parts" in entry else (),
            evidence=self._evidence(entry.get("evidence", ["laptop", "paper"])),
            statement=statement,
            corrected=self._test(entry["corrected"], "corrected") if "corrected" in entry else None,
            correction=self._text(entry, "correction") if "correction" in entry else "",
            condition=self._text(entry, "condition") if "condition" in entry else "",
        )

    def _source(self, content: Any) -> Source:
        content = self._mapping(content, "source")
        self._keys(content, ("key", "version", "where"), (), "source")
        return Source(*(self._text(content, key) for key in ("key", "version", "where")))

    def _parts(self, content: Any) -> tuple[Part, ...]:
        if not isinstance(content, list) or len(content) < 2:
            self._fail("parts is no list of at least two", "`parts: [{says: …, test: …}, …]`")
        parts = []
        for number, part in enumerate(content, start=1):
            part = self._mapping(part, f"part {number}")
            self._keys(part, ("says", "test"), (), f"part {number}")
            parts.append(Part(self._text(part, "says"), self._test(part["test"], f"test of part {number}")))
        return tuple(parts)

    def _evidence(self, content: Any) -> tuple[str, ...]:
        if (
            not isinstance(content, list)
            or not content
            or any(profile not in PROFILES for profile in content)
        ):
            self._fail(f"evidence {content!r} is unknown", f"a list of some of {', '.join(PROFILES)}")
        return tuple(content)

    def _test(self, content: Any, what: str) -> Test:
        content = self._mapping(content, what)
        kind = content.get("kind")
        if kind not in KINDS:
            self._fail(f"{what} has unknown kind {kind!r}", f"one of {', '.join(KINDS)}")
        alternatives, optional = KINDS[kind]
        given = set(content) - {"kind"}
        # Judge the keys by the alternative that they fit best: the complaint is about the likely slip.
        needed = max(alternatives, key=lambda keys: (len(keys & given), -len(keys - given)))
        self._keys(content, ("kind", *sorted(needed)), tuple(sorted(optional)), f"{what} of kind {kind}")
        fields: dict[str, Any] = {"kind": kind}
        for key in given:
            value = content[key]
            if key in NUMBERS:
                fields[key] = self._number(value, f"{key} of {what}")
            elif key == "allowed":
                if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                    self._fail(f"allowed {value!r} of {what} is no count", "a whole number ≥ 0")
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
        for key in ("margin", "tolerance"):
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
        except (TypeError, ValueError):
            self._fail(f"{what} is {value!r}", "a finite number, such as 0.02 or 1e-10")
        return number

    def _text(self, content: Mapping, key: str) -> str:
        value = content[key]
        if not isinstance(value, str) or not value.strip():
            self._fail(f"{key} is {value!r}", "a line of text")
        return " ".join(value.split())

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
