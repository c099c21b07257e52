"""The tests of claims asked once more of another arm: what they would say at another learning rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bookpress.claims.claim import Claim, Test
from bookpress.claims.judging import OPEN, verdict

DIVERGED = "diverged"


def moved(claim: Claim, old: str, new: str) -> Claim:
    """The claim with `old`, a part between the dots of the results' names, replaced by `new`."""

    def swapped(test: Test) -> Test:
        names = {key: getattr(test, key) for key in ("a", "b") if isinstance(getattr(test, key), str)}
        return replace(test, **{key: _exchanged(name, old, new) for key, name in names.items()})

    if claim.parts:
        return replace(claim, parts=tuple(replace(part, test=swapped(part.test)) for part in claim.parts))
    return replace(claim, test=swapped(claim.test))


def _exchanged(name: str, old: str, new: str) -> str:
    return ".".join(new if part == old else part for part in name.split("."))


def words_at(
    claims: Iterable[Claim], found: Mapping[str, np.ndarray], old: str, others: Sequence[str]
) -> dict[str, list[str]]:
    """Claim -> the verdict of its test at each of `others`, for claims that name results of `old` alone.

    "diverged" where most trainings of an arm that it compares did not last (`diverged.RATE.NORM`, without
    and with batch norm where a name does not say).
    """
    words: dict[str, list[str]] = {}
    for claim in claims:
        names = claim.result_names()
        if not all(old in name.split(".") for name in names):
            continue
        norms = {name.rsplit(".", 1)[-1] for name in names} & {"none", "batch"} or {"none", "batch"}
        words[claim.id] = []
        for other in others:
            lost = max(np.mean(found[f"diverged.{other}.{norm}"]) for norm in norms) > 0.5
            words[claim.id].append(DIVERGED if lost else _verdict(moved(claim, old, other), found))
    return words


def _verdict(claim: Claim, found: Mapping[str, np.ndarray]) -> str:
    try:
        return verdict(claim, found)
    except OverflowError:  # an interval wider than numbers reach decides nothing
        return OPEN
