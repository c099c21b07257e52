"""`bnbook lock`: the events that the locks lack before a run, and no other."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bnbook import claims, fingerprint
from bnbook.claims import Claim, locks
from bnbook.claims.locks import (
    AFTER,
    FIXED,
    NAME,
    Line,
    firsts,
    measure,
    same_numbers,
    short,
    written_by_hand,
)
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import fresh_run, published
from bnbook.pipeline.chapters.verdicts import says
from bnbook.pipeline.gate import planning
from bnbook.pipeline.gate.seen import Known
from bnbook.profiles import PUBLISHED
from bnbook.results import read

MEASURED, SET = "measured otherwise", "settings changed"
SHOWN = 3  # of the results that no run has, those that are named


def lock(
    chapters: Sequence[Chapter], profile: str, why: str = "", spreads: Mapping[str, float] | None = None
) -> list[str]:
    """Write what is missing, and return it in words, or that nothing is.

    why: the reason for what changed; spreads: claim -> the spread of one seed, where another is expected than
    an earlier run had. BnbookError, and nothing is written, for a test that changed without a reason and for
    one that the planned seeds cannot answer.
    """
    why, spreads = written_by_hand(why), spreads or {}
    listed = {claim.id for chapter in chapters for claim in claims.chapter_claims(chapter.name)}
    if unknown := sorted(spreads.keys() - listed):
        raise BnbookError(f"--spread {unknown[0]}: no claim of these chapters; expected CLAIM=NUMBER")
    with locks.alone():
        events = [event for chapter in chapters for event in missing(chapter, profile, why, spreads)]
        if not events:
            names = ", ".join(chapter.name for chapter in chapters) if len(chapters) < 4 else "every chapter"
            return [f"nothing to lock: {names} has its claims in {NAME} as they are"]
        _require_reason(events, why)
        chain = locks.append(events)
    notes = [note for chapter in chapters for note in _unrecorded(chapter, {e["claim"] for e in events})]
    written = chain.lines[-len(events) :]
    return [*(words for line in written for words in (_words(line), *_power_words(line))), *notes]


def spreads(words: Sequence[str]) -> dict[str, float]:
    """The spreads that `--spread CLAIM=NUMBER` gives."""
    found = {}
    for each in words:
        name, _, number = each.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise BnbookError(f"--spread {each}; expected CLAIM=NUMBER") from None
    return found


def _require_reason(events: Sequence[Mapping[str, Any]], why: str) -> None:
    """BnbookError where a test that was locked is another now, and nobody says why."""
    last = {line["claim"]: line["test"] for line in locks.read().lines if line.tests}
    tests = {event["claim"]: event["test"] for event in events if "test" in event}
    changed = [claim for claim, test in tests.items() if last.get(claim, test) != test]
    if changed and not why:
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        raise BnbookError(
            f"the preregistered test of {', '.join(changed[:SHOWN])}{more} changed; expected the reason, "
            'which stands beside the verdict from then on: bnbook lock --why "…"'
        )


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


def _power_words(line: Line) -> list[str]:
    found = [words for said in line.get("power", {}).values() for words in said]
    return [f"    {words}" for words in dict.fromkeys(found)]


def missing(
    chapter: Chapter, profile: str, why: str = "", spreads: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
    """The events that the locks lack before a run of the chapter at `profile`.

    A claim without a lock, or with another test, plan or way to measure than its last one. Where the data are
    known and only the way to measure differs, nothing: publishing tells whether the numbers are the same.
    """
    chain, now = locks.read(), _now(chapter)
    _require_what_is_known(chapter, chain)
    listed, known = claims.chapter_claims(chapter.name), Known(chapter, chain, now.planned)
    found = [_event(claim, known, chain.of_claim(claim.id), now, profile, why) for claim in listed]
    for claim, event in zip(listed, found, strict=True):
        if event and claim.counts_as_evidence(profile, chapter.exact) and profile in now.planned:
            event["power"] = {profile: planning.powers(claim, known, profile, (spreads or {}).get(claim.id))}
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
    claim: Claim, known: Known, own: list[Line], now: _Now, profile: str, why: str
) -> dict[str, Any] | None:
    last = next((line for line in reversed(own) if line.tests), None)
    locked = last is not None
    differs = _differences(claim, last, own, now, profile) if last else ["test written"]
    # Where seeds that were published are to be measured again, in another way, publishing tells.
    again = firsts(now.planned.get(profile, {})) & known.public(claim, profile, locked)
    if not differs or again and set(differs) <= {MEASURED, SET}:
        return None
    seen, words = known.seen(claim, locked), why or ", ".join(differs)
    event = {
        "event": "changed" if last else "locked",
        "chapter": known.chapter.name,
        "claim": claim.id,
        "test": short(claim.test_hash),
        "says": says(claim),
        "measure": now.measure,
        "planned": now.planned,
        "stop": FIXED,
        "seen": seen,
    }
    if seen:
        event["why"] = words + AFTER
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
