"""The kinds of test: what each compares, whether it holds, how surely, and with how many seeds it can.

Most judge by a 95 % interval over the seeds; the exact ones, the rounding of an identity and the violations of a bound,
have no sampling error.

- difference: a - b lies beyond a threshold; equivalence: within a margin
- ratio: a / b lies beyond a threshold; the interval is one of logarithms
- level: a result, or each of several, lies beyond a threshold or near what is expected; rate: a slope does
- ordering: each of several results lies above the one before it
- sign: a lies on the claimed side of b in more than half of the seeds: for what spreads by powers of ten
- agreement: the relative error of a theory b, a / b - 1 of their means, lies within a tolerance

A one-sided claim holds where the whole interval lies beyond the threshold and fails where none of it does; a claim
"within ±" holds where the whole interval lies inside and fails where it lies outside. All else is undecided. A claim about
several cells (the steps of an ordering, the worst of many layers) holds where each of them does and fails where one fails,
by simultaneous intervals: each at 1 - 5 % / their number.

Seeds are paired: value s of every result comes from seed s. A seed without a finite value (a diverged run) makes the test
undecided, unless the test's `nonfinite` says what such a seed counts as (the accuracy or the loss of guessing, fixed before
the run). It is never dropped: the seeds that survive are not a fair sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bookpress import intervals
from bookpress.claims.claim import Effect, Test
from bookpress.claims.draws import columns, over_draws, unit_of
from bookpress.errors import PressError
from bookpress.intervals import LEVEL, Interval, is_share


class Cell(NamedTuple):
    """One comparison: values (S,), their interval at a level of confidence, a name if there are several."""

    values: np.ndarray
    interval: Callable[[float], Interval]
    name: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one test found."""

    test: Test
    holds: bool | None = None  # None: undecided
    effect: float = math.nan
    interval: tuple[float, float] = (-math.inf, math.inf)  # both ends equal for an exact check
    n: int = 0  # seeds; none where a size was not reached
    unit: str = ""
    shown: Effect | None = None  # how readers see the effect; None: as its kind is usually seen
    trials: int = 0  # of a bound that was tried
    cells: tuple[Cell, ...] = field(default=(), repr=False, compare=False)  # what was compared
    place: int = 0  # of the cell that is shown: the one that decides

    @property
    def values(self) -> np.ndarray:
        """What the interval is of, one value per seed (S,); empty for an exact check."""
        return self.cells[self.place].values if self.cells else np.empty(0)


def evaluate(
    test: Test, results: Mapping[str, np.ndarray], claim_id: str, shown: Effect | None = None
) -> Outcome:
    """Judge recorded results by one test; undecided where a seed has no finite value, or a ratio one of zero.

    Raises PressError where a result is missing, has no single number per seed where one is needed, is paired
    with a result of other seeds, or where a ratio's values are negative.
    """
    if test.exact:
        return (_rounding if test.kind == "identity" else _violations)(test, results, claim_id, shown)
    _, rows = columns(test, results, claim_id)
    unit = "" if test.kind in ("ratio", "agreement") else unit_of(results, test.result_names()[0])
    nothing = Outcome(test, n=rows.shape[1], unit=unit, shown=shown)
    if unusable(test, rows):
        return nothing
    cells = compared(test, rows, claim_id)
    holds, place, (effect, *ends) = decide(test, cells)
    if math.isnan(effect):  # the interval is wider than numbers reach
        return nothing
    return replace(nothing, holds=holds, effect=effect, interval=tuple(ends), cells=cells, place=place)


def unusable(test: Test, rows: np.ndarray) -> bool:
    """Whether results (K, S) leave a test undecided: a value that is not finite, or has no logarithm."""
    return not np.isfinite(rows).all() or test.in_factors and bool((rows == 0).any())


def combine(held: Sequence[bool | None], how: str = "all") -> bool | None:
    """Kleene's three-valued "and" or "or" of what cells or parts gave; None is unknown."""
    decisive = how == "any"
    return decisive if decisive in held else None if None in held else not decisive


