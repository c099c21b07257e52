"""Where a preregistered test was changed, and why: shown wherever the verdict is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bnbook.claims.locks.lines import AFTER, Line

#: What a line says by itself where nobody said why.
UNSAID = "test changed"


@dataclass(frozen=True)
class Deviation:
    """One changed test of a claim."""

    claim: str
    chapter: str
    date: str  # of the day
    why: str
    late: bool  # some of its data were known

    @property
    def words(self) -> str:
        """ "2026-11-22, after some of its data: seeds spread by powers of ten"."""
        return f"{self.date}{', after some of its data' * self.late}: {self.why}"


def power(own: Iterable[Line], test: str, profile: str | None) -> tuple[str, ...]:
    """What the last lock of a test says of the smallest effect that its planned seeds show at a profile."""
    said = [line["power"].get(profile, ()) for line in own if line.get("power") and line["test"] == test]
    return tuple(dict.fromkeys(said[-1])) if said else ()


def deviations(lines: Iterable[Line]) -> list[Deviation]:
    """The changes of tests among a chain's lines, in their order; a test that is measured or planned
    otherwise is the same."""
    tests: dict[str, str] = {}
    found = []
    for line in (each for each in lines if each.tests):
        claim = line["claim"]
        if tests.setdefault(claim, line["test"]) != line["test"]:
            why = line.get("why").removesuffix(AFTER)
            why = "no reason was written" if why.startswith(UNSAID) else why
            late = bool(line.get("seen"))
            found.append(Deviation(claim, line["chapter"], line["date"][:10], why, late))
        tests[claim] = line["test"]
    return found
