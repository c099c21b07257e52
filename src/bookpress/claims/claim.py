"""What a claim is: who says it, what is measured, and the test that was fixed before the run."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from bookpress import intervals
from bookpress.profiles import PROFILES
from bookpress.schema import Count, Entry, Id, Number, Some, Text, Truth, as_line, model

#: What makes an interval wider, so that it decides less.
WIDENING = ("resolution", "cells")
#: Kind of test -> sets of keys of which a test has one, and keys that it may have besides (see `kinds`).
SAMPLED = {"nonfinite", "resolution"}
KEYS: dict[str, tuple[tuple[set[str], ...], set[str]]] = {
    "difference": (({"a", "b", "side", "threshold"},), SAMPLED | {"events"}),
    "ratio": (({"a", "b", "side", "threshold"},), SAMPLED),
    "equivalence": (({"a", "b", "margin"},), SAMPLED | {"events"}),
    "ordering": (({"results"},), {"nonfinite"}),
    "sign": (({"a", "b", "side"},), {"nonfinite"}),
    "identity": (({"a", "tolerance"},), set()),
    "inequality": (({"a"},), {"b", "allowed"}),
    "rate": (({"a", "side", "threshold"}, {"a", "expected", "tolerance"}), SAMPLED),
    "agreement": (({"a", "b", "tolerance"},), SAMPLED),
    "level": (
        (
            {"a", "side", "threshold"},
            {"a", "expected", "tolerance"},
            {"results", "side", "threshold"},
            {"results", "expected", "tolerance"},
        ),
        SAMPLED | {"events", "cells"},
    ),
}


@model
class Source(Entry):
    """Where the claim is made: key of the bibliography, version of the text, place in it."""

    key: Text
    version: Text
    where: Text


def _name_or_number(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"is {value!r}; expected a result's name, or a finite number")
    return value and as_line(value)


@model
class Test(Entry):
    """One test of recorded results; `kind` says which of the other fields are set (KEYS)."""

    __test__ = False  # not a pytest class

    kind: Literal[*KEYS]
    a: Text | None = None
    b: Annotated[str | float | None, BeforeValidator(_name_or_number)] = (
        None  # a result, or a theory's number
    )
    results: Annotated[tuple[Text, ...], Field(min_length=2)] | None = None
    side: Literal["greater", "less"] | None = None
    threshold: Number | None = None
    margin: Annotated[Number, Field(ge=0)] | None = None
    tolerance: Annotated[Number, Field(ge=0)] | None = None
    expected: Number | None = None
    allowed: Count | None = None
    nonfinite: Number | None = None  # what a seed without a finite value counts as; None: undecided
    #: Of a grid or bisection: added to the interval's ends, a factor for ratios.
    resolution: Annotated[Number, Field(ge=0)] | None = None
    cells: Annotated[Count, Field(ge=2)] | None = (
        None  # among how many the result is the worst, picked by the data
    )
    events: Truth | None = None  # each seed's value is 0 or 1: did it happen?

    @model_validator(mode="after")
    def _of_its_kind(self) -> Test:
        needs, may = KEYS[self.kind]
        given = set(self.keys()) - {"kind"}
        # Judge the keys by the alternative that they fit best: the complaint is about the likely slip.
        needed = max(needs, key=lambda keys: (len(keys & given), -len(keys - given)))
        expected = f"keys kind, {', '.join(sorted(needed))}"
        expected += f"; optional {', '.join(sorted(may))}" * bool(may)
        if missing := sorted(needed - given):
            raise ValueError(f"of kind {self.kind} lacks {', '.join(missing)}; expected {expected}")
        if unknown := sorted(given - needed - may):
            raise ValueError(f"of kind {self.kind} has unknown key {', '.join(unknown)}; expected {expected}")
        if self.events is False:
            raise ValueError("has events False; expected `events: true`, or nothing")
        if self.kind == "ratio" and (self.resolution or 1) < 1:
            raise ValueError("has a resolution below 1; expected the factor between two steps of the grid")
        return self

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


@model
class Effect(Entry):
    """How readers see an effect: its unit, and words for more and for less than none at all.

    The units "points" and "%" stand for shares, "log" and "log10" for logarithms of a factor; any other is
    printed as it is. In a file a text alone is the unit, and one word is for both directions.
    """

    unit: Text = ""
    more: Text = ""
    less: Text = ""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"unit": given}
        if isinstance(given, dict) and "less" in given and "more" not in given:
            raise ValueError("has a word for less and none for more; expected `more: …` beside it")
        return {"less": given["more"], **given} if isinstance(given, dict) and "more" in given else given


@model
class Part(Entry):
    """One part of a claim that says several things."""

    says: Text
    test: Test
    effect: Effect | None = None


@model
class Claim(Entry):
    """One checkable sentence of a source, in our words, with the test that decides it.

    Either `test` or `parts` is set; of its parts `all` have to hold, or `any`. `statement` marks a theorem,
    formula or definition, which holds or is wrong rather than reproduced or not; `asks` what no source says:
    the book's own question. `corrected` tests what `correction` says; `condition` says when it holds,
    `decided_by` why it is open, beside the seeds that would decide it; `scope` names the parameters that say
    how far a verdict goes; `was` keeps the words of the lock where `says` only says the same more clearly.
    The parts of a claim with `rungs` are one test at several sizes of what was trained; those that were not
    reached do not count. `of` is the claim that another chapter judges at one size.
    """

    _implied = ("chapter",)

    id: Id
    chapter: str
    source: Source
    says: Text
    figure: Text
    test: Test | None = None
    parts: Annotated[tuple[Part, ...], Some] = ()
    evidence: Annotated[tuple[Literal[*PROFILES], ...], Some] = ("laptop", "paper")
    statement: Truth = False
    corrected: Test | None = None
    correction: Text = ""
    condition: Text = ""
    asks: Truth = False
    combine: Literal["all", "any"] = "all"
    decided_by: Text = ""
    effect: Effect | None = None
    scope: tuple[str, ...] = ("data", "width", "steps")
    out_of_reach: Truth = False  # known: with the planned seeds a test of it cannot hold
    rungs: Truth = False
    was: Text = ""
    of: Text = ""

    @model_validator(mode="after")
    def _consistent(self) -> Claim:
        for wrong, words in (
            (
                bool(self.test) == bool(self.parts),
                "both test and parts, or neither; expected exactly one of them",
            ),
            (
                (self.corrected or self.condition) and not self.statement,
                "a correction or condition but is no statement; expected `statement: true` beside them",
            ),
            (
                self.correction and not self.corrected,
                "a correction that nothing tests; expected `corrected: {kind: …}` beside it",
            ),
            (
                self.parts and self.corrected,
                "parts and a correction; expected one claim per corrected formula",
            ),
            (
                len(self.parts) == 1 and not self.rungs,
                "one part; expected at least two, `parts: [{says: …, test: …}, …]`",
            ),
            (
                self.combine != "all" and not self.parts,
                "a way to combine parts and none; expected `parts: [{says: …, test: …}, …]`",
            ),
        ):
            if wrong:
                raise ValueError(f"has {words}")
        return self

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