# ---- What is compared: cells of values with an interval, from results (K, S) ----------------------------------------


def compared(test: Test, rows: np.ndarray, claim_id: str = "") -> tuple[Cell, ...]:
    """The cells of a test; PressError for a ratio of negative values, or a theory of zero."""
    if test.kind in ("level", "rate"):
        return tuple(_level(row, name) for row, name in zip(rows, test.names(), strict=True))
    if test.kind == "sign":  # in which share of the seeds the first is the larger one
        return (_level((rows[0] > rows[1]).astype(float)),)
    if test.kind == "ordering":
        steps = zip(rows, rows[1:], test.results, test.results[1:], strict=False)
        return tuple(_difference(above, below, f"{a} to {b}") for below, above, a, b in steps)
    a, b = rows
    if test.kind == "ratio":
        if (rows < 0).any():
            raise PressError(f"claim {claim_id}: a ratio of negative values; expected positive ones")
        return (Cell(a / b, lambda level: _ratio(a, b, level)),)
    if test.kind != "agreement":
        return (_difference(a, b),)
    if b.mean() == 0:
        raise PressError(f"claim {claim_id}: theory is zero; expected a level test with a tolerance")
    ratio = a.mean() / b.mean()
    error = lambda level: tuple(edge - 1 for edge in intervals.ratio_of_means(a, b, level))
    return (Cell((a - ratio * b) / b.mean() + ratio - 1, error),)


def _level(row: np.ndarray, name: str = "") -> Cell:
    return Cell(row, lambda level: intervals.mean_level(row, level), name)


def _difference(a: np.ndarray, b: np.ndarray, name: str = "") -> Cell:
    return Cell(a - b, lambda level: intervals.paired_difference(a, b, level), name)


def _ratio(a: np.ndarray, b: np.ndarray, level: float) -> Interval:
    try:
        return intervals.geometric_ratio(a, b, level)
    except OverflowError:  # few seeds, one on the brink of divergence: wider than numbers reach
        return math.nan, -math.inf, math.inf


#: A bracket does not contain its own ends (one works, one does not): they are kept a hair inside.
HAIR = 1e-9


def _ends(test: Test, cell: Cell, level: float) -> Interval:
    """A cell's interval, wider by the resolution: all seeds share one grid, whose error no seed shows."""
    effect, low, high = cell.interval(level)
    if test.resolution is None:
        return effect, low, high
    if test.in_factors:
        width = test.resolution ** (1 - HAIR)
        return effect, low / width, high * width
    width = test.resolution * (1 - HAIR)
    return effect, low - width, high + width


def decide(test: Test, cells: Sequence[Cell], level: float = LEVEL) -> tuple[bool | None, int, Interval]:
    """Whether the test holds at a level of confidence, the place of the cell that decides, its interval.

    With K cells a test fails by simultaneous intervals (Bonferroni), for the data pick the worst. It
    holds where every cell does by its own, which needs no correction: each of K errors would have to
    happen. The steps of an ordering are judged by simultaneous intervals also where they hold.
    """
    count = max(test.cells or 1, len(cells))
    sure = [_ends(test, cell, 1 - (1 - level) / count) for cell in cells]
    own = sure if count == 1 or test.kind == "ordering" else [_ends(test, cell, level) for cell in cells]
    held = [
        False if position(test, *wide[1:]) is False else position(test, *narrow[1:]) or None
        for wide, narrow in zip(sure, own, strict=True)
    ]
    rank, (least, most) = {False: 0, None: 1, True: 2}, test.edges
    reach = [max(high - most, least - low) for _, low, high in own]  # the worst cell's is the furthest
    place = min(range(len(cells)), key=lambda k: (rank[held[k]], -reach[k]))
    holds = combine(held)
    return holds, place, own[place] if holds else sure[place]


