"""Tests fixed before a run judges them, one line a stroke: what is missing, and what had been looked at by then."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bookpress import claims, paths, stamp
from bookpress.book import book, command_name
from bookpress.claims import Claim, Test, locks, power
from bookpress.claims.locks import (
    AFTER,
    NAME,
    Line,
    firsts,
    is_count_of_seeds,
    ranges,
    same_numbers,
    short,
    written_by_hand,
)
from bookpress.errors import PressError
from bookpress.pipeline import gate
from bookpress.pipeline.chapter_runs import fresh_run, published
from bookpress.pipeline.chapters import Chapter
from bookpress.profiles import PROFILES, PUBLISHED
from bookpress.results import Results, read
from bookpress.runs import store


@dataclass(frozen=True)
class Known:
    """All that is there of one chapter: what it plans at each profile, and what of that was seen."""

    chapter: Chapter
    chain: locks.Chain

    @cached_property
    def planned(self) -> dict[str, dict[str, Any]]:
        """Profile -> its plan."""
        return {
            each: locks.plan(self.chapter.parameters(each)) for each in PUBLISHED if self.chapter.has(each)
        }

    def seen(self, claim: Claim, locked: bool) -> dict[str, list[list[int]]]:
        """Profile -> seeds for which something that the claim hangs on was there: one of its tests could have
        been computed.

        `locked`: it was locked before, so that all that ever was there counts. But of rungs that were locked
        before, those that are published stay (publishing sees to it), and the others are fresh.
        """
        spared = self.kept if locked and claim.rungs else set()
        found = {profile: self.public(claim, profile, locked) for profile in PUBLISHED}
        for _, run, profiles in self.finished:
            if locked and not claim.rungs:
                seeds = {seed for entry in run.entries.values() for seed in entry["seeds"]}
            else:
                seeds = locks.seeds_used(claim, run) if locks.is_reached(claim, run) else set()
            for profile in profiles:
                found[profile] |= seeds
        for name, profile, seed in self.trained:
            found[profile] |= set() if name in spared else {seed}
        return {profile: ranges(seeds) for profile, seeds in found.items() if seeds}

    def public(self, claim: Claim, profile: str, locked: bool) -> set[int]:
        """The same, of what was published at a profile."""
        run = self.published.get(profile)
        seeds = locks.seeds_used(claim, run) if run and locks.is_reached(claim, run) else set()
        if not seeds and (claim.rungs or not locked):
            return set()
        # What came before the claim's first lock held nothing of it, if that one had seen nothing.
        since = next((0 if line["seen"] else line.number for line in self.chain.tests_of(claim.id)), 0)
        own = (line for line in self.chain.of_chapter(self.chapter.name) if line.number > since)
        ever = (line["seeds"] for line in own if line.event == "published" and line["profile"] == profile)
        return seeds.union(*(range(low, high + 1) for each in ever for low, high in each))

    @cached_property
    def measure(self) -> str:
        """Hash of the code, its own and the package's, by which it measures in this checkout."""
        return stamp.measure(stamp.of_chapter(self.chapter.code_cells, {}, []))

    @cached_property
    def published(self) -> dict[str, Results]:
        """Profile -> its published run."""
        places = {profile: published(self.chapter, profile) for profile in PUBLISHED}
        return {profile: run.results for profile, run in places.items() if run.results_path.is_file()}

    @cached_property
    def finished(self) -> list[tuple[str, Results, set[str]]]:
        """The whole runs in runs/ and what failed ones have recorded, each with the name of its folder and the profiles
        whose data it shows: its own, and any with the same settings."""
        found, at = [], paths.runs_folder()
        for path in sorted(
            path for end in ("", ".failed") for path in at.glob(f"*/{self.chapter.name}{end}.json")
        ):
            with suppress(PressError):  # what is no whole run cannot be published
                run = read(path)
                settings = locks.plan(run.header.get("parameters", {}))["settings"]
                alike = {profile for profile, plan in self.planned.items() if plan["settings"] == settings}
                found.append((path.relative_to(at).parts[0], run, (alike | {run.profile}) & {*PUBLISHED}))
        return found

    @cached_property
    def kept(self) -> set[str]:
        """Names of the trainings that the published runs keep."""
        made = (run.header.get("provenance", {}) for run in self.published.values())
        return {name for each in made for name in each.get("store", {}).get("kept", [])}

    @cached_property
    def trained(self) -> list[tuple[str, str, int]]:
        """(name, profile, seed) of each finished training, in store or book, that a run could take up.

        Those that this chapter made, and those of the same settings whoever made them; not those on a
        stand-in for data, nor those of as many steps as other profiles have alone.
        """
        there = []
        for name, about in store.every():
            arm = next((value for value in about.values() if isinstance(value, dict)), None)
            if isinstance(arm, dict) and arm.get("data") not in book().data.STANDINS:
                there.append((name, about, arm, json.dumps(store.nameless({"arm": arm}), sort_keys=True)))
        own = {text for _, about, _, text in there if about.get("chapter") == self.chapter.name}
        mine = [(name, about["seed"], arm.get("steps")) for name, about, arm, text in there if text in own]
        return [(name, profile, seed) for name, seed, steps in mine for profile in self._with(steps)]

    def _with(self, steps: Any) -> list[str]:
        """The planned profiles that train for so many steps; all, where no profile names that number."""
        named = [
            profile for profile in PROFILES if self.chapter.has(profile) and steps in self._steps(profile)
        ]
        return [profile for profile in self.planned if profile in named or not named]

    def _steps(self, profile: str) -> list[Any]:
        given = self.chapter.parameters(profile)
        return [value for name, value in given.items() if name == "steps" or name.endswith("_steps")]


