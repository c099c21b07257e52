"""Move the goalposts: every judged claim with the values per seed that its tests read, paired."""

from __future__ import annotations

from typing import Any

from bnbook.claims import Claim, Judgement
from bnbook.claims.claim import Effect, Test
from bnbook.claims.judging import NOT_TESTED, counted
from bnbook.claims.kinds import kind_of
from bnbook.claims.recorded import Recorded
from bnbook.claims.words import spelled
from bnbook.pipeline.prose.tokens import Pages
from bnbook.results import Results

#: Of kinds whose effect is none of what was recorded.
OWN_UNITS = {"sign": "of the seeds", "agreement": "%", "inequality": "violations"}


def goalposts(pages: Pages) -> list[dict[str, Any]]:
    """A row for each claim that counts: its words, and its tests with their bound and their columns."""
    rows = []
    for claim in pages.claims:
        found, evidence = pages.judgement(claim), pages.evidence.get(claim.chapter)
        if found and evidence and found.verdict != NOT_TESTED:
            rows.append(_row(claim, found, counted(claim, evidence.results)))
    return rows


def _row(claim: Claim, found: Judgement, results: Results) -> dict[str, Any]:
    parts = [part for part in claim.parts if set(part.test.result_names()) <= set(results)]  # rungs reached
    tests = [("part", part.says, part.test, part.effect or claim.effect) for part in parts]
    if not claim.parts:
        tests = [("whole", "as printed" if claim.corrected else claim.says, claim.test, claim.effect)]
        if claim.corrected:
            says = claim.correction or claim.condition or "corrected"
            alike = claim.effect if claim.corrected.kind == claim.test.kind else None
            tests.append(("corrected", says, claim.corrected, alike))
    return {
        "id": claim.id,
        "chapter": claim.chapter,
        "says": spelled(claim.says),
        "kind": "question" if claim.asks else "statement" if claim.statement else "measurement",
        "combine": claim.combine,
        "condition": bool(claim.condition),
        "verdict": found.verdict,
        "words": found.words,
        "exploratory": bool(found.exploratory),
        "tests": [
            _test(role, spelled(says), test, shown, results, claim.id) for role, says, test, shown in tests
        ],
    }


def _test(
    role: str, says: str, test: Test, shown: Effect | None, results: Results, claim: str
) -> dict[str, Any]:
    recorded = Recorded(results, claim)
    first, columns = test.result_names()[0], kind_of(test).columns(test, recorded)
    bounds = (test.threshold, test.margin, test.tolerance, test.allowed, 0.5 if test.kind == "sign" else 0)
    unit = OWN_UNITS.get(test.kind) or (shown.unit if shown else "") or recorded.unit(first)
    return {
        "role": role,
        "says": says,
        "kind": test.kind,
        "side": "greater" if test.kind in ("ordering", "sign") else test.side,
        "centre": test.expected or 0.0,
        "bound": next(bound for bound in bounds if bound is not None),
        "resolution": test.resolution,
        "cells": test.cells,
        "unit": unit if test.kind != "ratio" else "",
        "seeds": recorded.seeds(test.result_names()),
        "columns": columns.tolist(),
    }
