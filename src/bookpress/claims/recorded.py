"""Recorded results as a test reads them: present, one number per seed, paired by seed.

A published run may have draws before it: a test reads the union of all that have what it needs, seed by seed. Of a seed
that was drawn several times the last draw counts, and nothing is averaged; so n is the number of seeds however often they
were drawn. A mapping name -> values (S, ...) is `bookpress.results.Results` or a plain dict, whose seeds are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bookpress.claims.claim import Test
from bookpress.errors import PressError

Recorded = Mapping[str, np.ndarray]


def union(runs: Iterable[tuple[Sequence[int], np.ndarray]]) -> tuple[list[int], np.ndarray]:
    """Seeds and values (S, ...) of all runs, each given by its seeds and values, the oldest first; as it is where
    there is one."""
    (seeds, values), *more = reversed([*runs])
    if not more:
        return list(seeds), values
    found = dict(zip(seeds, values, strict=True))
    for seeds, values in more:
        found = dict(zip(seeds, values, strict=True)) | found
    return sorted(found), np.array([found[seed] for seed in sorted(found)])


def columns(test: Test, results: Recorded, claim_id: str = "") -> tuple[list[int], np.ndarray]:
    """The seeds, and what a test compares as rows (K, S) of these seeds; of an exact check its violations, one row."""
    if test.exact:
        seeds, values = over_draws(test.a, results, claim_id)
        values = np.abs(values).reshape(1, len(values), -1)
        return seeds, values.max(axis=2) if test.kind == "identity" else values.sum(axis=2)
    named = set(test.result_names())
    runs = [each for each in getattr(results, "draws", ()) if named <= set(each)]
    seeds, values = union(_paired(test, each, claim_id) for each in (*runs, results))
    rows = values.T
    return seeds, rows[::-1] if test.kind == "sign" and test.side == "less" else rows


def over_draws(name: str, results: Recorded, claim_id: str = "") -> tuple[list[int], np.ndarray]:
    """Seeds and values (S, ...) of one result by all draws."""
    own = _seeds(results, name, claim_id), _array(results, name, claim_id)
    draws = (each for each in getattr(results, "draws", ()) if name in each)
    return union([*((each.entries[name]["seeds"], each[name]) for each in draws), own])


def unit_of(results: Recorded, name: str) -> str:
    """The unit that a result was recorded with, none for a plain dict."""
    return results.unit(name) if hasattr(results, "unit") else ""


def _array(results: Recorded, name: str, claim_id: str) -> np.ndarray:
    if name not in results:
        raise PressError(f"claim {claim_id}: result {name} is missing; expected the chapter to record() it")
    values = np.asarray(results[name], dtype=float)
    if values.ndim == 0 or values.size == 0:
        raise PressError(f"claim {claim_id}: result {name} has no seed axis; expected shape (S, ...)")
    return values


def _seeds(results: Recorded, name: str, claim_id: str) -> list[int]:
    entries = getattr(results, "entries", {})
    return entries[name]["seeds"] if name in entries else [*range(len(_array(results, name, claim_id)))]


def _per_seed(results: Recorded, name: str, claim_id: str) -> np.ndarray:
    """One number per seed (S,)."""
    values = _array(results, name, claim_id)
    if values.size != len(values):
        raise PressError(
            f"claim {claim_id}: result {name} has shape {values.shape}; expected one number per seed"
        )
    return values.reshape(len(values))


def _paired(test: Test, results: Recorded, claim_id: str) -> tuple[list[int], np.ndarray]:
    """Seeds, and what one run has of them, (S, K).

    A number in place of a name is the same for every seed, and so is a theory of one value; `nonfinite` fills values
    that are not finite, and as `events` only 0 and 1 are taken.
    """
    first, *others = test.names()
    seeds, rows = _seeds(results, first, claim_id), [_per_seed(results, first, claim_id)]
    for name in others:
        row = np.full(1, name) if isinstance(name, float) else _per_seed(results, name, claim_id)
        if len(row) == 1 and (isinstance(name, float) or test.kind == "agreement"):
            row = np.full(len(seeds), row[0])
        elif len(row) != len(seeds) or _seeds(results, name, claim_id) != seeds:
            raise PressError(
                f"claim {claim_id}: {first} and {name} come from different seeds ({len(seeds)} and {len(row)} values); "
                "expected arms paired by seed"
            )
        rows.append(row)
    stacked = np.stack(rows, axis=1)
    if test.nonfinite is not None:
        stacked = np.where(np.isfinite(stacked), stacked, test.nonfinite)
    if test.events and not np.isin(stacked[np.isfinite(stacked)], (0.0, 1.0)).all():
        raise PressError(f"claim {claim_id}: {first} is no event; expected 0 or 1, or no `events: true`")
    return seeds, stacked
