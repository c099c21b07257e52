"""Beside an interval: the p-value at which it decides, the sign test, and what remains of many tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bnbook.claims.claim import Test
from bnbook.claims.kinds.known import decide, edges, kind_of
from bnbook.claims.outcome import Outcome
from bnbook.intervals import LEVEL, is_share

#: Smallest p that is told apart from 0.
SMALLEST = 1e-12
#: From so many seeds on the sign test can decide at 5 %: 2 / 2⁶ is below, 2 / 2⁵ above.
SIGN_TEST_DECIDES = 6
#: Share of what Benjamini and Hochberg keep that may be false.
FALSE_SHARE = 0.05


@dataclass(frozen=True)
class Significance:
    """How surely a test decides; p is the smallest α at which the two-sided interval at 1 - α still does.

    `side` of `n` seeds lie where the verdict says, or for an open test on the side of the median; `sign_p`
    is the same p by the sign test, which assumes nothing of the distribution and is at least 2 / 2ⁿ; for a
    share of seeds by the exact binomial test of that share.
    """

    p: float
    side: int
    n: int
    sign_p: float


def significance(outcome: Outcome) -> Significance | None:
    """None for what is exact (an identity, a count of violations) or was not measured."""
    if not outcome.cells:
        return None
    p = _student_p(outcome)
    if p is None:
        p = smallest(lambda alpha: decide(outcome.test, outcome.cells, 1 - alpha)[0] is not None)
    return Significance(p, *sign_test(outcome.test, outcome.values, outcome.holds))


def smallest(decides: Callable[[float], bool]) -> float:
    """The smallest α at which a test decides, to three digits; 1 where it does at none.

    Intervals at 1 - α are nested, so that what decides at one α decides at every larger one.
    """
    if decides(SMALLEST):
        return 0.0
    if not decides(1 - SMALLEST):
        return 1.0
    low, high = math.log(SMALLEST), 0.0
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (low, middle) if decides(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _student_p(outcome: Outcome) -> float | None:
    """The same in closed form for one mean by Student's interval: of its distance from the nearest edge.

    None for all others: shares, several cells, grids, and where nothing varies.
    """
    from scipy.special import stdtr, stdtrit

    (cell, *more), test = outcome.cells, outcome.test
    numbers = (outcome.effect, outcome.interval[0], *edges(test))
    if more or test.cells or cell.resolution or is_share(cell.values) or not kind_of(test).one_mean:
        return None
    if cell.in_logs:
        numbers = tuple(math.log(number) if number > 0 else -math.inf for number in numbers)
    effect, low, *bounds = numbers
    if not 0 < effect - low < math.inf:
        return None
    error = (effect - low) / float(stdtrit(outcome.n - 1, (1 + LEVEL) / 2))
    return 2 * float(stdtr(outcome.n - 1, -min(abs(effect - edge) for edge in bounds) / error))


def sign_test(test: Test, values: np.ndarray, holds: bool | None) -> tuple[int, int, float]:
    """(seeds on the verdict's side, seeds that differ from the edge, two-sided p of the median).

    Against each edge of the region in which the claim holds, seeds above and below are heads and tails of a
    fair coin (Arbuthnott 1710); where each is a 0 or a 1, of one that falls on 1 as often as the edge says.
    Within ± both edges must be passed, outside one.
    """
    low, high = edges(test)
    inside = int(((values > low) & (values < high)).sum())
    below, above = int((values <= low).sum()), int((values >= high).sum())
    if holds is None:
        holds = bool(low < np.median(values) < high)
    if holds:
        return inside, values.size, max(_coin(values, edge) for edge in (low, high))
    return max(below, above), values.size, _coin(values, low if below >= above else high)


def benjamini_hochberg(ps: Sequence[float], rate: float = FALSE_SHARE) -> list[bool]:
    """Which of m tests remain where at most `rate` of those kept may be false (1995): p_(k) ≤ k/m · rate."""
    ranked = np.sort(np.asarray(ps, dtype=float))
    kept = ranked <= rate * np.arange(1, ranked.size + 1) / max(ranked.size, 1)
    limit = ranked[kept][-1] if kept.any() else -1.0
    return [bool(p <= limit) for p in ps]


def _coin(values: np.ndarray, edge: float) -> float:
    """Two-sided p that the coin falls so unevenly; 0 at an infinite edge, where no value can cross."""
    from scipy.stats import binom

    if math.isinf(edge):
        return 0.0
    if is_share(values) and 0 < edge < 1:
        heads, falls = float(values.sum()), binom(values.size, edge)
    else:
        heads = int((values > edge).sum())
        falls = binom(heads + int((values < edge).sum()), 0.5)
    return min(1.0, 2 * float(min(falls.cdf(math.ceil(heads)), falls.sf(math.floor(heads) - 1))))
