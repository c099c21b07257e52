"""What planned seeds can show: the smallest effect that a test finds in 80 of 100 repetitions, by the judge itself.

Each repetition draws so many seeds, normal with the spread σ of an earlier run (of logarithms for a ratio) or, of events,
by a chance, around a truth that lies a gap beyond the edge, and the test judges them. Exact checks have no sampling error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bookpress import intervals
from bookpress.claims.claim import Claim, Effect, Test
from bookpress.claims.draws import columns
from bookpress.claims.effects import describe_test
from bookpress.claims.kinds import POWER, Cell, can_hold, compared, decide, least, least_seeds, unusable
from bookpress.claims.words import format_number
from bookpress.errors import PressError

#: Repetitions, the same draws at every gap; halvings of the gap.
BOOKS, HALVINGS = 400, 12
OFTEN = f"shows in {100 * POWER:.0f} of 100 runs"


@dataclass(frozen=True)
class Earlier:
    """The spread σ of one seed in each cell of a test, whether it is of events, and which run says so."""

    spread: float
    cells: int = 1
    events: bool = False
    source: str = ""


def power(claim: Claim, test: Test, seeds: int, earlier: Earlier | None, shown: Effect | None = None) -> str:
    """The smallest effect that a test shows with so many seeds, in words and in its own unit, or why none does."""
    with_seeds = f"with {seeds} seed{'s' * (seeds != 1)}"
    if test.exact:
        return "exact: one violation shows"
    if not can_hold(test, seeds):
        return f"{with_seeds} it cannot hold; expected at least {least_seeds(test)}"
    if earlier is None:
        return f"{with_seeds}: no earlier run says how far seeds spread; --spread {claim.id}=NUMBER says it"
    gap = smallest(test, earlier, seeds)
    by = f", by the spread of {earlier.source}" * (not earlier.events)
    if gap is None:
        return f"{with_seeds}: even the middle of the margin shows in fewer than 80 of 100 runs{by}"
    return f"{with_seeds}: {_moved(test, gap, shown)} {OFTEN}{by}"


def smallest(test: Test, earlier: Earlier, seeds: int) -> float | None:
    """How far beyond its edge the truth must lie for the test to hold in 80 of 100 repetitions; within ± a margin how
    far from the middle it may lie, None where that is too much to ask even of the middle. On the scale of logarithms for a
    ratio."""
    low, high = test.edges
    if test.in_factors:
        low, high = math.log(low) if low > 0 else -math.inf, math.log(high)
    rng = np.random.default_rng(0)
    drawn = rng.random if earlier.events else rng.standard_normal
    noise = drawn((BOOKS, earlier.cells, seeds))

    def often(truth: float) -> bool:
        values = (noise < truth).astype(float) if earlier.events else truth + earlier.spread * noise
        return sum(_holds(test, each) for each in values) >= POWER * BOOKS

    if math.isfinite(low) and math.isfinite(high):
        middle, half = (low + high) / 2, (high - low) / 2
        return least(lambda gap: not often(middle + gap), 0.0, half, HALVINGS) if often(middle) else None
    edge, up = (low, 1) if math.isfinite(low) else (high, -1)
    most = 1.0 if earlier.events else max(earlier.spread, 1e-300)
    while not earlier.events and not often(edge + up * most):
        most *= 2
    return least(lambda gap: often(edge + up * gap), 0.0, most, HALVINGS)


def earlier_of(test: Test, results: Mapping[str, np.ndarray], source: str) -> Earlier | None:
    """What an earlier run says of a test; None where it has not what the test reads, as it reads it, on two seeds."""
    if test.exact or not set(test.result_names()) <= set(results):
        return None
    try:
        seeds, rows = columns(test, results)
        if len(seeds) < 2 or unusable(test, rows):
            return None
        values = [cell.values for cell in compared(test, rows)]
    except PressError:
        return None
    scaled = [np.log(each) if test.in_factors else each for each in values]
    events = bool(test.events) or test.kind == "sign" or all(map(intervals.is_share, values))
    return Earlier(max(float(np.std(each, ddof=1)) for each in scaled), len(values), events, source)


def given(claim: Claim, test: Test, spread: float) -> Earlier:
    """The spread of one seed that somebody expects, of a ratio as a factor."""
    least = 1.0 if test.in_factors else 0.0
    if not least < spread < math.inf:
        raise PressError(f"--spread {claim.id}={spread:g}; expected a number above {least:g}")
    cells = max(1, len(test.results or "") - (test.kind == "ordering"))
    events, source = bool(test.events) or test.kind == "sign", f"{spread:g} that was given"
    return Earlier(math.log(spread) if test.in_factors else spread, cells, events, source)


def _holds(test: Test, values: np.ndarray) -> bool:
    """Whether the test holds for these values of its cells (K, S), of logarithms for a ratio, judged as every run is."""

    def interval(row: np.ndarray, level: float) -> intervals.Interval:
        if test.in_factors:
            return tuple(math.exp(end) for end in intervals.of_mean(row, level))
        return intervals.mean_level(row, level)

    return decide(test, [Cell(row, lambda level, row=row: interval(row, level)) for row in values])[0] is True


def _moved(test: Test, gap: float, shown: Effect | None) -> str:
    """What a test asks for, its bound moved by the gap, to two digits of it."""
    step = 10.0 ** (math.floor(math.log10(gap)) - 1) if gap > 0 else 1.0
    near = lambda value: float(f"{round(value / step) * step:.12g}")
    for name in ("margin", "tolerance"):
        if getattr(test, name) is not None:
            return describe_test(replace(test, **{name: near(gap)}), shown)
    if test.threshold is None:  # a sign or an ordering
        words = format_number(near(0.5 + gap), ".0%") if test.kind == "sign" else format_number(near(gap))
        return f"{words} of the seeds" if test.kind == "sign" else f"each step of {words} up"
    moved = gap if test.side == "greater" else -gap
    threshold = near(test.threshold + moved)
    if test.in_factors:
        threshold = float(f"{test.threshold * math.exp(moved):.3g}")
    return describe_test(replace(test, threshold=threshold), shown)