def position(test: Test, low: float, high: float) -> bool | None:
    """Where an interval lies: beyond the threshold or within the margin, on the other side, or across."""
    least, most = test.edges
    if math.isinf(most):
        return True if low > least else False if high <= least else None
    if math.isinf(least):
        return True if high < most else False if low >= most else None
    if least <= low and high <= most:
        return True
    return False if low > most or high < least else None


# ---- Exact checks -----------------------------------------------------------------------------------------------------


def _rounding(test: Test, results: Mapping, claim_id: str, shown: Effect | None) -> Outcome:
    """The largest |violation| over seeds and instances is within a tolerance; what is not finite fails."""
    seeds, (values,) = columns(test, results, claim_id)
    worst = float(values.max()) if np.isfinite(values).all() else math.inf
    unit = unit_of(results, test.a)
    return Outcome(test, worst <= test.tolerance, worst, (worst, worst), len(seeds), unit, shown)


def _violations(test: Test, results: Mapping, claim_id: str, shown: Effect | None) -> Outcome:
    """None of many trials violates a bound. The interval of their share is at least as wide as that of the seeds' own
    shares: the trials of one seed may go with each other, steps of one training say. PressError where these are no counts."""
    seeds, values = over_draws(test.a, results, claim_id)
    if isinstance(test.b, str):
        own = over_draws(test.b, results, claim_id)[1]
    else:
        own = np.full(len(seeds), values[0].size if test.b is None else test.b)
    found, trials = values.sum(), own.sum()
    if not (np.isfinite([found, trials]).all() and 0 <= found <= trials and trials > 0):
        counts = f"{found:g} violations in {trials:g} trials"
        raise PressError(f"claim {claim_id}: {counts}; expected a count of them")
    low, high = intervals.clopper_pearson(int(found), int(trials))
    shares = values.reshape(len(seeds), -1).sum(axis=1)[own > 0] / own[own > 0]
    if len(shares) > 1:
        _, least, most = intervals.of_mean(shares)
        low, high = max(0.0, min(low, least)), min(1.0, max(high, most))
    share = float(found / trials)
    return Outcome(test, bool(found == 0), share, (low, high), len(seeds), "of trials", shown, int(trials))


# ---- How surely a test decides: the p-value of its interval, and the sign test ----------------------------------------

#: Smallest p that is told apart from 0.
SMALLEST = 1e-12
#: From so many seeds on the sign test can decide at 5 %: 2 / 2⁶ is below, 2 / 2⁵ above.
SIGN_TEST_DECIDES = 6


def p_value(outcome: Outcome) -> float | None:
    """The smallest α at which the two-sided interval at 1 - α still decides, to three digits; 1 where it does at none,
    None for what is exact or was not measured.

    Intervals at 1 - α are nested, so that what decides at one α decides at every larger one.
    """
    if not outcome.cells:
        return None
    if (known := _student_p(outcome)) is not None:
        return known
    decides = lambda alpha: decide(outcome.test, outcome.cells, 1 - alpha)[0] is not None
    if decides(SMALLEST):
        return 0.0
    if not decides(1 - SMALLEST):
        return 1.0
    return math.exp(least(lambda log: decides(math.exp(log)), math.log(SMALLEST), 0.0, 16))


def least(is_enough: Callable[[float], bool], low: float, high: float, halvings: int) -> float:
    """The least value between two that is enough, by halving."""
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _student_p(outcome: Outcome) -> float | None:
    """The same in closed form for one mean by Student's interval: of its distance from the nearest edge.

    None for all others: shares, several cells, grids, and where nothing varies.
    """
    from scipy.special import stdtr, stdtrit

    test, (cell, *more) = outcome.test, outcome.cells
    if more or test.cells or test.resolution or is_share(cell.values):
        return None
    if test.kind not in ("ratio", "rate", "agreement", "level"):
        return None
    numbers = (outcome.effect, outcome.interval[0], *test.edges)
    if test.in_factors:
        numbers = tuple(math.log(number) if number > 0 else -math.inf for number in numbers)
    effect, low, *bounds = numbers
    if not 0 < effect - low < math.inf:
        return None
    error = (effect - low) / float(stdtrit(outcome.n - 1, (1 + LEVEL) / 2))
    return 2 * float(stdtr(outcome.n - 1, -min(abs(effect - edge) for edge in bounds) / error))