# ---- `lock --power`: what the planned seeds of a chapter can decide, by the spread that an earlier run had ----------


def powers(chapter: Chapter, profile: str, spreads: Mapping[str, float]) -> Iterator[str]:
    """The smallest effect that each test of a chapter shows with the planned seeds, in words.

    spreads: claim -> the spread of one seed, in place of that of the published run at the profile, else at another, else of a
    run in runs/. PressError for the name of another chapter's claim.
    """
    known, listed = Known(chapter, locks.read()), claims.chapter_claims(chapter.name)
    order = [profile, *(each for each in PROFILES[::-1] if each != profile)]
    runs = [(f"the published {each} run", known.published[each]) for each in order if each in known.published]
    runs += [(f"the {run.profile} run in runs/{name}", run) for name, run, _ in known.finished]
    for claim in listed if profile in known.planned else ():
        yield claim.id
        for _, test, effect in claim.own_tests:
            said = ((power.earlier_of(test, run, source), run) for source, run in runs)
            earlier, run = next((each for each in said if each[0]), (None, None))
            if claim.id in spreads:
                earlier = power.given(claim, test, spreads[claim.id])
            yield f"    {power.power(claim, test, _seeds(known.planned[profile], test, run), earlier, effect)}"


def _seeds(planned: Mapping[str, Any], test: Test, run: Results | None) -> int:
    """How many seeds a test gets: as many as are planned of the parameter that the earlier run had as many of; the most of
    several, or of all where there is none."""
    counts = {name: count for name, count in planned.items() if is_count_of_seeds(name)}
    had = run and len(run.entries[test.result_names()[0]]["seeds"])
    parameters = run.header.get("parameters", {}) if run else {}
    alike = [count for name, count in counts.items() if had and parameters.get(name) == had]
    return max(alike or counts.values())


def spreads(words: Sequence[str], chapters: Sequence[Chapter]) -> dict[str, float]:
    """The spreads that `--spread CLAIM=NUMBER` gives; PressError for what is none, or of no claim of these chapters."""
    found, listed = {}, {each.id for one in chapters for each in claims.chapter_claims(one.name)}
    for each in words:
        name, _, number = each.partition("=")
        if name not in listed:
            raise PressError(f"--spread {name}: no claim of these chapters; expected CLAIM=NUMBER")
        try:
            found[name] = float(number)
        except ValueError:
            raise PressError(f"--spread {each}; expected CLAIM=NUMBER") from None
    return found


# ---- `lock`: the events that the locks lack before a run, and no other --------------------------------------

MEASURED, SET = "measured otherwise", "settings changed"
SHOWN = 3  # of the results that no run has, those that are named


def lock(chapters: Sequence[Chapter], profile: str, why: str = "", named: bool = True) -> list[str]:
    """Write what is missing, a line a stroke, and return it in words, or that nothing is.

    why: the reason for what changed; named: somebody asked for these chapters, and not for all that there are. PressError,
    and nothing is written, for a test that changed without a reason.
    """
    why = written_by_hand(why)
    with locks.alone():
        chain = locks.read()
        found = {chapter.name: missing(chapter, profile, why, named) for chapter in chapters}
        events = [event for own in found.values() for event in own]
        if not events:
            names = ", ".join(chapter.name for chapter in chapters) if len(chapters) < 4 else "every chapter"
            return [f"nothing to lock: {names} has its claims in {NAME} as they are"]
        _require_reason(events, chain, why)
        notes = [note for chapter in chapters for note in _unrecorded(chapter, found[chapter.name])]
        locks.append(events)
    return [
        *(words for each in chapters for event in found[each.name] for words in _words(event, chain, each)),
        *notes,
    ]


