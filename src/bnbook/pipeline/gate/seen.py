"""What had been looked at when a test is locked: published results, finished runs and finished trainings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bnbook import paths
from bnbook.claims import Claim, locks
from bnbook.claims.locks import Line, ranges
from bnbook.data import STANDINS
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import published
from bnbook.profiles import PROFILES, PUBLISHED
from bnbook.results import Results, read
from bnbook.runs import kinds, store


@dataclass(frozen=True)
class Known:
    """All that is there of one chapter: what it plans at each profile, and what of that was seen."""

    chapter: Chapter
    chain: locks.Chain
    planned: Mapping[str, Mapping[str, Any]]

    def seen(self, claim: Claim, locked: bool) -> dict[str, list[list[int]]]:
        """Profile -> seeds for which something that the claim hangs on was there: one of its tests could have
        been computed.

        `locked`: it was locked before, so that all that ever was there counts. But of rungs that were locked
        before, those that are published stay (publishing sees to it), and the others are fresh.
        """
        found = {
            each: self.public(claim, each, locked) | self._private(claim, each, locked) for each in PUBLISHED
        }
        return {profile: ranges(seeds) for profile, seeds in found.items() if seeds}

    def public(self, claim: Claim, profile: str, locked: bool) -> set[int]:
        """The same, of what was published at a profile."""
        run, seeds = self.published.get(profile), set()
        if run and locks.is_reached(claim, run):
            seeds = locks.seeds_used(claim, run)
        return seeds | self._ever(claim, profile) if seeds or locked and not claim.rungs else set()

    def _private(self, claim: Claim, profile: str, locked: bool) -> set[int]:
        """The same, of runs and trainings that are finished and not published."""
        runs, seeds = [run for at, run in self.runs if at == profile], set()
        for run in runs:
            if locked and not claim.rungs:
                seeds |= {seed for entry in run.entries.values() for seed in entry["seeds"]}
            elif locks.is_reached(claim, run):
                seeds |= locks.seeds_used(claim, run)
        spared = self.kept if locked and claim.rungs else set()
        return seeds | {seed for name, at, seed in self.trained if at == profile and name not in spared}

    def _ever(self, claim: Claim, profile: str) -> set[int]:
        return {
            seed
            for line in self.chain.of_chapter(self.chapter.name)
            if line.event == "published" and line["profile"] == profile and _held_it(line, claim, self.chain)
            for low, high in line["seeds"]
            for seed in range(low, high + 1)
        }

    @cached_property
    def published(self) -> dict[str, Results]:
        """Profile -> its published run."""
        places = {profile: published(self.chapter, profile) for profile in PUBLISHED}
        return {profile: run.results for profile, run in places.items() if run.results_path.is_file()}

    @cached_property
    def finished(self) -> list[tuple[str, Results]]:
        """The whole runs in runs/, each with the name of its folder."""
        found = []
        for path in sorted(paths.runs_folder().glob(f"*/{self.chapter.name}.json")):
            try:
                found.append((path.relative_to(paths.runs_folder()).parts[0], read(path)))
            except BnbookError:  # what is no whole run cannot be published
                continue
        return found

    @cached_property
    def runs(self) -> list[tuple[str, Results]]:
        """The same by the profiles whose data they show: their own, and any with the same settings."""
        found = []
        for _, run in self.finished:
            settings = locks.plan(run.header.get("parameters", {}))["settings"]
            alike = {profile for profile, plan in self.planned.items() if plan["settings"] == settings}
            found += [(profile, run) for profile in PUBLISHED if profile in alike | {run.profile}]
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
            arm = next((about[label] for label in set(kinds.LABELS.values()) if label in about), None)
            if isinstance(arm, dict) and arm.get("data") not in STANDINS:
                there.append((name, about, arm, json.dumps(kinds.nameless({"arm": arm}), sort_keys=True)))
        own = {text for _, about, _, text in there if about.get("chapter") == self.chapter.name}
        mine = [(name, about["seed"], arm.get("steps")) for name, about, arm, text in there if text in own]
        return [(name, profile, seed) for name, seed, steps in mine for profile in self._with(steps)]

    def _with(self, steps: Any) -> list[str]:
        """The planned profiles that train for so many steps; all, where no profile names that number."""
        named = {profile: self._steps(profile) for profile in PROFILES if self.chapter.has(profile)}
        if not any(steps in each for each in named.values()):
            return list(self.planned)
        return [profile for profile in self.planned if steps in named[profile]]

    def _steps(self, profile: str) -> set[Any]:
        given = self.chapter.parameters(profile)
        return {value for name, value in given.items() if name == "steps" or name.endswith("_steps")}


def _held_it(line: Line, claim: Claim, chain: locks.Chain) -> bool:
    """Whether a published run may have held what the claim reads: not if it came before the claim's first
    lock and that one had no data."""
    own = [each for each in chain.of_claim(claim.id) if each.tests]
    return not own or own[0].number < line.number or bool(own[0]["seen"])
