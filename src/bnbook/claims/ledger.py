"""One row of the ledger for each claim: everything that a table, a chart or a reader's own code needs of it.

A row is plain JSON. Its keys:

- `id`, `chapter`, `figure` (its name in the chapter), `says`, `source` (key, version, where); `was`, the
  words of its lock where `says` only says the same more clearly,
- `kind`: measurement, statement or question; `combine`: all or any of its parts; `rungs`: whether these
  are sizes of what was trained; `of`: the claim that another chapter judges at one size, if one does,
- `rests_on`: the instruments that its numbers come from, ids of book/instruments.yml,
- `verdict`; `words`, the verdict as readers see it; `remark`, what changed since the run,
- `exploratory`: why its test counts as made after its data; `locked`: since when it stands; `changed`: when
  and why its preregistered test was changed; `power`: the smallest effect that the planned seeds show,
- `effect` and `interval` of the test that decides, as below; `n`, `scope`, `profile`,
- `other_margins`: the verdicts at half and at twice the margin, or null,
- `tests`, one for each test:
  - `role`: whole, part, printed or corrected; `says`; `asks`, what must hold, in words,
  - `test` as in the claims file; `verdict`; `holds`: true, false, or null for open,
  - `effect` {number, unit, words}; `interval` {low, high, words} of 95 %; `n`,
  - `values`: what the interval is of, one for each seed; `side`: how many are on the verdict's side,
  - `p` by the interval and `sign_p` by the sign test; `kept` by Benjamini and Hochberg, in the whole book.

What is not there is null: no interval of an exact check, no number of what was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bnbook.claims.claim import Claim, Effect
from bnbook.claims.effects import effect_and_interval
from bnbook.claims.judging import NOT_TESTED, Judgement, word
from bnbook.claims.kinds.known import describe_test
from bnbook.claims.outcome import Outcome
from bnbook.claims.significance import FALSE_SHARE, benjamini_hochberg, significance

DIGITS = 6
NOT_RUN = "not run"


def ledger_row(
    claim: Claim, found: Judgement | None, other_margins: Sequence[str] = (), rests_on: Sequence[str] = ()
) -> dict[str, Any]:
    """The row of one claim, `kept` still null; None: its chapter has not been run."""
    counted = found is not None and found.verdict != NOT_TESTED
    row: dict[str, Any] = {
        "id": claim.id,
        "chapter": claim.chapter,
        "says": claim.says,
        "was": claim.was,
        "source": {"key": claim.source.key, "version": claim.source.version, "where": claim.source.where},
        "kind": "question" if claim.asks else "statement" if claim.statement else "measurement",
        "verdict": found.verdict if found else NOT_RUN,
        "words": found.words if found else NOT_RUN,
        "effect": None,
        "interval": None,
        "n": found.n if found else 0,
        "scope": found.scope if found else "",
        "profile": found.profile if found else None,
        "combine": claim.combine,
        "rungs": claim.rungs,
        "of": claim.of,
        "rests_on": list(rests_on),
        "figure": claim.figure,
        "remark": found.remark if found else "",
        "exploratory": found.exploratory if found else "",
        "locked": found.locked if found else "",
        "changed": list(found.changed) if found else [],
        "power": list(found.power) if found else [],
        "other_margins": list(other_margins) if counted and other_margins else None,
        "tests": [],
    }
    if found and found.outcome:
        row["tests"] = list(_tests(claim, found, counted))
        row |= {"effect": _effect(found.outcome), "interval": _interval(found.outcome)}
    return row


def keep(rows: Iterable[dict[str, Any]], rate: float = FALSE_SHARE) -> None:
    """Set `kept` in every test that has a p-value and counts: at most `rate` of the kept may be false."""
    tests = [test for row in rows for test in row["tests"] if test["p"] is not None]
    marks = benjamini_hochberg([test["p"] for test in tests], rate)
    for test, mark in zip(tests, marks, strict=True):
        test["kept"] = mark


def _tests(claim: Claim, found: Judgement, counted: bool) -> Iterable[dict[str, Any]]:
    if found.parts:
        for part, (says, _, outcome) in zip(claim.parts, found.parts, strict=True):
            reached = outcome.n > 0  # of rungs a run has some only
            yield _test("part", says, outcome, claim, part.effect or claim.effect, counted and reached)
        return
    role = "printed" if claim.corrected else "whole"
    yield _test(role, claim.says, found.outcome, claim, claim.effect, counted)
    if found.corrected:
        says = claim.correction or (f"if {claim.condition}" if claim.condition else "corrected")
        yield _test("corrected", says, found.corrected, claim, found.corrected.shown, counted)


def _test(
    role: str, says: str, outcome: Outcome, claim: Claim, shown: Effect | None, counted: bool
) -> dict[str, Any]:
    sure = significance(outcome) if counted else None
    return {
        "role": role,
        "says": says,
        "asks": describe_test(outcome.test, shown),
        "test": {key: list(v) if isinstance(v, tuple) else v for key, v in outcome.test.keys().items()},
        "verdict": word(claim, [outcome.holds]) if counted else NOT_TESTED,
        "holds": outcome.holds,
        "effect": _effect(outcome),
        "interval": _interval(outcome),
        "n": outcome.n,
        "values": [_number(value) for value in outcome.values],
        "side": sure.side if sure else None,
        "p": _number(sure.p) if sure else None,
        "sign_p": _number(sure.sign_p) if sure else None,
        "kept": None,
    }


def _effect(outcome: Outcome) -> dict[str, Any]:
    unit = outcome.shown.unit if outcome.shown and not outcome.trials else outcome.unit
    return {"number": _number(outcome.effect), "unit": unit, "words": effect_and_interval(outcome)[0]}


def _interval(outcome: Outcome) -> dict[str, Any] | None:
    low, high = (_number(edge) for edge in outcome.interval)
    if low is None or high is None or low == high:
        return None
    return {"low": low, "high": high, "words": effect_and_interval(outcome)[1]}


def _number(value: float) -> float | None:
    value = float(np.float64(value))
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
