"""`bnbook lock`: the events that the locks lack before a run, and no other."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bnbook import claims, fingerprint
from bnbook.claims import Claim, locks
from bnbook.claims.locks.lines import FIXED, NAME, Line, ranges, short
from bnbook.claims.locks.standing import measure, same_numbers
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import fresh_run, published
from bnbook.pipeline.chapters.verdicts import says
from bnbook.profiles import PUBLISHED
from bnbook.results import read

MEASURED, SET = "measured otherwise", "settings changed"
SHOWN = 3  # of the results that no run has, those that are named


def lock(chapters: Sequence[Chapter], profile: str, why: str = "") -> list[str]:
    """Write what is missing, and return it in words; BnbookError where nothing is."""
    events = [event for chapter in chapters for event in missing(chapter, profile, why)]
    if not events:
        names = ", ".join(chapter.name for chapter in chapters) if len(chapters) < 4 else "every chapter"
        raise BnbookError(f"nothing to lock: {names} has its claims in {NAME} as they are")
    chain = locks.append(events)
    notes = [note for chapter in chapters for note in _unrecorded(chapter, {e["claim"] for e in events})]
    return [*(_words(line) for line in chain.lines[-len(events) :]), *notes]


def _unrecorded(chapter: Chapter, locked: set[str]) -> list[str]:
    """A line on the results that a claim just locked reads and none of the chapter's runs here has: a slip
    of the pen that is locked is mended only by another lock."""
    runs = [fresh_run(chapter, "smoke"), *(published(chapter, profile) for profile in PUBLISHED)]
    known: set[str] = set()
    for run in runs:
        with suppress(BnbookError):  # a run that cannot be read is for the gate to judge
            known |= set(run.results if run.results_path.is_file() else ())
    listed = [c for c in claims.chapter_claims(chapter.name) if c.id in locked]
    wanted = [claim for claim in listed if claim.counts_as_evidence("laptop", chapter.exact)]
    missing = sorted({name for claim in wanted for name in claim.required_names()} - known) if known else []
    if not missing:
        return []
    named = []
    for name in missing[:SHOWN]:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        named.append(repr(name) + (f" (did you mean {near[0]!r}?)" if near else ""))
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    return [
        f"note: no run of {chapter.name} here has {', '.join(named)}{more}; see whether bnbook run "
        f"{chapter.name} records them. Until it is committed, git checkout book/{NAME} takes the lock back"
    ]


def _words(line: Line) -> str:
    planned = (f"{profile} n = {plan['seeds']}" for profile, plan in line.get("planned", {}).items())
    notes = ", ".join(filter(None, (line.get("why"), *planned)))
    exploratory = "; exploratory until seeds decide that nobody has seen" if line.get("seen") else ""
    return f"{line.event} {line['claim']} ({notes}{exploratory})"


def missing(chapter: Chapter, profile: str, why: str = "") -> list[dict[str, Any]]:
    """The events that the locks lack before a run of the chapter at `profile`.

    A claim without a lock, or with another test, plan or way to measure than its last one. Where the data are
    known and only the way to measure differs, nothing: publishing tells whether the numbers are the same.
    """
    chain, now = locks.read(), _now(chapter)
    _require_what_is_known(chapter, chain)
    listed = claims.chapter_claims(chapter.name)
    found = [_event(claim, chapter, chain.of_claim(claim.id), chain, now, profile, why) for claim in listed]
    ids = {claim.id for claim in listed}
    for name in dict.fromkeys(line["claim"] for line in chain.of_chapter(chapter.name) if line.tests):
        last = [line for line in chain.of_claim(name) if line.event != "carried"][-1]
        if name not in ids and last.event != "withdrawn" and last["chapter"] == chapter.name:
            gone = {"event": "withdrawn", "chapter": chapter.name, "claim": name}
            found.append({**gone, "why": why or "no longer listed"})
    return [event for event in found if event]


def _require_what_is_known(chapter: Chapter, chain: locks.Chain) -> None:
    """BnbookError where a published run is not in its place: a lock says which seeds had been looked at."""
    last = {line["profile"]: line for line in chain.of_chapter(chapter.name) if line.event == "published"}
    for profile, line in last.items():
        path = published(chapter, profile).results_path
        if not path.is_file() or short(read(path).header.get("content", "")) != line["content"]:
            raise BnbookError(
                f"executed/{profile}/{chapter.name}.json is not the run that was published last, whose seeds "
                "a lock has to name; put it back (git checkout executed) or publish it, then lock"
            )


@dataclass(frozen=True)
class _Now:
    """How a chapter measures in this checkout: hash of code and package, plan of each profile."""

    measure: str
    planned: dict[str, dict[str, Any]]


def _now(chapter: Chapter) -> _Now:
    planned = {each: locks.plan(chapter.parameters(each)) for each in PUBLISHED if chapter.has(each)}
    return _Now(measure(fingerprint.chapter_fingerprint(chapter.code_cells, {}, [])), planned)


def _event(
    claim: Claim, chapter: Chapter, own: list[Line], chain: locks.Chain, now: _Now, profile: str, why: str
) -> dict[str, Any] | None:
    last = next((line for line in reversed(own) if line.tests), None)
    seen = _seen(claim, chapter, chain, known=last is not None)
    differs = _differences(claim, last, own, now, profile) if last else ["test written"]
    if not differs or _publishing_tells(
        differs, seen.get(profile), now.planned.get(profile, {}), claim.rungs
    ):
        return None
    words = why or ", ".join(differs)
    event = {
        "event": "changed" if last else "locked",
        "chapter": chapter.name,
        "claim": claim.id,
        "test": short(claim.test_hash),
        "says": says(claim),
        "measure": now.measure,
        "planned": now.planned,
        "stop": FIXED,
        "seen": seen,
    }
    if seen:
        event["why"] = f"{words} after its data"
    elif last:
        event["why"] = words
    return event


def _differences(claim: Claim, last: Line, own: list[Line], now: _Now, profile: str) -> list[str]:
    found = []
    if own[-1].event == "withdrawn":
        found.append("listed again")
    if last["test"] != short(claim.test_hash):
        found.append("test changed")
    was, plan = last["planned"].get(profile), now.planned.get(profile)
    if plan is None:
        return found
    if was is None:
        return [*found, f"{profile} planned"]
    for name in sorted(was.keys() | plan.keys() - {"settings"}):
        if name != "settings" and was.get(name, 0) != plan.get(name, 0):
            found.append(f"{name} {was.get(name, 0)} to {plan.get(name, 0)}")
    alike = same_numbers(last, own, profile)
    if (now.measure, plan["settings"]) not in alike:
        found += [MEASURED] if now.measure not in {each for each, _ in alike} else [SET]
    return found


def _publishing_tells(
    differs: list[str], seen: list | None, plan: Mapping[str, Any], rungs: bool = False
) -> bool:
    """Whether the same seeds are to be measured again, in another way; rungs may have first seeds of their own."""
    first = plan.get("first_seed", 0)
    again = any(low <= first <= high or rungs for low, high in seen or ())
    return again and set(differs) <= {MEASURED, SET}


def _seen(claim: Claim, chapter: Chapter, chain: locks.Chain, known: bool) -> dict[str, list[list[int]]]:
    """Profile -> seeds for which something that the claim hangs on was published: one of its tests could have
    been computed. `known`: the claim was locked before, so that all that was ever published counts."""
    found = {}
    for profile in PUBLISHED:
        evidence, seeds = published(chapter, profile), set()
        if evidence.results_path.is_file():
            recorded = evidence.results
            if locks.is_reached(claim, recorded):
                seeds = locks.seeds_used(claim, recorded)
        if seeds or known and not claim.rungs:  # a rung that was published stays: publishing sees to it
            for line in chain.of_chapter(chapter.name):
                if line.event == "published" and line["profile"] == profile and _held_it(line, claim, chain):
                    seeds |= {seed for low, high in line["seeds"] for seed in range(low, high + 1)}
        if seeds:
            found[profile] = ranges(seeds)
    return found


def _held_it(line: Line, claim: Claim, chain: locks.Chain) -> bool:
    """Whether a published run may have held what the claim reads: not if it came before the claim's first
    lock and that one had no data."""
    own = [each for each in chain.of_claim(claim.id) if each.tests]
    return not own or own[0].number < line.number or bool(own[0]["seen"])
