"""From outcomes to verdicts: the words of the scoreboard, and nothing else decides them.

A measurement of a source is reproduced or not, a formula or theorem holds or is wrong, a question that is the
book's own is answered by yes or no. Parts are combined in three-valued logic: `all` fails with the first part
that fails, `any` holds with the first that holds, however open the others are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from bnbook.claims.claim import Claim
from bnbook.claims.deciding import deciding_sizes, deciding_words, seeds_for_claim
from bnbook.claims.draws import counted
from bnbook.claims.kinds.known import evaluate
from bnbook.claims.outcome import Outcome
from bnbook.claims.reach import can_hold
from bnbook.claims.rungs import judge_rungs
from bnbook.claims.scope import scope_words
from bnbook.claims.words import spelled

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
MIXED, PARTLY_REFUTED = "mixed", "partly refuted, rest open"
HOLDS, HOLDS_IF, CORRECTED, WRONG = "holds", "holds if …", "wrong as printed, corrected", "wrong"
YES, NO = "yes", "no"
OPEN = "open"
NOT_TESTED = "not tested at this scale"


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
    outcome: Outcome | None = None  # the one that decides
    exploratory: str = ""  # why the test counts as made after its data; "" where it was locked before
    locked: str = ""  # date of the lock that counts
    changed: tuple[str, ...] = ()  # when and why its preregistered test was changed
    power: tuple[str, ...] = ()  # what the planned seeds can decide, as its lock says
    scope: str = ""  # how far the verdict goes: profile, data, size and seeds
    plainly: str = ""  # the verdict by intervals without what widens them, where it is another one
    few: int = 0  # seeds with which a test of a rerun cannot hold

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What its tests found: its parts', or its own and that of the corrected form."""
        own = (self.outcome, self.corrected) if not self.parts else [found for _, _, found in self.parts]
        return tuple(found for found in own if found)

    @property
    def decided_by(self) -> str:
        """What would decide an open claim: so many seeds, by the recorded spread, and what the claim says."""
        if self.verdict != OPEN or not self.outcome:
            return ""
        if self.few:
            return f"{self.few} {'seed' if self.few == 1 else 'seeds'} cannot decide it"
        own = self.outcomes if self.parts else self.outcomes[:1]
        needed = seeds_for_claim(own, self.claim.combine)
        words = deciding_sizes(self.parts, needed) if self.claim.rungs else deciding_words(needed)
        return "; ".join(each for each in (words, self.claim.decided_by) if each)

    @property
    def words(self) -> str:
        """The verdict as a reader sees it: a condition, what would decide it, a later change are said."""
        words = f"holds if {self.claim.condition}" if self.verdict == HOLDS_IF else self.verdict
        smoke = "smoke run" if words == NOT_TESTED and self.profile == "smoke" else ""
        plainly = f"“{self.plainly}” by plain intervals" if self.plainly else ""
        untold = self.verdict == WRONG and self.corrected is not None and self.corrected.holds is None
        mended = "its correction is open" if untold else ""
        notes = "; ".join(note for note in (self.decided_by, smoke, mended, plainly, self.remark) if note)
        return f"{words} ({notes})" if notes else words

    @property
    def marked(self) -> str:
        """The words, and that the verdict is exploratory where it is."""
        return f"{self.words} (exploratory)" if self.exploratory else self.words


def judge(
    claim: Claim, results: Mapping[str, np.ndarray], profile: str | None = None, *, exact: bool = False
) -> Judgement:
    """Judge one claim by recorded results, name -> values (S, ...); of a published run by all its draws.

    At a profile that is no evidence for the claim the verdict says so beside the effect, if measured. An
    `exact` chapter (formulas, theorems) counts at every profile, and so does `profile=None`. A statement that
    fails is "wrong as printed, corrected" where its corrected test holds, "holds if …" where it names a
    condition. Raises BnbookError for a missing result where the profile counts as evidence.
    """
    results = counted(claim, results)
    nothing = Judgement(claim, NOT_TESTED, math.nan, (-math.inf, math.inf), 0, detail="not measured")
    if claim.counts_as_evidence(profile, exact) and claim.rungs:
        found = judge_rungs(claim, results, partial(_judge_parts, results=results), nothing)
    elif claim.counts_as_evidence(profile, exact):
        found = _judge_parts(claim, results) if claim.parts else _judge_whole(claim, results)
    elif all(name in results for name in claim.result_names()) and not claim.rungs:
        found = replace(judge(claim, results), verdict=NOT_TESTED)
    else:
        found = nothing
    if (narrow := claim.by_plain_intervals()) != claim and claim.counts_as_evidence(profile, exact):
        plainly = judge(narrow, results, profile, exact=exact).verdict
        found = replace(found, plainly=plainly if plainly != found.verdict else "")
    header = getattr(results, "header", {})
    if header.get("default_parameters") is False and not exact:
        found = _of_a_rerun(found, header)
    reached = [says for says, _, outcome in found.parts if outcome.n] if claim.rungs else []
    return replace(found, profile=profile, scope=scope_words(claim, header, profile, found.n, reached))


