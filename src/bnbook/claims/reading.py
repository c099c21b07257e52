"""Reading book/claims.yml: a mistake in it is one line: the file, the claim, what is wrong and expected."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from bnbook import paths
from bnbook.claims.claim import KINDS, PROFILES, SIDES, Claim, Part, Test
from bnbook.claims.entries import Entry, read_list, require_once

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
    content = read_list(path, "claim", "claims")
    claims = [
        _Reader(path.name, entry, number, "claim").claim() for number, entry in enumerate(content, start=1)
    ]
    require_once((claim.id for claim in claims), path.name, "claim")
    return claims


class _Reader(Entry):
    """One claim of the file."""

    def claim(self) -> Claim:
        name, entry = self._name(CLAIM_ID), self.entry
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
            id=name,
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
