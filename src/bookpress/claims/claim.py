"""What a claim is: who says it, what is measured, and the test that was fixed before the run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from bookpress import intervals

SIDES = ("greater", "less")
COMBINATIONS = ("all", "any")
#: What makes an interval wider, so that it decides less.
WIDENING = ("resolution", "cells")


@dataclass(frozen=True)
class Source:
    """Where the claim is made: key of the bibliography, version of the text, place in it."""

    key: str
    version: str
    where: str


@dataclass(frozen=True)
class Test:
    """One test of recorded results; `kind` says which of the other fields are set (see `kinds`)."""

    __test__ = False  # not a pytest class

    kind: str
    a: str | None = None
    b: str | float | None = None  # a result, or the number that theory gives
    results: tuple[str, ...] | None = None
    side: str | None = None
    threshold: float | None = None
    margin: float | None = None
    tolerance: float | None = None
    expected: float | None = None
    allowed: int | None = None
    nonfinite: float | None = None  # what a seed without a finite value counts as; None: undecided
    resolution: float | None = (
        None  # of a grid or bisection: added to the interval's ends, a factor for ratios
    )
    cells: int | None = None  # among how many the result is the worst, picked by the data
    events: bool | None = None  # each seed's value is 0 or 1: did it happen?

    def keys(self) -> dict:
        """All that are set, as in the file of claims."""
        return {key: value for key, value in vars(self).items() if value is not None}

    def canonical(self) -> dict:
        """The keys that are set, in plain JSON types: what the hash is taken of.

        Left out are `events`, under which other values than 0 and 1 are refused, and what only widens an
        interval: where that opens a verdict, the verdict says so for ever (see judging).
        """
        return {key: value for key, value in self.keys().items() if key not in ("events", *WIDENING)}

    def plain(self) -> Test:
        """The test without what widens its interval."""
        return replace(self, **dict.fromkeys(WIDENING))

    def result_names(self) -> tuple[str, ...]:
        """Names of the recorded results that the test reads."""
        named = (self.a, self.b, *(self.results or ()))
        return tuple(name for name in named if isinstance(name, str))


@dataclass(frozen=True)
class Effect:
    """How readers see an effect: its unit, and words for more and for less than none at all.

    The units "points" and "%" stand for shares, "log" and "log10" for logarithms of a factor; any other is
    printed as it is.
    """

    unit: str = ""
    more: str = ""
    less: str = ""


@dataclass(frozen=True)
class Part:
    """One part of a claim that says several things."""

    says: str
    test: Test
    effect: Effect | None = None


@dataclass(frozen=True)
class Claim:
    """One checkable sentence of a source, in our words, with the test that decides it.

    Either `test` or `parts` is set; of its parts `all` have to hold, or `any`. `statement` marks a theorem,
    formula or definition, which holds or is wrong rather than reproduced or not; `asks` what no source says:
    the book's own question. `corrected` tests what `correction` says; `condition` says when it holds,
    `decided_by` why it is open, beside the seeds that would decide it; `scope` names the parameters that say
    how far a verdict goes; `was` keeps the words of the lock where `says` only says the same more clearly.
    The parts of a claim with `rungs` are one test at several sizes of what was trained; those that were not
    reached do not count. `of` is the claim that another chapter judges at one size.
    """

    id: str
    chapter: str
    source: Source
    says: str
    figure: str
    test: Test | None = None
    parts: tuple[Part, ...] = ()
    evidence: tuple[str, ...] = ("laptop", "paper")
    statement: bool = False
    corrected: Test | None = None
    correction: str = ""
    condition: str = ""
    asks: bool = False
    combine: str = "all"
    decided_by: str = ""
    effect: Effect | None = None
    scope: tuple[str, ...] = ("data", "width", "steps")
    out_of_reach: bool = False  # known: with the planned seeds a test of it cannot hold
    rungs: bool = False
    was: str = ""
    of: str = ""

    @property
    def tests(self) -> tuple[Test, ...]:
        """Every test that the claim holds: its own or its parts', and the correction's."""
        own = (self.test,) if self.test else tuple(part.test for part in self.parts)
        return own + ((self.corrected,) if self.corrected else ())

    def by_plain_intervals(self) -> Claim:
        """The claim as it would be judged without what widens its intervals."""
        if all(getattr(test, key) is None for test in self.tests for key in WIDENING):
            return self
        test, corrected = (each and each.plain() for each in (self.test, self.corrected))
        parts = tuple(replace(part, test=part.test.plain()) for part in self.parts)
        return replace(self, test=test, corrected=corrected, parts=parts)

    def result_names(self) -> tuple[str, ...]:
        """Recorded results that the verdict needs, each once."""
        return self._names

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for test in self.tests for name in test.result_names()))

    def part_of(self, result: str) -> int:
        """Which part tests this result, from 0 on; ValueError where none does, or several do."""
        found = [k for k, part in enumerate(self.parts) if result in part.test.result_names()]
        if len(found) != 1:
            raise ValueError(f"{len(found)} parts of {self.id} test {result!r}; expected one")
        return found[0]

    def required_names(self) -> tuple[str, ...]:
        """Those without which a run is not whole: of rungs it may have reached some only."""
        return () if self.rungs else self.result_names()

    def counts_as_evidence(self, profile: str | None, exact: bool = False) -> bool:
        """Whether a run at `profile` decides this claim; an exact chapter is the same at every profile.

        What a laptop run decides, a longer one of the same kind (`overnight`) decides too.
        """
        longer = profile == "overnight" and "laptop" in self.evidence
        return exact or profile is None or profile in self.evidence or longer

    @cached_property
    def test_hash(self) -> str:
        """SHA-256 of all that decides the verdict, and of no prose: a threshold moved after a run shows."""
        decisive = {
            "test": self.test.canonical() if self.test else None,
            "parts": [part.test.canonical() for part in self.parts],
            "corrected": self.corrected.canonical() if self.corrected else None,
            "evidence": sorted(self.evidence),
            "statement": self.statement,
            "conditional": bool(self.condition),
        }
        if self.combine != "all":
            decisive["combine"] = self.combine
        if self.rungs:
            decisive["rungs"] = True
        canonical = json.dumps(decisive, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


# ---- What a test compares: cells, each with one value per seed and an interval of their mean at any level ----------

HAIR = 1e-9


@dataclass(frozen=True)
class Cell:
    """One comparison: values (S,), their interval at a level of confidence, a name if there are several."""

    values: np.ndarray
    interval: Callable[[float], intervals.Interval]
    name: str = ""
    in_logs: bool = False  # the interval is one of the logarithms
    resolution: float | None = None  # of the grid that the values come from

    def ends(self, level: float) -> intervals.Interval:
        """The interval, wider by the resolution: all seeds share one grid, whose error no seed shows.

        A bracket does not contain its own ends (one works, one does not): they are kept a hair inside.
        """
        effect, low, high = self.interval(level)
        if self.resolution is None:
            return effect, low, high
        if self.in_logs:
            width = self.resolution ** (1 - HAIR)
            return effect, low / width, high * width
        width = self.resolution * (1 - HAIR)
        return effect, low - width, high + width


# ---- What one test found -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What one test found."""

    holds: bool | None  # None: undecided
    effect: float
    interval: tuple[float, float]
    n: int  # seeds
    unit: str = ""
    detail: str = ""
    trials: int = 0  # of a bound that was tried
    test: Test | None = None
    shown: Effect | None = None  # how readers see the effect; None: as its kind is usually seen
    cells: tuple[Cell, ...] = field(default=(), repr=False, compare=False)  # what was compared
    place: int = 0  # of the cell that is shown: the one that decides

    @property
    def values(self) -> np.ndarray:
        """What the interval is of, one value per seed (S,); empty for an exact check."""
        return self.cells[self.place].values if self.cells else np.empty(0)
