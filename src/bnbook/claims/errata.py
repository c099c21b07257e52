"""Reading book/errata.yml: places where a source is wrong, unclear or contradicts another, each with what
shows it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from bnbook import paths
from bnbook.claims.claim import Source
from bnbook.claims.entries import Entry, read_yaml, require_once
from bnbook.claims.reading import CLAIM_ID, load_claims
from bnbook.errors import BnbookError
from bnbook.texts import read_text

#: What may be amiss with a place, gravest first; incomplete is what holds on a condition that is not stated.
ERRATUM_KINDS = ("wrong", "incomplete", "contradiction", "unclear")
#: What a slip changes, gravest first.
CHANGES = {
    "theorem": "A theorem or statement that does not hold as printed",
    "formula": "A formula that gives other numbers than it should",
    "reading": "What can be read in two ways, or contradicts another place",
    "slip": "Numbering and printing",
}
NEEDED = ("id", "source", "kind", "printed", "correct", "why")


@dataclass(frozen=True)
class Erratum:
    """One place of a source: what is printed there, what holds instead, and why; texts may hold $formulas$.

    `changes` is a key of CHANGES, `short` the erratum in one line.
    `claim` is the id of the claim whose verdict shows it, `test` the function that does; one of them may be
    empty.
    """

    id: str
    source: Source
    kind: str
    printed: str
    correct: str
    why: str
    claim: str = ""
    test: str = ""
    changes: str = "formula"
    short: str = ""

    @property
    def title(self) -> str:
        """The place in the source, as a heading."""
        return self.source.where[0].upper() + self.source.where[1:]

    @property
    def anchor(self) -> str:
        """Where the row stands on the page: an address has no dots."""
        return f"erratum-{self.id.replace('.', '-')}"


@dataclass(frozen=True)
class Known:
    """What a row may point to."""

    sources: Collection[str]
    claims: Collection[str]
    tests: Collection[str]


def load_errata(path: Path | str | None = None) -> list[Erratum]:
    """Read and validate the errata (by default book/errata.yml), in the file's order.

    Raises BnbookError, one line, for a file that is missing or no YAML list, an unknown or missing key, an
    unknown kind, a source that is not in book/references.bib, a claim that no chapter has, a test
    function that is not in tests/, neither claim nor test, a formula without its second dollar sign or with a
    backslash lost, a doubled id.
    """
    path = Path(path) if path is not None else paths.book_folder() / "errata.yml"
    entries = read_yaml(path, path.name)
    if not isinstance(entries, list):
        raise BnbookError(f"{path.name} holds no list; expected one entry `- id: …` per erratum")
    known = Known(source_titles().keys(), {claim.id for claim in load_claims()}, _test_functions())
    rows = [
        _Reader(path.name, entry, number, "erratum").erratum(known)
        for number, entry in enumerate(entries, start=1)
    ]
    require_once((row.anchor.removeprefix("erratum-") for row in rows), path.name, "erratum")
    return rows


def source_titles() -> dict[str, str]:
    """Key -> title of every entry of book/references.bib."""
    text = read_text(paths.book_folder() / "references.bib", "references.bib")
    found = {}
    for key, fields in re.findall(r"^@\w+\{\s*([^\s,]+),(.*?)(?=^@|\Z)", text, flags=re.M | re.S):
        title = re.search(r"^\s*title\s*=\s*\{(.*)\},?$", fields, flags=re.M)
        found[key] = re.sub(r"[{}]", "", title.group(1)) if title else key
    return found


class _Reader(Entry):
    """One erratum of the file."""

    def erratum(self, known: Known) -> Erratum:
        name, entry = self._name(CLAIM_ID), self.entry
        self._keys(entry, NEEDED, ("claim", "test", "changes", "short"), "the erratum")
        source, kind = self._source(entry["source"]), self._text(entry, "kind")
        claim, test = (self._text(entry, key) if key in entry else "" for key in ("claim", "test"))
        if source.key not in known.sources:
            self._fail(
                f"source {source.key!r} is not in references.bib", f"one of {', '.join(known.sources)}"
            )
        if kind not in ERRATUM_KINDS:
            self._fail(f"kind {kind!r} is unknown", f"one of {', '.join(ERRATUM_KINDS)}")
        if not (claim or test):
            self._fail("nothing shows it", "a claim, a test or both")
        if claim and claim not in known.claims:
            self._fail(f"there is no claim {claim!r}", "the id of a claim of a chapter")
        if test and test not in known.tests:
            self._fail(f"there is no test {test!r}", "tests/test_x.py::test_name, a function of that file")
        more = {key: self._text(entry, key) for key in ("changes", "short") if key in entry}
        if more.get("changes", "formula") not in CHANGES:
            self._fail(f"changes {more['changes']!r} is unknown", f"one of {', '.join(CHANGES)}")
        texts = {key: self._formulas(entry, key) for key in ("printed", "correct", "why")}
        return Erratum(id=name, source=source, kind=kind, claim=claim, test=test, **texts, **more)


def _test_functions() -> set[str]:
    """`tests/test_x.py::test_name` for every test function of the repository."""
    files = sorted((paths.repository_root() / "tests").glob("test_*.py"))
    return {
        f"tests/{file.name}::{name}"
        for file in files
        for name in re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), flags=re.M)
    }
