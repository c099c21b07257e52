"""What each draw of a chapter gives by itself, beside the verdict on all of them together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from bnbook import claims, paths, results
from bnbook.claims import Claim, Judgement, Test, judging
from bnbook.claims.kinds import evaluate
from bnbook.claims.locks import ranges
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.profiles import PUBLISHED
from bnbook.results import Results

#: Relative difference up to which two draws count as the same where they are counted.
NEAR = 1e-3
#: How a test was drawn again.
WAYS = (
    "the same seeds, the same measure",
    "the same seeds, measured otherwise",
    "other seeds, or more of them",
)


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
    last, found = evidence.results, []
    for draw, left_out in judging.beside(claim, last):
        if set(claim.required_names()) <= set(draw):
            found += _judged(claim, draw, evidence, left_out)
    return [*found, *_judged(claim, replace(last, draws=()), evidence)] if found else []


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


def redrawn(listed: Iterable[Claim]) -> Iterator[tuple[str, bool | None, bool | None]]:
    """(way, what a run says, what the next one says that gave a test other numbers), for each test of each claim
    by all that was published, on whatever page it is shown; `way` is one of `WAYS`."""
    by_chapter = defaultdict(list)
    for claim in listed:
        by_chapter[claim.chapter].append(claim)
    for name, own in by_chapter.items():
        for profile in PUBLISHED:
            path = paths.executed_folder() / profile / f"{name}.json"
            if path.is_file() and (last := results.read(path)).draws:
                runs = [*last.draws, replace(last, draws=())]
                for claim in own:
                    for test in claim.tests:
                        yield from _turns(claim, test, runs)


def _turns(claim: Claim, test: Test, runs: list[Results]) -> Iterator[tuple[str, bool | None, bool | None]]:
    """Of one test, from each run that it can be judged by to the next one."""
    names, said = test.result_names(), []
    for run in (each for each in runs if set(names) <= set(each)):
        try:
            found = evaluate(test, run, claim.id)
        except BnbookError:  # not as the test of today needs it
            continue
        if found.n and not (said and judging.is_in(said[-1][0], run, names, relative=NEAR)):
            said.append((run, found.holds))
    for (old, then), (new, now) in pairwise(said):
        if any(old.entries[name]["seeds"] != new.entries[name]["seeds"] for name in names):
            yield WAYS[2], then, now
        else:
            yield WAYS[judging.otherwise(claim, old, new) != ""], then, now
