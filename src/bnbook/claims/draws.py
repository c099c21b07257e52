"""Which of a chapter's earlier published runs count beside the last one.

Where training is chaotic, another processor makes another draw of the same seeds, and a rerun takes fresh
seeds. None is thrown away: a verdict rests on all draws of one measure together, seed by seed (`recorded`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bnbook.claims import locks
from bnbook.claims.claim import Claim
from bnbook.claims.kinds.known import kind_of
from bnbook.claims.locks.standing import same_numbers
from bnbook.claims.recorded import by_seed, geometric_mean, mean
from bnbook.results import Results

ROUNDED = 1e-9  # relative; the results file keeps nine digits
SEEN = "its test was written after these data"


def counted(claim: Claim, results: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """A published run with those of its draws that a claim is judged by."""
    draws = getattr(results, "draws", ())
    return replace(results, draws=tuple(counting(claim, results))) if draws else results


def counting(claim: Claim, results: Results) -> list[Results]:
    """The earlier draws that are judged together with a published run, the oldest first."""
    return [draw for draw, why in beside(claim, results) if not why]


def beside(claim: Claim, results: Results) -> tuple[tuple[Results, str], ...]:
    """The earlier draws of what a claim reads, the oldest first, each with why it does not count or "".

    Every page asks for every claim: a run keeps the answers, for as long as claim and locks are these.
    """
    if not results.draws:
        return ()
    chain = locks.read()
    kept = results.__dict__.setdefault("_beside", {})
    key = claim.id, claim.test_hash, claim.required_names(), chain.lines[-1:]
    if kept.get(claim.id, ((), ()))[0] != key:
        found = tuple((draw, left_out(claim, draw, results)) for draw in distinct(claim, results))
        kept[claim.id] = key, found
    return kept[claim.id][1]


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
    late = [bool(locks.standing(claim, run, locks.read()).exploratory) for run in (draw, results)]
    return otherwise(claim, draw, results) or (SEEN if late == [True, False] else "")


def otherwise(claim: Claim, draw: Results, results: Results) -> str:
    """In what two runs differ that measure the same results otherwise, or nothing."""
    if draw.header["fingerprint"].get("data") != results.header["fingerprint"].get("data"):
        return "other data"
    chain, profile = locks.read(), results.header["profile"]
    own = chain.of_claim(claim.id)
    was, now = locks.run_measure(draw.header), locks.run_measure(results.header)
    alike = [{was}, *(same_numbers(line, own, profile) for line in own if line.tests)]
    if any(was in each and now in each for each in alike):
        return ""
    return "other settings" if was[0] == now[0] else "measured otherwise"


def as_quoted(
    name: str, results: Results, listed: Sequence[tuple[Claim, Sequence[Results]]]
) -> tuple[list[int], np.ndarray]:
    """Seeds and values (S, ...) of a result as pages quote it: by all draws by which a claim that reads it is
    judged, of values that are compared as factors their geometric mean. listed: claims with these draws."""
    reading = [(claim, draws) for claim, draws in listed if name in claim.result_names()]
    draws = max((draws for _, draws in reading), key=len, default=())
    tests = [test for claim, _ in reading for test in claim.tests if name in test.result_names()]
    factors = any(kind_of(test).in_factors for test in tests)
    runs = [run for run in (*draws, results) if name in run]
    return by_seed([(r.entries[name]["seeds"], r[name]) for r in runs], geometric_mean if factors else mean)


def is_in(
    draw: Results, later: Results, names: Sequence[str], slack: float = 0.0, relative: float = ROUNDED
) -> bool:
    """Whether each of these results of a draw has the same numbers, but for rounding, in a later run, on all its
    seeds; a share to the last bit. `slack` is absolute, and what is `relative` counts as rounding."""
    return all(name in draw and name in later and _same(draw, later, name, slack, relative) for name in names)


def _same(draw: Results, later: Results, name: str, slack: float, relative: float) -> bool:
    rows = [{seed: k for k, seed in enumerate(run.entries[name]["seeds"])} for run in (draw, later)]
    if not rows[0].keys() <= rows[1].keys():
        return False
    mine, theirs = (
        run[name][[row[s] for s in rows[0]]] for run, row in zip((draw, later), rows, strict=True)
    )
    if mine.shape != theirs.shape:
        return False
    if draw.unit(name) == "share" and relative == ROUNDED:
        return np.array_equal(mine, theirs, equal_nan=True)
    return np.allclose(mine, theirs, rtol=relative, atol=slack, equal_nan=True)
