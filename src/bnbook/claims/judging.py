"""From outcomes to verdicts: the words of the scoreboard, and nothing else decides them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bnbook.claims.claim import Claim
from bnbook.claims.kinds import Outcome, evaluate

REPRODUCED, NOT_REPRODUCED, PARTLY = "reproduced", "not reproduced", "partly"
TRUE, CORRECTED = "true as printed", "true after correction"
CONDITIONAL, FALSE = "conditional", "false as printed"
NO_EVIDENCE = "no evidence at this profile"


@dataclass(frozen=True)
class Judgement:
    """The verdict on one claim from one run."""

    claim: Claim
    verdict: str
    effect: float  # nan where nothing was measured
    interval: tuple[float, float]  # 95 %; both ends equal for an exact check
    n: int  # seeds
    unit: str = ""
    detail: str = ""
    parts: tuple[tuple[str, str, Outcome], ...] = ()  # (says, verdict, outcome) of each part
    corrected: Outcome | None = None  # what the corrected form gave, where the printed one failed
    profile: str | None = None
    remark: str = ""  # what changed since the run

    @property
    def words(self) -> str:
        """The verdict as a reader sees it: a smoke run is said to be one, a later change too."""
        smoke = self.verdict == NO_EVIDENCE and self.profile == "smoke"
        words = "smoke run, no evidence" if smoke else self.verdict
        return f"{words} ({self.remark})" if self.remark else words


def judge(
    claim: Claim, results: Mapping[str, np.ndarray], profile: str | None = None, *, exact: bool = False
) -> Judgement:
    """Judge one claim by recorded results, name -> values (S, ...).

    At a profile that is no evidence for the claim the verdict says so beside the effect, if measured. An
    `exact` chapter (formulas, theorems) counts at every profile, and so does `profile=None`.
    A statement that fails as printed is "true after correction" where its corrected test holds, "conditional"
    where it also names its condition. Parts that agree decide the claim; some true, some not is "partly".
    Raises BnbookError for a missing result where the profile counts as evidence.
    """
    if claim.counts_as_evidence(profile, exact):
        found = _judge_parts(claim, results) if claim.parts else _judge_whole(claim, results)
        return replace(found, profile=profile)
    if all(name in results for name in claim.result_names()):
        measured = judge(claim, results)
        return replace(measured, verdict=NO_EVIDENCE, profile=profile)
    nothing = (-math.inf, math.inf)
    return Judgement(claim, NO_EVIDENCE, math.nan, nothing, 0, detail="not measured", profile=profile)


def _judge_whole(claim: Claim, results: Mapping[str, np.ndarray]) -> Judgement:
    printed = evaluate(claim.test, results, claim.id)
    corrected = evaluate(claim.corrected, results, claim.id) if claim.corrected else None
    verdict = _verdict(claim, printed.holds, printed.n)
    if verdict == FALSE and corrected and corrected.holds:
        verdict = CONDITIONAL if claim.condition else CORRECTED
    shown = corrected if printed.holds is False else None
    return Judgement(
        claim, verdict, printed.effect, printed.interval, printed.n, printed.unit, printed.detail, (), shown
    )


def _judge_parts(claim: Claim, results: Mapping[str, np.ndarray]) -> Judgement:
    outcomes = [evaluate(part.test, results, claim.id) for part in claim.parts]
    held = {outcome.holds for outcome in outcomes}
    n = min(outcome.n for outcome in outcomes)
    verdict = PARTLY if {True, False} <= held else _verdict(claim, held.pop() if len(held) == 1 else None, n)
    # Shown beside the verdict is the part that decides it: the first that fails, else the first undecided.
    rank = {False: 0, None: 1, True: 2}
    shown = min(range(len(outcomes)), key=lambda k: rank[outcomes[k].holds])
    chosen = outcomes[shown]
    detail = f"part {shown + 1} of {len(outcomes)}: {claim.parts[shown].says}"
    parts = tuple(
        (part.says, _verdict(claim, outcome.holds, outcome.n), outcome)
        for part, outcome in zip(claim.parts, outcomes, strict=True)
    )
    return Judgement(claim, verdict, chosen.effect, chosen.interval, n, chosen.unit, detail, parts)


def _verdict(claim: Claim, holds: bool | None, n: int) -> str:
    """The word for one outcome. A condition without a corrected test: the test ran under that condition."""
    if holds is None:
        return f"undecided at n = {n}"
    if not claim.statement:
        return REPRODUCED if holds else NOT_REPRODUCED
    if not holds:
        return FALSE
    return CONDITIONAL if claim.condition and claim.corrected is None else TRUE
