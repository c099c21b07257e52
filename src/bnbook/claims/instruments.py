"""Reading book/instruments.yml: what the numbers of claims were measured with, and what is known of each
instrument."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import Any

from bnbook import paths
from bnbook.claims.claim import Claim
from bnbook.claims.entries import Entry, read_yaml, require_once
from bnbook.claims.reading import CLAIM_ID
from bnbook.errors import BnbookError

NEEDED = ("id", "name", "measures", "own", "silent", "reads")


@dataclass(frozen=True)
class Instrument:
    """What it measures, which values it takes by itself (pins, floors, windows) and when it says nothing.

    `line` is what a claim's page says of it behind its name, `mark` the same in two words, where verdicts are
    listed; both may be empty. `reads` are patterns of result names, CHAPTER:NAME or NAME in any chapter.
    """

    id: str
    name: str
    measures: str
    own: str
    silent: str
    reads: re.Pattern
    line: str = ""
    mark: str = ""

    @property
    def anchor(self) -> str:
        """Where it stands on its page."""
        return f"instrument-{self.id}"

    def under(self, claim: Claim) -> bool:
        """Whether a test of the claim reads one of its results."""
        return any(self.reads.match(f"{claim.chapter}:{name}") for name in claim.result_names())


def load_instruments(path: Path | None = None) -> list[Instrument]:
    """Read and validate the instruments (by default book/instruments.yml), in the file's order.

    Raises BnbookError, one line, for a file that is no YAML list, an unknown or missing key, a doubled id.
    """
    path = path or paths.book_folder() / "instruments.yml"
    if not path.is_file():
        return []  # a small book, of formulas, has none; `unmeasured` says so of any other
    entries = read_yaml(path, path.name)
    if not isinstance(entries, list):
        raise BnbookError(f"{path.name} holds no list; expected one entry `- id: …` per instrument")
    found = [
        _Reader(path.name, entry, number, "instrument").instrument()
        for number, entry in enumerate(entries, 1)
    ]
    require_once((one.id for one in found), path.name, "instrument")
    return found


def find_instrument(name: str) -> Instrument:
    """The one of that id; BnbookError lists the known."""
    known = {one.id: one for one in load_instruments()}
    if name not in known:
        raise BnbookError(f"no instrument {name!r}; expected one of {', '.join(known)}")
    return known[name]


def rests_on(claim: Claim, instruments: Iterable[Instrument]) -> tuple[Instrument, ...]:
    """The instruments that the claim's numbers come from."""
    return tuple(one for one in instruments if one.under(claim))


def unmeasured(claims: Iterable[Claim], instruments: Sequence[Instrument]) -> list[str]:
    """What is amiss, one line each: a result that a measured claim reads and no instrument covers, an
    instrument on which no claim rests. A formula or theorem needs none."""
    claims = list(claims)
    lines = [
        f"claim {claim.id} reads {name}, which no instrument covers; expected a pattern of it in "
        "instruments.yml"
        for claim in claims
        if not claim.statement
        for name in claim.result_names()
        if not any(one.reads.match(f"{claim.chapter}:{name}") for one in instruments)
    ]
    idle = [one.id for one in instruments if not any(one.under(claim) for claim in claims)]
    return lines + [f"no claim rests on instrument {name}; expected a pattern of a result" for name in idle]


class _Reader(Entry):
    """One instrument of the file."""

    def instrument(self) -> Instrument:
        name, entry = self._name(CLAIM_ID), self.entry
        self._keys(entry, NEEDED, ("line", "mark"), "the instrument")
        texts: dict[str, Any] = {
            key: self._text(entry, key)
            for key in (*NEEDED, "line", "mark")
            if key in entry and key not in ("id", "reads")
        }
        reads = entry["reads"]
        if not isinstance(reads, list) or not reads or not all(isinstance(each, str) for each in reads):
            self._fail(f"reads {reads!r} is no list of patterns", "`reads: [smoothness.*, CHAPTER:beyond.*]`")
        whole = (each if ":" in each else f"*:{each}" for each in reads)
        return Instrument(id=name, **texts, reads=re.compile("|".join(map(translate, whole))))