def sign_test(outcome: Outcome) -> tuple[int, float]:
    """(seeds on the verdict's side, for an open test on that of the median; two-sided p of the median).

    Against each edge of the region in which the claim holds, seeds above and below are heads and tails of a
    fair coin (Arbuthnott 1710); where each is a 0 or a 1, of one that falls on 1 as often as the edge says.
    Within ± both edges must be passed, outside one. It assumes nothing of the distribution and is at least 2 / 2ⁿ.
    """
    (low, high), values, holds = outcome.test.edges, outcome.values, outcome.holds
    inside = int(((values > low) & (values < high)).sum())
    below, above = int((values <= low).sum()), int((values >= high).sum())
    if holds is None:
        holds = bool(low < np.median(values) < high)
    if holds:
        return inside, max(_coin(values, edge) for edge in (low, high))
    return max(below, above), _coin(values, low if below >= above else high)


def _coin(values: np.ndarray, edge: float) -> float:
    """Two-sided p that the coin falls so unevenly; 0 at an infinite edge, where no value can cross."""
    from scipy.special import bdtr, bdtrc

    if math.isinf(edge):
        return 0.0
    if is_share(values) and 0 < edge < 1:
        heads, falls, chance = int(values.sum()), values.size, edge
    else:
        heads = int((values > edge).sum())
        falls, chance = heads + int((values < edge).sum()), 0.5
    if chance == 0.5:  # exact: rounded to six digits many such numbers are ties
        fewer, more = (
            sum(math.comb(falls, k) for k in range(n + 1)) / 2**falls for n in (heads, falls - heads)
        )
    else:
        fewer, more = bdtr(heads, falls, chance), bdtrc(heads - 1, falls, chance)
    return min(1.0, 2 * float(min(fewer, more)))


# ---- With how few seeds a test can hold, and what it asks at another margin --------------------------------------------

#: Beyond so many seeds nothing is sought.
MOST = 10_000


def can_hold(test: Test, seeds: int) -> bool:
    """Whether some outcome of so many seeds makes the test hold.

    Student's interval can be as narrow as one likes from two seeds on. One for events of seeds cannot:
    with S hits of S it still reaches down to 0.025^(1/S) (Clopper and Pearson).
    """
    if test.exact or not test.events and test.kind != "sign":
        return test.exact or seeds >= 2
    hit, miss = np.ones(seeds), np.zeros(seeds)
    if test.kind in ("difference", "sign"):
        rows = [(hit, miss), (miss, hit)]
    elif test.kind == "equivalence":
        rows = [(miss, miss)]
    else:  # any number of hits, in every result alike; beyond a threshold all or none
        counts = (0, seeds) if test.side else range(seeds + 1)
        rows = [(np.arange(seeds) < hits,) * len(test.names()) for hits in counts]
    return any(decide(test, compared(test, np.array(each, dtype=float)))[0] for each in rows)


def least_seeds(test: Test) -> int:
    """The fewest seeds with which the test can hold; MOST where it takes more."""
    return next((seeds for seeds in range(1, MOST) if can_hold(test, seeds)), MOST)


