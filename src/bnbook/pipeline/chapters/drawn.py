"""What each draw of a chapter gives by itself, beside the verdict on all of them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bnbook import claims
from bnbook.claims import Claim, Judgement, draws
from bnbook.claims.locks.lines import ranges
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.results import Results

#: Relative difference up to which the numbers of two draws are called the same.
SAME = 1e-3


@dataclass(frozen=True)
class Drawn:
    """One draw and the judgement on it alone; `left_out` says why it does not count, "" where it does."""

    run: Results
    found: Judgement
    left_out: str = ""

    @property
    def as_data(self) -> dict[str, Any]:
        """In plain JSON types: date, commit and device of its run, its seeds, and as in a row of the ledger what
        it found."""
        made, row = self.run.header["provenance"], claims.ledger_row(self.found.claim, self.found)
        names = [name for name in self.found.claim.result_names() if name in self.run]
        seeds = {seed for name in names for seed in self.run.entries[name]["seeds"]}
        return {
            **{key: made.get(key) for key in ("date", "commit", "device")},
            "seeds": ranges(seeds),
            **{key: row[key] for key in ("verdict", "effect", "interval", "n")},
            "tests": [
                {key: test[key] for key in ("holds", "effect", "interval", "n")} for test in row["tests"]
            ],
            "left_out": self.left_out,
        }


def each_alone(claim: Claim, evidence: Evidence) -> list[Drawn]:
    """Every draw of what a claim reads by itself, the last run at the end; none where there is but one.

    A draw is left away where it lacks what the test reads, or cannot be judged by today's.
    """
    results, found = evidence.results, []
    for draw in draws.distinct(claim, results):
        if set(claim.required_names()) <= set(draw):
            found += _judged(claim, draw, evidence, draws.left_out(claim, draw, results))
    return [*found, *_judged(claim, replace(results, draws=()), evidence)] if found else []


def _judged(claim: Claim, run: Results, evidence: Evidence, left_out: str = "") -> list[Drawn]:
    try:
        return [
            Drawn(run, claims.judge(claim, run, evidence.profile, exact=evidence.chapter.exact), left_out)
        ]
    except BnbookError:
        return []


def remark(claim: Claim, verdict: str, evidence: Evidence) -> str:
    """What the draws say by themselves, where one of them says something else than all together."""
    alone = [one.found.verdict for one in each_alone(claim, evidence) if not one.left_out]
    words = ", ".join(f"“{word}”" for word in alone)
    return f"its draws alone: {words}" if set(alone) - {verdict} else ""


def redrawn(claim: Claim, evidence: Evidence) -> Iterator[tuple[str, str, bool | None, bool | None]]:
    """("same" or "fresh" seeds, why it is left out, what the draw says, what the last run says) for each test
    of a claim and each draw that gave it other numbers."""
    *earlier, last = each_alone(claim, evidence) or [None]
    for one in earlier:
        pairs = zip(one.found.outcomes, last.found.outcomes)
        for then, now in (pair for pair in pairs if pair[0].test == pair[1].test and all(o.n for o in pair)):
            names = then.test.result_names()
            seeds = [{s for n in names for s in run.entries[n]["seeds"]} for run in (one.run, last.run)]
            if seeds[0] != seeds[1]:
                yield "fresh", one.left_out, then.holds, now.holds
            elif not all(np.allclose(one.run[n], last.run[n], SAME, 0, equal_nan=True) for n in names):
                yield "same", one.left_out, then.holds, now.holds
