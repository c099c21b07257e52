"""Which of a chapter's earlier published runs count beside the last one.

Where training is chaotic, another processor makes another draw of the same seeds, and a rerun takes fresh seeds. A verdict
rests on the union of all draws of one measure, seed by seed (`recorded`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bookpress.claims import locks
from bookpress.claims.claim import Claim
from bookpress.claims.recorded import over_draws
from bookpress.results import Results

ROUNDED = 1e-9  # relative; the results file keeps nine digits
SEEN = "its test was written after these data"


def counted(claim: Claim, results: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
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
