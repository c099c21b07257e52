"""Recorded results as a test reads them, present, one number per seed, paired by seed; and which of a chapter's earlier
published runs count beside the last one.

Where training is chaotic, another processor makes another draw of the same seeds, and a rerun takes fresh seeds. A test
reads the union of all draws of one measure that have what it needs, seed by seed. Of a seed that was drawn several times
the last draw counts, and nothing is averaged; so n is the number of seeds however often they were drawn. A mapping
name -> values (S, ...) is `bookpress.results.Results` or a plain dict, whose seeds are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bookpress.claims import locks
from bookpress.claims.claim import Claim, Test
from bookpress.errors import PressError
from bookpress.results import Results

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


# ---- Which draws count -------------------------------------------------------------------------------------------------

ROUNDED = 1e-9  # relative; the results file keeps nine digits
SEEN = "its test was written after these data"


def counted(claim: Claim, results: Recorded) -> Recorded:
    """A published run with those of its draws that a claim is judged by."""
    draws = getattr(results, "draws", ())
    return replace(results, draws=counting(claim, results)) if draws else results


def counting(claim: Claim, results: Results) -> tuple[Results, ...]:
    """The earlier draws that are judged together with a published run, the oldest first.

    Every page asks for every claim: a run keeps the answers, for as long as claim and locks are these.
    """
    if not results.draws:
        return ()
    key = claim.id, claim.test_hash, claim.rungs, locks.read().head(claim.chapter)
    if key not in results.counting:
        draws = distinct(claim, results)
        results.counting[key] = tuple(draw for draw in draws if not left_out(claim, draw, results))
    return results.counting[key]


def distinct(claim: Claim, results: Results) -> list[Results]:
    """The earlier draws of what a claim reads; one whose every number a later run has is the same draw."""
    found = [results]
    for draw in reversed(results.draws):
        names = [name for name in claim.result_names() if name in draw and name in results]
        if names and not any(is_in(draw, later, names) for later in found):
            found.append(draw)
    return found[:0:-1]


def left_out(claim: Claim, draw: Results, results: Results) -> str:
    """Why a draw is not judged together with the published run, in a few words, or nothing.

    It measures the same where the locks say so: by the same code and settings, or by others with which every
    number that the claim reads stayed the same (`carried`). Where the published run is judged by a test that
    stood before its data, so must be the draw.
    """
    if not set(claim.required_names()) <= set(draw):
        return "it lacks what the test reads"
    if why := otherwise(claim, draw, results):
        return why
    late = [bool(locks.standing(claim, run, locks.read()).exploratory) for run in (draw, results)]
    return SEEN if late == [True, False] else ""


def otherwise(claim: Claim, draw: Results, results: Results) -> str:
    """In what two runs differ that measure the same results otherwise, or nothing."""
    if draw.header["fingerprint"].get("data") != results.header["fingerprint"].get("data"):
        return "other data"
    chain, profile = locks.read(), results.header["profile"]
    was, now = (locks.run_measure(run.header, chain) for run in (draw, results))
    own = (locks.same_numbers(line, claim.id, chain, profile) for line in chain.tests_of(claim.id))
    if was == now or any({was, now} <= each for each in own):
        return ""
    return "other settings" if was[0] == now[0] else "measured otherwise"


def as_quoted(
    name: str, results: Results, listed: Iterable[Claim], together: Collection[str] = ()
) -> tuple[list[int], np.ndarray]:
    """Seeds and values (S, ...) of a result as pages quote it: by the most draws by which one of the listed claims that
    reads it is judged.

    Where a test reads exactly the results that are quoted `together`, they are quoted as it reads them.
    """
    reading = [(test, claim) for claim in listed for test in claim.tests if name in test.result_names()]
    alike = [pair for pair in reading if set(pair[0].result_names()) == set(together)]
    draws = max((counting(claim, results) for _, claim in alike or reading), key=len, default=())
    return over_draws(name, replace(results, draws=draws))


def is_in(
    draw: Results, later: Results, names: Sequence[str], slack: float = 0.0, relative: float = ROUNDED
) -> bool:
    """Whether each of these results of a draw has the same numbers, but for rounding, in a later run, on all its
    seeds; a share to the last bit. `slack` is absolute, and what is `relative` counts as rounding."""
    return all(name in draw and name in later and _same(draw, later, name, slack, relative) for name in names)


def _same(draw: Results, later: Results, name: str, slack: float, relative: float) -> bool:
    seeds, place = draw.entries[name]["seeds"], {s: k for k, s in enumerate(later.entries[name]["seeds"])}
    if not set(seeds) <= place.keys():
        return False
    mine, theirs = draw[name], later[name][[place[seed] for seed in seeds]]
    if mine.shape != theirs.shape:
        return False
    if draw.unit(name) == "share" and relative == ROUNDED:
        return np.array_equal(mine, theirs, equal_nan=True)
    return np.allclose(mine, theirs, rtol=relative, atol=slack, equal_nan=True)
