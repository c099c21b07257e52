"""What planned seeds can decide: the smallest effect that a test shows, said before the test is locked.

A test "shows" an effect where it holds in 80 of 100 repetitions (`deciding.POWER`). By an earlier spread σ of
one seed, n seeds have the standard error σ/√n and an interval of half-width h = t s/√n, s² = σ² χ²/(n - 1)
with n - 1 degrees of freedom (Student 1908): the mean must lie h inside the region in which the test holds.
Of events nothing but n counts: the hits of n seeds are binomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from bookpress import intervals
from bookpress.claims.claim import HAIR, Claim, Effect, Test
from bookpress.claims.judging import POWER
from bookpress.claims.kinds import MOST, can_hold, describe_test, kind_of, least_seeds
from bookpress.claims.recorded import Recorded
from bookpress.claims.words import format_number, in_points
from bookpress.errors import PressError
from bookpress.intervals import LEVEL

#: How many values of s stand for all: the middles of as many equal parts of its distribution.
PARTS = 400
OFTEN = f"shows in {100 * POWER:.0f} of 100 runs"


@dataclass(frozen=True)
class Earlier:
    """Values of an earlier run, or the spread of one seed that somebody expects, and where it is from."""

    columns: np.ndarray | None = None  # (K, S)
    spread: float | None = None
    trials: int = 0  # of an inequality, by seed
    source: str = ""


def power(claim: Claim, test: Test, seeds: int, earlier: Earlier | None, shown: Effect | None = None) -> str:
    """The smallest effect that a test shows with so many seeds, in words and in its own unit.

    PressError where it cannot answer: its kind needs more seeds, or by the earlier spread half an interval
    is wider than the margin and the earlier mean lies not clearly outside.
    """
    with_seeds = f"with {seeds} seed{'s' * (seeds != 1)}"
    if test.kind == "identity":
        return "exact: a violation beyond the tolerance shows in any seed"
    if test.kind == "inequality":
        if earlier is None or not earlier.trials:
            return f"{with_seeds}: nothing is known of the number of trials"
        trials = seeds * earlier.trials
        least = smallest_rate(trials, test.allowed or 0)
        return f"with {trials:,} trials: a violation in {format_number(least, '.2g')} of them {OFTEN}"
    if not can_hold(test, seeds) and not claim.out_of_reach:
        _refuse(claim, f"{with_seeds} its test ({describe_test(test, shown)}) cannot hold", least_seeds(test))
    if seeds < 2:
        return f"{with_seeds}: no interval"
    if events := is_of_events(test, earlier):
        if (share := smallest_share(test, seeds)) is None:
            return f"{with_seeds}: no chance shows so often"
        return f"{with_seeds}: {_moved(test, share, shown, events)} {OFTEN}"
    if earlier is None:
        return f"{with_seeds}: no earlier run says how far seeds spread"
    spreads, source = spreads_of(test, earlier), earlier.source
    if isinstance(spreads, str):
        return f"{with_seeds}: {source} gives no spread, {spreads}"
    gap = smallest_gap(test, max(spreads), seeds, len(spreads))
    if gap is None and not claim.out_of_reach and not _may_fail(test, earlier, seeds):
        half, margin = half_width(test, max(spreads), seeds), _margin(test)
        if half >= margin:
            words = describe_test(test, shown)
            wide = f"half an interval is {format_number(half)}, its margin {format_number(margin)}"
            least = (n for n in range(seeds, MOST) if half_width(test, max(spreads), n) < margin)
            why = f"{with_seeds} its test ({words}) cannot hold: by the spread of {source} {wide}"
            _refuse(claim, why, next(least, MOST))
    if gap is None:
        often = 100 * chance(test, max(spreads), seeds, *[_margin(test)] * 2)
        even = f"even the middle of the margin shows in {often:.0f} of 100 runs only"
        return f"{with_seeds}: {even}, by the spread of {source}"
    return f"{with_seeds}: {_moved(test, gap, shown)} {OFTEN}, by the spread of {source}"


def is_of_events(test: Test, earlier: Earlier | None) -> bool:
    """Whether each seed says yes or no."""
    if test.events or test.kind == "sign":
        return True
    columns = None if earlier is None or test.kind in ("ratio", "agreement") else earlier.columns
    return columns is not None and columns.shape[1] > 1 and intervals.is_share(columns)


def spreads_of(test: Test, earlier: Earlier) -> np.ndarray | str:
    """σ of one seed in each cell (K,), of logarithms for a ratio; or why there is none."""
    kind = kind_of(test)
    cells = max(1, len(test.results or "") - (test.kind == "ordering"))
    if earlier.spread is not None:
        return np.full(cells, math.log(earlier.spread) if kind.in_factors else earlier.spread)
    columns = earlier.columns
    if columns.shape[1] < 2:
        return "it has one seed"
    if why := kind.unusable(columns):
        return why
    values = [cell.values for cell in kind.compare(test, columns, "")]
    scaled = [np.log(each) if kind.in_factors else each for each in values]
    return np.array([0.0 if np.ptp(each) == 0 else each.std(ddof=1) for each in scaled])


def smallest_gap(test: Test, spread: float, seeds: int, cells: int = 1) -> float | None:
    """How far beyond its edge the truth must lie for a test with a side to hold in 80 of 100 runs, in its own
    scale (of logarithms for a ratio); how far from the middle it may lie within ± a margin, None where that
    is too much to ask even of the middle. Of K cells each errs in 20 %/K."""
    enough, margin = 1 - (1 - POWER) / cells, _margin(test)

    def often(gap: float) -> bool:
        inside = (gap, math.inf) if math.isinf(margin) else (margin + gap, margin - gap)
        return chance(test, spread, seeds, *inside, cells=cells) >= enough

    if math.isinf(margin):
        high = max(spread, _resolution(test), 1e-300)
        while not often(high):
            high *= 2
        return _edge(often, 0.0, high)
    if not often(0.0):
        return None
    return margin - _edge(lambda inner: often(margin - inner), 0.0, margin)


def chance(test: Test, spread: float, seeds: int, below: float, above: float, *, cells: int = 1) -> float:
    """The chance that a cell holds whose mean lies `below` over the lower edge and `above` under the
    upper."""
    from scipy.special import chdtri, ndtr

    degrees = seeds - 1
    tails = (np.arange(PARTS) + 0.5) / PARTS
    half = half_width(test, spread * np.sqrt(chdtri(degrees, tails) / degrees), seeds, cells)
    error = max(spread / math.sqrt(seeds), 1e-300)
    return float(np.maximum(0, ndtr((above - half) / error) - ndtr((half - below) / error)).mean())


def half_width(test: Test, spread: float | np.ndarray, seeds: int, cells: int = 1) -> float | np.ndarray:
    """t s/√n, and the resolution of the grid; the steps of an ordering by simultaneous intervals."""
    from scipy.special import stdtrit

    level = 1 - (1 - LEVEL) / cells if test.kind == "ordering" else LEVEL
    return float(stdtrit(seeds - 1, (1 + level) / 2)) * spread / math.sqrt(seeds) + _resolution(test)


def smallest_share(test: Test, seeds: int) -> float | None:
    """Of events: the chance nearest to the threshold at which the test holds in 80 of 100 runs; of two arms
    the share of seeds in which one alone has it, in `equivalence` the largest; within ± a tolerance how far
    from what is expected the chance may lie. None where there is none."""
    from scipy.stats import binom

    held = np.array([decide_hits(test, hits, seeds) for hits in range(seeds + 1)])
    cells = 1 if test.kind == "ordering" else max(1, len(test.results or ""))

    def often(share: float) -> bool:
        holds = binom.pmf(np.arange(seeds + 1), seeds, share) @ held
        return bool(holds >= 1 - (1 - POWER) / cells - 1e-12)

    def near(gap: float) -> bool:
        return all(often(min(1.0, max(0.0, (test.expected or 0.0) + side * gap))) for side in (-1, 1))

    holds_at = near if test.tolerance is not None else often
    if (
        test.tolerance is not None
        or test.kind == "equivalence"
        or (test.kind, test.side) == ("level", "less")
    ):
        return 1 - _edge(lambda rest: holds_at(1 - rest), 0.0, 1.0) if holds_at(0.0) else None
    return _edge(often, 0.0, 1.0) if often(1.0) else None


def decide_hits(test: Test, hits: int, seeds: int) -> bool:
    """Whether the test holds where so many seeds have the event, of two arms one alone in each."""
    yes, no = (np.arange(seeds) < hits).astype(float), np.zeros(seeds)
    kind = kind_of(test)
    if test.kind == "ordering":
        two = replace(test, results=test.results[:2])
        level = 1 - (1 - LEVEL) / (len(test.results) - 1)
        return kind.decide(two, kind.cells(two, np.stack([no, yes]), ""), level)[0] is True
    if test.b is not None and test.kind == "difference" and test.side == "less":
        rows = np.stack([no, yes])
    else:
        rows = np.stack([yes, no]) if test.b is not None else yes[None]
    one = replace(test, results=None, a="a") if test.results else test
    return kind.decide(one, kind.cells(one, rows, ""))[0] is True


def smallest_rate(trials: int, allowed: int = 0) -> float:
    """The rate of violations at which more than `allowed` of so many trials break a bound in 80 of 100 runs;
    for none 1 - 0.2^(1/trials)."""
    from scipy.special import bdtrc

    return _edge(lambda rate: bdtrc(allowed, trials, rate) >= POWER, 0.0, 1.0)


def _may_fail(test: Test, earlier: Earlier, seeds: int) -> bool:
    """Whether the earlier mean lies so far outside that so many seeds would show it."""
    if earlier.columns is None:
        return False
    low, high = kind_of(test).edges(test)
    halves = half_width(test, spreads_of(test, earlier), seeds)
    means = [cell.values.mean() for cell in kind_of(test).compare(test, earlier.columns, "")]
    return any(mean - half > high or mean + half < low for mean, half in zip(means, halves))


def _margin(test: Test) -> float:
    low, high = kind_of(test).edges(test)
    return (high - low) / 2


def _resolution(test: Test) -> float:
    width = test.resolution
    if width is None:
        return 0.0
    return (math.log(width) if kind_of(test).in_factors else width) * (1 - HAIR)


def _moved(test: Test, to: float, shown: Effect | None, events: bool = False) -> str:
    """What a test asks for, its bound moved: a gap away from the threshold, to a share, within so much."""
    kind, shown = kind_of(test), shown or Effect()
    if test.kind == "sign":
        return describe_test(test, shown).replace("more than half", format_number(to, ".0%"))
    if test.kind == "ordering":
        (step,) = in_points([_outwards(to, to)], shown.unit)
        return f"each step of {format_number(step)} {shown.unit}".rstrip() + " up"
    if test.margin is not None:
        return describe_test(replace(test, margin=_inwards(to)), shown)
    if test.tolerance is not None:
        return describe_test(replace(test, tolerance=_inwards(to)), shown)
    bound, up = test.threshold or 0.0, 1 if test.side == "greater" else -1
    if events:
        share = to if test.kind == "level" else up * to
        return describe_test(replace(test, threshold=round(share, 3)), shown)
    moved = bound * math.exp(up * to) if kind.in_factors else bound + up * to
    return describe_test(replace(test, threshold=_outwards(moved, abs(moved - bound), up)), shown)


def _outwards(value: float, gap: float, up: int = 1) -> float:
    """Two digits of the gap, away from the threshold."""
    step = 10.0 ** (math.floor(math.log10(gap)) - 1) if gap > 0 else 1.0
    return float(f"{up * math.ceil(up * value / step - 1e-9) * step:.12g}")


def _inwards(value: float) -> float:
    step = 10.0 ** (math.floor(math.log10(value)) - 1) if value > 0 else 1.0
    return float(f"{math.floor(value / step + 1e-9) * step:.12g}")


def _edge(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number of (low, high] from which on a condition holds, to a part in 10¹²."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _refuse(claim: Claim, why: str, least: int) -> NoReturn:
    more = f"at least {least} seeds" if least < MOST else "another test"
    raise PressError(f"claim {claim.id}: {why}; expected {more}, or `out_of_reach: true` beside it")


def earlier_of(test: Test, results: Mapping[str, np.ndarray], source: str) -> Earlier | None:
    """What an earlier run says of a test; None where it has not all that the test reads, as it reads it."""
    if not set(test.result_names()) <= set(results):
        return None
    try:
        columns = kind_of(test).columns(test, Recorded(results, ""))
        trials = 0
        if test.kind == "inequality":
            trials = kind_of(test).outcome(test, Recorded(results, "")).trials // columns.shape[1]
    except PressError:
        return None
    return Earlier(columns, None, trials, source)


def given(claim: Claim, test: Test, spread: float, earlier: Earlier | None) -> Earlier:
    """The spread of one seed that somebody expects, of a ratio as a factor, in place of an earlier run's."""
    least = 1.0 if kind_of(test).in_factors else 0.0
    if not least < spread < math.inf:
        raise PressError(f"--spread {claim.id}={spread:g}; expected a number above {least:g}")
    return Earlier(None, spread, earlier.trials if earlier else 0, f"{spread:g} that was given")