def _require_reason(events: Sequence[Mapping[str, Any]], chain: locks.Chain, why: str) -> None:
    """PressError where a test that was locked is another now, and nobody says why."""
    last = {claim: test for line in chain.lines for claim, test in line.tests.items()}
    tests = [pair for event in events for pair in event.get("tests", {}).items()]
    changed = [claim for claim, test in tests if last.get(claim, test) != test]
    if changed and not why:
        raise PressError(
            f"the test of {_first(changed)} changed since it was written down; expected the reason, "
            f'which stands beside the verdict from then on: {command_name()} lock --why "…"{gate.to_take_back(changed[0])}'
        )


def _first(words: Sequence[str]) -> str:
    return ", ".join(words[:SHOWN]) + f" and {len(words) - SHOWN} more" * (len(words) > SHOWN)


def _unrecorded(chapter: Chapter, events: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line on the results that a claim to be locked reads and none of the chapter's runs here has: a slip
    of the pen that is locked is mended only by another lock. PressError where a smoke run of the code as it is, which
    records whatever a longer one is judged by, has none such."""
    smoke = fresh_run(chapter, "smoke")
    known = set[str]()
    for run in (smoke, *(published(chapter, profile) for profile in PUBLISHED)):
        with suppress(PressError):  # a run that cannot be read is for the gate to judge
            known |= set(run.results if run.results_path.is_file() else ())
    locked = {claim for event in events for claim in event.get("tests", ())}
    listed = (claim for claim in claims.chapter_claims(chapter.name) if claim.id in locked)
    wanted = (claim.required_names() for claim in listed if claim.counts_as_evidence("laptop", chapter.exact))
    missing = sorted({name for names in wanted for name in names} - known) if known else []
    if not missing:
        return []
    near = (difflib.get_close_matches(name, known, n=1, cutoff=0.8) for name in missing)
    named = [
        f"{name!r}" + "".join(f" (did you mean {n!r}?)" for n in like) for name, like in zip(missing, near)
    ]
    if smoke.exists and smoke.is_fresh() and smoke.results.header.get("default_parameters"):
        raise PressError(
            f"the smoke run of {chapter.name} records no {_first(named)}; expected results that its cells record: mend the "
            "test, or the cells, and run it again, then lock"
        )
    return [
        f"note: no run of {chapter.name} here has {_first(named)}; see whether {command_name()} run "
        f"{chapter.name} records them. Until it is committed, git checkout book/{NAME} takes the lock back"
    ]


def _words(event: Mapping[str, Any], chain: locks.Chain, chapter: Chapter) -> list[str]:
    plans = ((each, event["planned"][each]) for each in _own(chapter, event))
    planned = (f"{profile} n = {plan['seeds']}" for profile, plan in plans if "seeds" in plan)
    met = [f"{each} {', '.join(map(_range, seeds))}" for each, seeds in _met(chapter, event).items()]
    late = f"; seeds that were seen: {'; '.join(met)}: exploratory until others decide" * bool(met)
    notes = ", ".join(filter(None, (event.get("why"), *planned)))
    if event["event"] == "withdrawn":
        return [f"withdrawn {event['claim']} ({notes})"]
    said = {claim: "changed" if chain.tests_of(claim) else "locked" for claim in event["tests"]}
    return [f"{word} {claim} ({notes}{late})" for claim, word in said.items()]


def _own(chapter: Chapter, event: Mapping[str, Any]) -> list[str]:
    """Of the profiles that are planned laptop, and those of which the header says more than of every one."""
    settings = {each: chapter.profiles.get(each, {}).items() for each in PUBLISHED}
    given = {each: {(name, repr(value)) for name, value in found} for each, found in settings.items()}
    common = set.intersection(*(given[each] for each in PUBLISHED if chapter.has(each)))
    return [each for each in event.get("planned", ()) if each == "laptop" or given[each] - common]


def _met(chapter: Chapter, event: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    """Profile -> those of its planned seeds that were seen: all that were, where no number is planned."""
    found = {}
    for profile in _own(chapter, event):
        plan = event["planned"][profile]
        seen = {seed for low, high in event["seen"].get(profile, ()) for seed in range(low, high + 1)}
        counts = [count for name, count in plan.items() if is_count_of_seeds(name)]
        planned = {first + k for first in firsts(plan) for k in range(max(counts, default=0))}
        found[profile] = ranges(planned & seen if counts else seen)
    return {profile: seeds for profile, seeds in found.items() if seeds}


def _range(ends: Sequence[int]) -> str:
    return f"{ends[0]} to {ends[1]}" if ends[0] < ends[1] else f"{ends[0]}"


def missing(chapter: Chapter, profile: str, why: str = "", named: bool = True) -> list[dict[str, Any]]:
    """The events that the locks lack before a run of the chapter at `profile`: a line for all claims with the same
    reason of which the same was seen.

    A claim without a lock, or with another test, plan or way to measure than its last one. Where the data are
    known and only the way to measure differs, nothing: publishing tells whether the numbers are the same. Nor where the
    chapter is published and was not `named`: its run may be far off.
    """
    chain, listed = locks.read(), claims.chapter_claims(chapter.name)
    _require_what_is_known(chapter, chain)
    known = Known(chapter, chain)
    fixed = {"event": "lock", "chapter": chapter.name, "measure": known.measure, "planned": known.planned}
    strokes = dict[tuple[str, str], dict[str, Any]]()
    for claim in listed:
        own = chain.of_claim(claim.id)
        reason = _reason(claim, known, own, profile, why, named)
        if reason is not None:
            seen = known.seen(claim, locked=bool(chain.tests_of(claim.id)))
            late = AFTER * bool(_met(chapter, fixed | {"seen": seen}))
            reason = (reason or "test written") * bool(own or seen) + late
            new = fixed | {"tests": {}, "seen": seen} | ({"why": reason} if reason else {})
            stroke = strokes.setdefault((reason, json.dumps(seen)), new)
            stroke["tests"][claim.id] = short(claim.test_hash)
    found = [*strokes.values()]
    ids = {claim.id for claim in listed}
    for name in dict.fromkeys(name for line in chain.of_chapter(chapter.name) for name in line.tests):
        last = [line for line in chain.of_claim(name) if line.event != "carried"][-1]
        if name not in ids and last.event != "withdrawn" and last["chapter"] == chapter.name:
            gone = {"event": "withdrawn", "chapter": chapter.name, "claim": name}
            found.append({**gone, "why": why or "no longer listed"})
    return found


def _require_what_is_known(chapter: Chapter, chain: locks.Chain) -> None:
    """PressError where a published run is not in its place: a lock says which seeds had been looked at."""
    last = {line["profile"]: line for line in chain.of_chapter(chapter.name) if line.event == "published"}
    for profile, line in last.items():
        path = published(chapter, profile).results_path
        if not path.is_file() or short(read(path).header.get("content", "")) != line["content"]:
            raise PressError(
                f"executed/{profile}/{chapter.name}.json is not the run that was published last, whose seeds "
                "a lock has to name; put it back (git checkout executed) or publish it, then lock"
            )


def _reason(claim: Claim, known: Known, own: list[Line], profile: str, why: str, named: bool) -> str | None:
    """Why a claim lacks a line, in words; None where it lacks none."""
    last = next((line for line in reversed(own) if line.tests), None)
    if last is None:
        return why
    differs = ["listed again"] * (own[-1].event == "withdrawn")
    differs += ["test changed"] * (last.tests[claim.id] != short(claim.test_hash))
    differs += _replanned(last, known, claim, profile)
    # Where seeds that were published are to be measured again, in another way, publishing tells.
    again = firsts(known.planned.get(profile, {})) & known.public(claim, profile, locked=True)
    if not differs or (again or known.published and not named) and set(differs) <= {MEASURED, SET}:
        return None
    return why or ", ".join(differs)


def _replanned(last: Line, known: Known, claim: Claim, profile: str) -> list[str]:
    """What of a claim's last lock is planned or measured otherwise by now, in words."""
    was, plan = last["planned"].get(profile), known.planned.get(profile)
    if plan is None or was is None:
        return [] if plan is None else [f"{profile} planned"]
    names = sorted({*was, *plan} - {"settings"})
    found = [f"{n} {was.get(n, 0)} to {plan.get(n, 0)}" for n in names if was.get(n, 0) != plan.get(n, 0)]
    alike = same_numbers(last, claim.id, known.chain, profile)
    measure = known.chain.measured(claim.chapter, known.measure)
    if (measure, plan["settings"]) not in alike:
        found.append(SET if measure in {each for each, _ in alike} else MEASURED)
    return found
