"""Reading book/PART/CHAPTER.claims.yml: a mistake in one is one line: the file, the claim, what is wrong and
expected."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bnbook import contents, paths
from bnbook.claims.carried import carried
from bnbook.claims.claim import KINDS, SIDES, Claim, Part, Source, Test
from bnbook.claims.entries import Entry, read_yaml
from bnbook.errors import BnbookError
from bnbook.profiles import PROFILES

SUFFIX = ".claims.yml"
CLAIM_ID = re.compile(r"[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*")
NEEDED = ("id", "source", "says", "figure")
OPTIONAL = ("test", "parts", "evidence", "statement", "corrected", "correction", "condition")
#: What the head of a file may give for each of its claims that does not say it itself.
DEFAULTS = ("source", "figure", "evidence", "statement")
NUMBERS = ("threshold", "margin", "tolerance", "expected", "nonfinite")


def load_claims(path: Path | str | None = None) -> list[Claim]:
    """Read and validate the claims of every chapter, in the book's order, or those of one file, in its own.

    The chapter of a claim is that of its file. Raises BnbookError, one line, for a file that is missing, that
    belongs to no chapter or holds no list `claims:`, an unknown or missing key, an unknown kind or side, a
    threshold that is no number, a doubled id. `1e-3`, text to YAML, is a number. Where there is no book, the
    claims are those that the notebook carries.
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
    file = f"{chapter}{SUFFIX}"
    content = read_yaml(path, file)
    if not isinstance(content, dict) or not isinstance(content.get("claims"), list):
        raise BnbookError(f"{file} holds no list of claims; expected `claims:` with one `- id: …` per claim")
    defaults = {key: value for key, value in content.items() if key != "claims"}
    source = defaults.get("source", {})
    if set(defaults) - set(DEFAULTS) or not isinstance(source, dict) or set(source) - {"key", "version"}:
        raise BnbookError(
            f"{file}: its head has {', '.join(map(str, defaults))}; expected some of source (key, version), "
            f"{', '.join(DEFAULTS[1:])}, then claims"
        )
    return [
        _Reader(file, entry, number, "claim").claim(chapter, defaults)
        for number, entry in enumerate(content["claims"], start=1)
    ]


class _Reader(Entry):
    """One claim of the file."""

    def claim(self, chapter: str, defaults: Mapping[str, Any]) -> Claim:
        name, entry = self._name(CLAIM_ID), {**defaults, **self.entry}
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
        return Claim(
            id=name,
            chapter=chapter,
            source=self._place(entry["source"], defaults.get("source", {})),
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

    def _place(self, content: Any, default: Mapping[str, str]) -> Source:
        """The source: the place in the file's own one, or a mapping of what differs from it."""
        own = {"where": content} if isinstance(content, str) else self._mapping(content, "source")
        return self._source({**default, **own})

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
