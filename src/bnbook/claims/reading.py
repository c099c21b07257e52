"""Reading book/PART/CHAPTER.claims.yml: a mistake in one is one line: the file, the claim, what is wrong and
expected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bnbook import contents, paths
from bnbook.claims import reach
from bnbook.claims.carried import carried
from bnbook.claims.claim import COMBINATIONS, Claim, Source
from bnbook.claims.entries import read_yaml
from bnbook.claims.kinds.known import kind_of
from bnbook.claims.reading_parts import PartsEntry
from bnbook.errors import BnbookError
from bnbook.profiles import PROFILES

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
    file = f"{chapter}{SUFFIX}"
    content = read_yaml(path, file)
    if not isinstance(content, dict) or not isinstance(content.get("claims"), list):
        raise BnbookError(f"{file} holds no list of claims; expected `claims:` with one `- id: …` per claim")
    defaults = {key: value for key, value in content.items() if key != "claims"}
    source = defaults.get("source", {})
    rule, chapter_path = defaults.pop("nonfinite", None), path.with_name(f"{Path(chapter).name}.md")
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
    listed = [reader.claim(chapter, defaults) for reader in readers]
    if chapter_path.is_file():
        seeds, diverges = reach.planned_seeds(chapter_path), rule is None and reach.trains(chapter_path)
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
            if seeds and not claim.out_of_reach and not reach.can_hold(test, seeds):
                self._fail(
                    f"with {seeds} seeds its test cannot hold",
                    f"at least {reach.least_seeds(test)} seeds, or `out_of_reach: true` beside it",
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
