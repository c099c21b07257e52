"""What a claim is: who says it, what is measured, and the test that was fixed before the run."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from bookpress.profiles import PROFILES
from bookpress.schema import Count, Entry, Id, Number, Some, Text, Truth, as_line, model

#: What makes an interval wider, so that it decides less.
WIDENING = ("resolution", "cells")
#: Kind of test -> sets of keys of which a test has one, and keys that it may have besides (see `kinds`).
SAMPLED = {"nonfinite", "resolution"}
BEYOND, NEAR = {"side", "threshold"}, {"expected", "tolerance"}
KEYS: dict[str, tuple[tuple[set[str], ...], set[str]]] = {
    "difference": (({"a", "b", *BEYOND},), SAMPLED | {"events"}),
    "ratio": (({"a", "b", *BEYOND},), SAMPLED),
    "equivalence": (({"a", "b", "margin"},), SAMPLED | {"events"}),
    "ordering": (({"results"},), {"nonfinite"}),
    "sign": (({"a", "b", "side"},), {"nonfinite"}),
    "identity": (({"a", "tolerance"},), set()),
    "inequality": (({"a"},), {"b"}),
    "rate": (({"a", *BEYOND}, {"a", *NEAR}), SAMPLED),
    "agreement": (({"a", "b", "tolerance"},), SAMPLED),
    "level": (
        ({"a", *BEYOND}, {"a", *NEAR}, {"results", *BEYOND}, {"results", *NEAR}),
        SAMPLED | {"events", "cells"},
    ),
}
#: Without sampling error: the rounding of an identity, the violations of a bound.
EXACT = ("identity", "inequality")


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
    """One test of recorded results; `kind` says which of the other fields are set (KEYS).

    `b` is a result or a theory's number; `nonfinite` what a seed without a finite value counts as (without it the test is
    undecided); `resolution` that of a grid or bisection, added to the interval's ends, a factor for ratios; `cells` among
    how many the result is the worst, picked by the data; `events` says that each seed's value is 0 or 1.
    """

    __test__ = False  # not a pytest class

    kind: Literal[*KEYS]
    a: Text | None = None
    b: Annotated[str | float | None, BeforeValidator(_name_or_number)] = None
    results: Annotated[tuple[Text, ...], Field(min_length=2)] | None = None
    side: Literal["greater", "less"] | None = None
    threshold: Number | None = None
    margin: Annotated[Number, Field(ge=0)] | None = None
    tolerance: Annotated[Number, Field(ge=0)] | None = None
    expected: Number | None = None
    nonfinite: Number | None = None
    resolution: Annotated[Number, Field(ge=0)] | None = None
    cells: Annotated[Count, Field(ge=2)] | None = None
    events: Truth | None = None

    @model_validator(mode="after")
    def _of_its_kind(self) -> Test:
        needs, may = KEYS[self.kind]
        given = set(self.keys()) - {"kind"}
        # Judge the keys by the alternative that they fit best: the complaint is about the likely slip.
        needed = max(needs, key=lambda keys: (len(keys & given), -len(keys - given)))
        expected = f"keys kind, {', '.join(sorted(needed))}" + f"; optional {', '.join(sorted(may))}" * bool(
            may
        )
        if missing := sorted(needed - given):
            raise ValueError(f"of kind {self.kind} lacks {', '.join(missing)}; expected {expected}")
        if unknown := sorted(given - needed - may):
            raise ValueError(f"of kind {self.kind} has unknown key {', '.join(unknown)}; expected {expected}")
        if self.events is False:
            raise ValueError("has events False; expected `events: true`, or nothing")
        if self.in_factors and (self.resolution or 1) < 1:
            raise ValueError("has a resolution below 1; expected the factor between two steps of the grid")
        return self

    @property
    def exact(self) -> bool:
        """Without sampling error: rounding, or a count."""
        return self.kind in EXACT

    @property
    def in_factors(self) -> bool:
        """Whether the effect is a factor, its interval one of logarithms."""
        return self.kind == "ratio"

    @property
    def edges(self) -> tuple[float, float]:
        """Between which values the test holds: (threshold, ∞), (-∞, threshold) or within ± of a centre."""
        if self.kind in ("ordering", "sign"):
            return {"ordering": 0.0, "sign": 0.5}[self.kind], math.inf
        if self.side:
            return (self.threshold, math.inf) if self.side == "greater" else (-math.inf, self.threshold)
        margin, centre = self.tolerance if self.margin is None else self.margin, self.expected or 0.0
        return centre - (margin or 0.0), centre + (margin or 0.0)

    def keys(self) -> dict:
        """All that are set, as in the file of claims."""
        return {key: value for key, value in vars(self).items() if value is not None}

    def canonical(self) -> dict:
        """The keys that are set, in plain JSON types: what the hash is taken of.

        Left out are `events`, under which other values than 0 and 1 are refused, and what only widens an
        interval: where that opens a verdict, the verdict says so for ever (see judging).
        """
        return {key: value for key, value in self.keys().items() if key not in ("events", *WIDENING)}

    def names(self) -> tuple[str | float, ...]:
        """What the test compares: names of results, of the last one maybe a number."""
        return self.results or ((self.a,) if self.b is None else (self.a, self.b))

    def result_names(self) -> tuple[str, ...]:
        """Names of the recorded results that the test reads."""
        return tuple(name for name in self.names() if isinstance(name, str))


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
    how far a verdict goes; `was` keeps the words of the lock where `says` only says the same more clearly;
    `out_of_reach` that a test of it cannot hold with the planned seeds.
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
    out_of_reach: Truth = False
    rungs: Truth = False
    was: Text = ""
    of: Text = ""

    @model_validator(mode="after")
    def _consistent(self) -> Claim:
        parts, listed = bool(self.parts), "`parts: [{says: …, test: …}, …]`"
        wrong = {
            "both test and parts, or neither; expected exactly one of them": bool(self.test) == parts,
            "a correction or condition but is no statement; expected `statement: true` beside them": (
                (self.corrected or self.condition) and not self.statement
            ),
            "a correction that nothing tests; expected `corrected: {kind: …}` beside it": (
                self.correction and not self.corrected
            ),
            "parts and a correction; expected one claim per corrected formula": parts and self.corrected,
            f"one part; expected at least two, {listed}": len(self.parts) == 1 and not self.rungs,
            f"a way to combine parts and none; expected {listed}": self.combine != "all" and not parts,
        }
        for words, is_so in wrong.items():
            if is_so:
                raise ValueError(f"has {words}")
        return self

    @property
    def own_tests(self) -> tuple[tuple[str, Test, Effect | None], ...]:
        """Words, test and how its effect is shown: of each part, or of the whole and of its corrected form."""
        if self.parts:
            return tuple((part.says, part.test, part.effect or self.effect) for part in self.parts)
        found = ((self.says, self.test, self.effect),)
        if not self.corrected:
            return found
        says = self.correction or (f"if {self.condition}" if self.condition else "corrected")
        alike = self.effect if self.corrected.kind == self.test.kind else None
        return (*found, (says, self.corrected, alike))

    @property
    def tests(self) -> tuple[Test, ...]:
        """Every test that the claim holds: its own or its parts', and the correction's."""
        return tuple(test for _, test, _ in self.own_tests)

    def with_tests(self, change: Any) -> Claim:
        """The claim with each test exchanged, for what `change(test, effect)` gives."""
        parts = tuple(replace(p, test=change(p.test, p.effect or self.effect)) for p in self.parts)
        test, corrected = (each and change(each, self.effect) for each in (self.test, self.corrected))
        return replace(self, test=test, corrected=corrected, parts=parts)

    def result_names(self) -> tuple[str, ...]:
        """Recorded results that the verdict needs, each once."""
        return self._names

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for test in self.tests for name in test.result_names()))

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