def _of_a_rerun(found: Judgement, header: Mapping[str, Any]) -> Judgement:
    """The judgement of a run with changed parameters: none of the claim where its settings or data are other than
    the profile's, and open where its seeds are too few."""
    if found.verdict == NOT_TESTED:
        return found
    few = [] if found.claim.out_of_reach else [o.n for o in found.outcomes if not can_hold(o.test, o.n)]
    if few:
        found = replace(found, verdict=OPEN, few=min(few))
    if other := header.get("other_settings"):
        return replace(found, verdict=NOT_TESTED, remark=f"with {other} it reads “{found.verdict}”")
    return found


def combine(held: Sequence[bool | None], how: str = "all") -> bool | None:
    """Kleene's three-valued "and" or "or" of what parts gave; None is unknown."""
    decisive = how == "any"
    return decisive if decisive in held else None if None in held else not decisive


def _judge_whole(claim: Claim, results: Mapping[str, np.ndarray]) -> Judgement:
    printed, corrected = evaluate(claim.test, results, claim.id, claim.effect), None
    if claim.corrected:
        alike = claim.effect if claim.corrected.kind == claim.test.kind else None
        corrected = evaluate(claim.corrected, results, claim.id, alike)
    verdict = word(claim, [printed.holds])
    if verdict == WRONG and corrected and corrected.holds:
        verdict = HOLDS_IF if claim.condition else CORRECTED
    elif verdict == HOLDS and claim.condition and corrected is None:  # the test ran under that condition
        verdict = HOLDS_IF
    shown = corrected if printed.holds is False else None
    return _judgement(claim, verdict, printed, printed.n, printed.detail, corrected=shown)


def _judge_parts(claim: Claim, results: Mapping[str, np.ndarray]) -> Judgement:
    outcomes = [evaluate(part.test, results, claim.id, part.effect or claim.effect) for part in claim.parts]
    held = [outcome.holds for outcome in outcomes]
    verdict = word(claim, held)
    if verdict == HOLDS and claim.condition:
        verdict = HOLDS_IF
    # Shown beside the verdict is the part that decides it, else the first that is open.
    rank = {claim.combine == "any": 0, None: 1, claim.combine != "any": 2}
    shown = min(range(len(outcomes)), key=lambda k: rank[held[k]])
    detail = f"part {shown + 1} of {len(outcomes)}: {spelled(claim.parts[shown].says)}"
    parts = tuple(
        (part.says, word(claim, [outcome.holds]), outcome)
        for part, outcome in zip(claim.parts, outcomes, strict=True)
    )
    fewest = min(outcome.n for outcome in outcomes)
    return _judgement(claim, verdict, outcomes[shown], fewest, detail, parts=parts)


def _judgement(claim: Claim, verdict: str, of: Outcome, n: int, detail: str, **more) -> Judgement:
    return Judgement(claim, verdict, of.effect, of.interval, n, of.unit, detail, outcome=of, **more)


def word(claim: Claim, held: Sequence[bool | None]) -> str:
    """The word for what the parts of a claim, or its one test, gave."""
    holds = combine(held, claim.combine)
    if holds is None:
        return OPEN
    if claim.asks:
        return YES if holds else NO
    if claim.statement:
        return HOLDS if holds else WRONG
    if holds:
        return REPRODUCED
    return MIXED if True in held else PARTLY_REFUTED if None in held else NOT_REPRODUCED
