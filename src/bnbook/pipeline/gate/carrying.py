"""What a publication adds to the locks: the run, and the claims whose numbers it left as they were."""

from __future__ import annotations

from typing import Any

from bnbook import claims
from bnbook.claims import Claim, locks
from bnbook.claims.judging import is_in
from bnbook.claims.locks import ranges, same_numbers, short
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.results import Results

#: Of an identity's tolerance: rounding errors differ from machine to machine, and mean the same.
ROUNDING = 1e-3


def publishing(chapter: Chapter, profile: str, old: Results | None, new: Results) -> list[dict[str, Any]]:
    """The events of a publication: the claims whose numbers are those of the run before, and the run.

    BnbookError where a result has lost seeds although the parameters are the same, or a rung is gone.
    """
    events = []
    if old is not None:
        _require_no_seed_lost(chapter, old, new)
        was, now = locks.run_measure(old.header), locks.run_measure(new.header)
        same = [claim.id for claim in remeasured(chapter, profile, old, new) if unchanged(claim, old, new)]
        if same:
            about = {"event": "carried", "chapter": chapter.name, "profile": profile, "claims": same}
            events.append({**about, "was": list(was), "now": list(now)})
    seeds = {seed for entry in new.entries.values() for seed in entry["seeds"]}
    about = {"event": "published", "chapter": chapter.name, "profile": profile}
    return [*events, {**about, "content": short(new.header["content"]), "seeds": ranges(seeds)}]


def _require_no_seed_lost(chapter: Chapter, old: Results, new: Results) -> None:
    own = (claim for claim in claims.chapter_claims(chapter.name) if claim.rungs)
    judged = {name for claim in own for name in claim.result_names()}
    if gone := sorted(judged & set(old.entries) - set(new.entries)):
        raise BnbookError(
            f"{chapter.name}: result {gone[0]} of the published run is gone, by which a claim is judged at "
            "its rung; expected every rung that was published: run it with them"
        )
    if old.header.get("parameters") != new.header.get("parameters"):
        return
    for name in old.entries.keys() & new.entries.keys():
        if lost := sorted(set(old.entries[name]["seeds"]) - set(new.entries[name]["seeds"])):
            raise BnbookError(
                f"{chapter.name}: result {name} lacks the seeds {lost} of the published run, with the same "
                "parameters; expected all that were planned: run it again"
            )


def remeasured(chapter: Chapter, profile: str, old: Results, new: Results) -> list[Claim]:
    """Claims that the new run measures in a way that no lock of theirs knows, while it knows the old."""
    chain, was, now = locks.read(), locks.run_measure(old.header), locks.run_measure(new.header)
    found = []
    for claim in claims.chapter_claims(chapter.name):
        own = chain.of_claim(claim.id)
        known = [same_numbers(line, own, profile) for line in own if line.tests]
        if any(was in each and now not in each for each in known):
            found.append(claim)
    return found


def unchanged(claim: Claim, old: Results, new: Results) -> bool:
    """Whether all that the claim reads has the same numbers on the seeds of the run before; rungs that only
    the new one has reached were not seen."""
    slack = max(
        (ROUNDING * test.tolerance for test in claim.tests if test.kind == "identity" and test.tolerance),
        default=0.0,
    )
    names = [name for name in claim.result_names() if not claim.rungs or name in old]
    return bool(names) and is_in(old, new, names, slack)


def words(evidence: Evidence) -> list[str]:
    """What a publication did to the standing of the chapter's claims."""
    chain, name = locks.read(), evidence.chapter.name
    carried = [line for line in chain.of_chapter(name)[-2:-1] if line.event == "carried"]
    lines = [f"  measured otherwise, same numbers: {len(line['claims'])} claims" for line in carried]
    for claim in claims.chapter_claims(name):
        if reason := locks.standing(claim, evidence.results, chain).exploratory:
            lines.append(f"  exploratory: {claim.id} ({reason})")
    return lines
