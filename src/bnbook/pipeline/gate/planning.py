"""What the planned seeds of a chapter can decide, by the spread that an earlier run had."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from bnbook.claims import Claim, Test, power
from bnbook.claims.locks import is_count_of_seeds
from bnbook.pipeline.gate.seen import Known
from bnbook.profiles import PROFILES
from bnbook.results import Results


def powers(claim: Claim, known: Known, profile: str, spread: float | None = None) -> list[str]:
    """The smallest effect that each test of a claim shows at a profile, in words.

    By the spread of the published run at the profile, else at another, else of a run in runs/, or by the
    `spread` that was given. BnbookError where a test cannot answer.
    """
    shown = [part.effect or claim.effect for part in claim.parts] or [claim.effect] * len(claim.tests)
    found = []
    for test, effect in zip(claim.tests, shown, strict=True):
        earlier, results = _earlier(claim, test, known, profile)
        seeds = _seeds(known.planned[profile], earlier, results)
        if spread is not None:
            earlier = power.given(claim, test, spread, earlier)
        found.append(power.power(claim, test, seeds, earlier, effect))
    return found


def _earlier(
    claim: Claim, test: Test, known: Known, profile: str
) -> tuple[power.Earlier | None, Results | None]:
    """What the first run says that has the results of the test; those of another size where none has reached
    its own."""
    for alike in (test, *(claim.tests if claim.rungs else ())):
        for source, results in _runs(known, profile):
            if found := power.earlier_of(alike, results, source):
                elsewhere = "" if alike == test else " at another size"
                return replace(found, source=source + elsewhere), results
    return None, None


def _runs(known: Known, profile: str) -> Iterator[tuple[str, Results]]:
    order = [profile, *(each for each in PROFILES[::-1] if each != profile)]
    for each in order:
        if each in known.published:
            yield f"the published {each} run", known.published[each]
    for name, run in sorted(known.finished, key=lambda one: order.index(one[1].profile)):
        yield f"the {run.profile} run in runs/{name}", run


def _seeds(planned: dict[str, Any], earlier: power.Earlier | None, results: Results | None) -> int:
    """How many seeds a test gets: as many as are planned of the parameter that the earlier run had as many
    of; the most of several, or of all where there is none."""
    counts = {name: count for name, count in planned.items() if is_count_of_seeds(name)}
    if earlier is None or results is None:
        return max(counts.values())
    had, given = earlier.columns.shape[1], results.header.get("parameters", {})
    return max((count for name, count in counts.items() if given.get(name) == had), default=had)
