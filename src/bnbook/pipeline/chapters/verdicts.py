"""The one way from recorded values to the verdicts that readers see: claims judged by a run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from bnbook import claims
from bnbook.claims import Claim, Judgement, judging, locks
from bnbook.claims.locks import short
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import drawn
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.results import Results

REWORDED = "reworded after the run"


def judged(claim: Claim, evidence: Evidence) -> Judgement:
    """The judgement as every page shows it: exploratory where its test did not stand before the data, with a
    remark where its words are not those that the run was made under."""
    found = claims.judge(claim, evidence.results, profile=evidence.profile, exact=evidence.chapter.exact)
    chain = locks.read()
    stands, own = locks.standing(claim, evidence.results, chain), chain.of_claim(claim.id)
    remark = drawn.remark(claim, found.verdict, evidence) or _remark(found, evidence.results.header, chain)
    changed = tuple(each.words for each in locks.deviations(own))
    power = locks.power(own, short(claim.test_hash), evidence.profile)
    before = {"exploratory": stands.exploratory, "locked": stands.date, "changed": changed, "power": power}
    return replace(found, remark=remark, **before)


def chapter_verdicts(evidence: Evidence) -> list[Judgement]:
    """Every claim of the chapter that the run has the results for."""
    own = claims.chapter_claims(evidence.chapter.name)
    return [judged(claim, evidence) for claim in own if set(claim.required_names()) <= set(evidence.results)]


def as_recorded(
    listed: Iterable[Claim], recorded: Results, profile: str, exact: bool
) -> dict[str, dict[str, str]]:
    """What a run notes of its own verdicts, so that whatever turns them later shows."""
    noted = {}
    for claim in listed:
        try:
            word = claims.judge(claim, recorded, profile, exact=exact).verdict
        except BnbookError:  # a result is missing or not as the test needs it: the gate says so
            continue
        noted[claim.id] = {"says": wording(claim), "verdict": word, "terms": terms(claim)}
    return noted


def wording(claim: Claim) -> str:
    """All that the claim says, in its parts too, in the words of its lock."""
    return " | ".join([claim.was or claim.says, *(part.says for part in claim.parts)])


def terms(claim: Claim) -> str:
    """What a verdict adds to it: the condition under which it holds, how it is corrected."""
    return " | ".join((claim.condition, claim.correction))


def withdrawn(evidence: Evidence) -> list[str]:
    """Ids of claims that the run was made under and that the book no longer lists."""
    listed = {claim.id for claim in claims.chapter_claims(evidence.chapter.name)}
    return [name for name in evidence.results.header.get("claims", {}) if name not in listed]


def how_sure(judgements: Iterable[Judgement]) -> str:
    """How many of a chapter's tests stood before its run, in words; the others are exploratory, and why."""
    found = list(judgements)
    reasons = Counter(one.exploratory for one in found if one.exploratory)
    count, late = len(found), reasons.total()
    if not late:
        return f"all {count} tests of this chapter were fixed before its run" if count else "no test"
    why = ", ".join(reason for reason, _ in reasons.most_common())
    if late == count:
        return f"the {count} tests of this chapter are exploratory ({why})"
    some = f"{late} {'is' if late == 1 else 'are'} exploratory ({why})"
    return f"{count - late} of the {count} tests of this chapter were fixed before its run, {some}"


def tally(words: Iterable[str]) -> str:
    """How many of each verdict, the most frequent first: "3 reproduced · 1 open"."""
    counts = Counter(words)
    return " · ".join(f"{count} {word}" for word, count in counts.most_common())


def says(claim: Claim) -> str:
    """Hash of a claim's words, as a lock keeps it."""
    return hashlib.sha256(wording(claim).encode()).hexdigest()[:8]


def _remark(found: Judgement, header: Mapping[str, Any], chain: locks.Chain) -> str:
    """Why the verdict is not what it was when the run ended, or nothing; runs from before `judged` was noted
    are held to the words of the locks."""
    claim = found.claim
    if "judged" not in header:
        words = {line["says"] for line in chain.of_claim(claim.id) if line.tests}
        return REWORDED if words and says(claim) not in words else ""
    then = header.get("judged", {}).get(claim.id)
    if then and (then["says"] != wording(claim) or then.get("terms", terms(claim)) != terms(claim)):
        return REWORDED
    before = then and judging.NOW.get(then["verdict"], then["verdict"])
    return f"“{before}” when it ran" if before and before != found.verdict else ""