def scaled(test: Test, factor: float, shown: Effect | None = None) -> Test:
    """With its margin, tolerance or threshold `factor` times as far from no effect at all; as it is, where none
    was chosen.

    No effect is a difference or a level of 0 and a ratio of 1, by which also what is shown as "times …"
    is meant; "most" stays. Above one half a share is near to all, so that "nine in ten" becomes 0.95 and 0.8.
    """
    if test.exact or test.kind in ("ordering", "sign"):
        return test
    for name in ("margin", "tolerance"):
        if getattr(test, name) is not None:
            return replace(test, **{name: factor * getattr(test, name)})
    threshold, unit = test.threshold, shown.unit if shown else ""
    times = unit.startswith("times")
    if test.kind == "level" and not times and 0.5 < threshold < 1:
        return replace(test, threshold=1 - factor * (1 - threshold))
    if test.in_factors or times or shown and shown.more.startswith("times"):
        return replace(test, threshold=threshold**factor)
    return test if unit == "%" and threshold == 0.5 else replace(test, threshold=factor * threshold)


# ---- How many seeds would decide an open claim, if mean and spread stay as they were measured ----------------------

#: The chance that so many seeds decide, if mean and spread are those that were measured.
POWER = 0.8
#: More seeds than anybody will train: the estimate lies too near to the edge for its spread.
TOO_MANY = 500


def seeds_needed(outcome: Outcome) -> float:
    """The least n at which a test decides with a chance of 80 %, if mean and spread stay; inf: beyond reach.

    The estimate must then lie (t₀.₉₇₅ + t₀.₈) s / √n inside the edge, the half-width of the interval and room
    for the mean of the new seeds to scatter; a share's exact interval is taken at that quantile of its count.
    """
    if outcome.holds is not None:
        return outcome.n
    decides = lambda n: decide(outcome.test, [_at(outcome, cell, n) for cell in outcome.cells])[0] is not None
    low, high = outcome.n, 100 * TOO_MANY
    if not outcome.cells or outcome.n < 2 or not decides(high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high


def seeds_for_claim(outcomes: Sequence[Outcome], how: str = "all") -> float:
    """For a claim of several parts: the least n at which enough of its open parts are decided.

    Each open part is taken to go where its estimate lies. One part that fails refutes `all`, one that holds
    proves `any`; otherwise every open part must be decided. A part that was not measured at all is not asked.
    """
    unsettled = [outcome for outcome in outcomes if outcome.holds is None and outcome.n]
    estimates = [[cell.interval(LEVEL)[0] for cell in outcome.cells] for outcome in unsettled]
    leans = [
        bool(own) and all(position(o.test, each, each) for each in own)
        for o, own in zip(unsettled, estimates)
    ]
    needed = [*zip(map(seeds_needed, unsettled), leans)]
    decisive = [n for n, holds in needed if holds is (how == "any")]
    return min(decisive) if decisive else max((n for n, _ in needed), default=0)


def _at(outcome: Outcome, cell: Cell, n: int) -> Cell:
    """The cell as n seeds of the same mean and spread would have it."""
    from scipy.special import bdtr, stdtrit

    def half(n: int, level: float, power: float = 0.5) -> float:
        """(t of the level + t of the power) / √n: half a width, with room for the mean to scatter."""
        return float(stdtrit(n - 1, (1 + level) / 2) + stdtrit(n - 1, power)) / math.sqrt(n)

    def interval(level: float) -> Interval:
        effect, low, high = cell.interval(level)
        if is_share(cell.values):  # the lower end that few hits would give, and the upper end that many would
            below = bdtr(np.arange(n + 1), n, effect)  # the chance of at most so many hits
            few, many = (int(np.searchsorted(below, chance)) for chance in (1 - POWER, POWER))
            clopper_pearson = intervals.clopper_pearson
            return effect, clopper_pearson(few, n, level)[0], clopper_pearson(many, n, level)[1]
        shrunk = half(n, level, POWER) / half(outcome.n, level)
        if low > 0 and outcome.test.in_factors:
            return effect, effect * (low / effect) ** shrunk, effect * (high / effect) ** shrunk
        return effect, effect - (effect - low) * shrunk, effect + (high - effect) * shrunk

    return cell._replace(interval=interval)
