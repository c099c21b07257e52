"""The kinds of test: what each compares, what has to hold in words, and how its effect is said.

`KINDS` has them by name. Most judge by a 95 % interval over the seeds; `exact` are those without sampling error: the
rounding of an identity, the violations of a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from bookpress import intervals
from bookpress.claims.claim import Cell, Effect, Outcome, Test
from bookpress.claims.recorded import Recorded
from bookpress.claims.words import (
    BASES,
    Shown,
    arm_of,
    beyond,
    directed,
    directions,
    factor,
    factor_words,
    format_number,
    in_points,
    level_beyond,
    margin,
    near,
    percent,
    power,
    put,
    rounded,
    spelled,
    upwards,
)
from bookpress.errors import PressError
from bookpress.intervals import LEVEL

# A one-sided claim holds where the whole interval lies beyond the threshold and fails where none of it does; a
# claim "within ±" holds where the whole interval lies inside and fails where it lies outside. All else is
# undecided. A claim about several cells (the steps of an ordering, the worst of many layers) holds where each
# of them does and fails where one fails, by simultaneous intervals: each at 1 - 5 % / their number.
#
# Seeds are paired: value s of every result comes from seed s. A seed without a finite value (a diverged run)
# makes the test undecided, unless the test's `nonfinite` says what such a seed counts as (the accuracy or the
# loss of guessing, fixed before the run). It is never dropped: the seeds that survive are not a fair sample.

Decision = tuple[bool | None, int, intervals.Interval]


@dataclass(frozen=True)
class Kind:
    """One kind of test, judged by an interval over the seeds where it has something to `compare`."""

    asks: Callable[[Test, Effect], str]  # what has to hold, in the effect's unit
    #: The effect and its interval in words; given the effect, the interval's ends and the edges.
    words: Callable[[Outcome, Effect, list[float]], Shown]
    compare: Callable[[Test, np.ndarray, str], tuple[Cell, ...]] | None = None  # results (K, S), finite
    edge: float | None = None  # beyond which its value must lie, where no threshold is chosen
    has_unit: bool = True  # the effect has that of the first result
    one_mean: bool = False  # judged by Student's interval of one mean
    in_factors: bool = False  # the effect is a factor, its interval one of logarithms
    by_theory: bool = False  # the last result is a theory's: one value may stand for every seed

    @property
    def exact(self) -> bool:
        """Without sampling error: rounding, or a count."""
        return self.compare is None

    def columns(self, test: Test, recorded: Recorded) -> np.ndarray:
        """What the test compares, as rows (K, S) of the same seeds; of an exact check its violations, one row."""
        if self.exact:
            values = np.abs(recorded.over(test.a)).reshape(1, len(recorded.over(test.a)), -1)
            return values.max(axis=2) if test.kind == "identity" else values.sum(axis=2)
        found = recorded.paired(_names(test), test.nonfinite, self.by_theory, bool(test.events))
        return found[::-1] if test.kind == "sign" and test.side == "less" else found

    def outcome(self, test: Test, recorded: Recorded) -> Outcome:
        """What the test finds in recorded results; undecided where a seed has no finite value."""
        if self.exact:
            return (_rounding if test.kind == "identity" else _violations)(test, recorded)
        columns, names = self.columns(test, recorded), _names(test)
        unit, n = recorded.unit(names[0]) if self.has_unit else "", columns.shape[1]
        if why := self.unusable(columns):
            return _undecided(n, unit, why)
        cells = self.cells(test, columns, recorded.claim_id)
        holds, place, (effect, *ends) = self.decide(test, cells)
        if math.isnan(effect):
            return _undecided(n, unit, "the interval is wider than numbers reach")
        detail = f"decided by {cells[place].name}" if test.results else ""
        return Outcome(holds, effect, tuple(ends), n, unit, detail, cells=cells, place=place)

    def unusable(self, columns: np.ndarray) -> str:
        """Why results (K, S) leave a test undecided, or nothing."""
        seeds = columns.shape[1]
        if lost := int((~np.isfinite(columns)).any(axis=0).sum()):
            return f"{lost} of {seeds} seeds have no finite value"
        zeros = int((columns == 0).any(axis=0).sum()) if self.in_factors else 0
        return f"{zeros} of {seeds} seeds have a value of zero: no logarithm" if zeros else ""

    def cells(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """What is compared, each with the resolution of the grid that its values come from."""
        compared = self.compare(test, columns, claim_id)
        return tuple(replace(cell, resolution=test.resolution) for cell in compared)

    def decide(self, test: Test, cells: tuple[Cell, ...], level: float = LEVEL) -> Decision:
        """Whether the test holds at a level of confidence, the place of the cell that decides, its interval.

        With K cells a test fails by simultaneous intervals (Bonferroni), for the data pick the worst. It
        holds where every cell does by its own, which needs no correction: each of K errors would have to
        happen. The steps of an ordering are judged by simultaneous intervals also where they hold.
        """
        sure = [cell.ends(1 - (1 - level) / max(test.cells or 1, len(cells))) for cell in cells]
        if test.kind == "ordering":
            held = [self.position(test, low, high) for _, low, high in sure]
            place = min(range(len(cells)), key=lambda k: sure[k][2 if False in held else 1])
            return combine(held), place, sure[place]
        own = sure if len(cells) == 1 and not test.cells else [cell.ends(level) for cell in cells]
        held = [
            False if self.position(test, *wide[1:]) is False else self.position(test, *narrow[1:]) or None
            for wide, narrow in zip(sure, own, strict=True)
        ]
        rank, (least, most) = {False: 0, None: 1, True: 2}, self.edges(test)
        # the worst cell reaches furthest to the wrong side
        reach = [max(high - most, least - low) for _, low, high in own]
        place = min(range(len(cells)), key=lambda k: (rank[held[k]], -reach[k]))
        holds = combine(held)
        return holds, place, own[place] if holds else sure[place]

    def edges(self, test: Test) -> tuple[float, float]:
        """Between which values a test holds: (threshold, ∞), (-∞, threshold) or within ± of a centre."""
        if self.edge is not None:
            return self.edge, math.inf
        if test.side == "greater":
            return test.threshold or 0.0, math.inf
        if test.side == "less":
            return -math.inf, test.threshold
        margin, centre = test.tolerance if test.margin is None else test.margin, test.expected or 0.0
        return centre - margin, centre + margin

    def position(self, test: Test, low: float, high: float) -> bool | None:
        """Where an interval lies: beyond the threshold or within the margin, on the other side, or across."""
        least, most = self.edges(test)
        if math.isinf(most):
            return True if low > least else False if high <= least else None
        if math.isinf(least):
            return True if high < most else False if low >= most else None
        if least <= low and high <= most:
            return True
        return False if low > most or high < least else None

    def effect(self, outcome: Outcome, shown: Effect) -> Shown:
        """The effect and its interval in words; a logarithm is shown as the factor that it stands for."""
        if self.exact:
            return self.words(outcome, shown, [])
        values = [outcome.effect, *outcome.interval, *self.edges(outcome.test)]
        if base := BASES.get(shown.unit):
            return factor([power(base, value) for value in values], outcome.test, shown)
        return self.words(outcome, shown, values)

    def scaled(self, test: Test, factor: float, shown: Effect | None = None) -> Test:
        """With its margin, tolerance or threshold `factor` times as far from no effect at all; as it is, where none
        was chosen.

        No effect is a difference or a level of 0 and a ratio of 1, by which also what is shown as "times …"
        is meant; "most" stays. Above one half a share is near to all, so that "nine in ten" becomes 0.95 and 0.8.
        """
        if self.exact or self.edge is not None:
            return test
        if test.margin is not None:
            return replace(test, margin=factor * test.margin)
        if test.tolerance is not None:
            return replace(test, tolerance=factor * test.tolerance)
        threshold, unit = test.threshold or 0.0, shown.unit if shown else ""
        times = unit.startswith("times")
        if test.kind == "level" and not times and 0.5 < threshold < 1:
            return replace(test, threshold=1 - factor * (1 - threshold))
        if self.in_factors or times or shown and (shown.more or "").startswith("times"):
            return replace(test, threshold=threshold**factor)
        return test if unit == "%" and threshold == 0.5 else replace(test, threshold=factor * threshold)

    def can_hold(self, test: Test, seeds: int) -> bool:
        """Whether some outcome of so many seeds makes the test hold.

        Student's interval can be as narrow as one likes from two seeds on. One for events of seeds cannot:
        with S hits of S it still reaches down to 0.025^(1/S) (Clopper and Pearson).
        """
        if self.exact:
            return True
        if test.kind == "sign":
            return _least_share(seeds) > self.edge
        if seeds < 2 or not test.events:
            return seeds >= 2
        if test.kind == "difference":  # S hits against none, by Bonett and Price's lower end
            share = (seeds + 1) / (seeds + 2)
            middle = share - 1 / (seeds + 2)
            spread = share + 1 / (seeds + 2) - middle**2
            half = NormalDist().inv_cdf((1 + LEVEL) / 2) * (spread / (seeds + 2)) ** 0.5
            return middle - half > (test.threshold if test.side == "greater" else -test.threshold)
        if test.side:
            least = _least_share(seeds)
            return least > test.threshold if test.side == "greater" else 1 - least < test.threshold
        best = [np.zeros((2, seeds))] if test.margin is not None else _hits(len(test.results or "1"), seeds)
        return any(self.decide(test, self.cells(test, rows, ""))[0] for rows in best)


def combine(held: Sequence[bool | None], how: str = "all") -> bool | None:
    """Kleene's three-valued "and" or "or" of what cells or parts gave; None is unknown."""
    decisive = how == "any"
    return decisive if decisive in held else None if None in held else not decisive


def _names(test: Test) -> tuple[str | float, ...]:
    return test.results or ((test.a,) if test.b is None else (test.a, test.b))


def _undecided(n: int, unit: str, detail: str) -> Outcome:
    return Outcome(None, math.nan, (-math.inf, math.inf), n, unit, detail)


def _least_share(seeds: int) -> float:
    """The lower end of the exact interval where every seed hits."""
    return ((1 - LEVEL) / 2) ** (1 / seeds)


def _hits(rows: int, seeds: int) -> list[np.ndarray]:
    """What events of so many seeds may give: any number of hits, in every result alike."""
    return [np.tile(np.arange(seeds) < hits, (rows, 1)).astype(float) for hits in range(seeds + 1)]


# ---- What is compared: cells of values with an interval, from results (K, S) ----------------------------------------


def _differences(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    a, b = columns
    return (Cell(a - b, lambda level: intervals.paired_difference(a, b, level)),)


def _ratios(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    """a / b; PressError for negative values."""
    a, b = columns
    if (columns < 0).any():
        raise PressError(f"claim {claim_id}: a ratio of negative values; expected positive ones")

    def interval(level: float) -> intervals.Interval:
        try:
            return intervals.geometric_ratio(a, b, level)
        except OverflowError:  # few seeds, one on the brink of divergence: wider than numbers reach
            return math.nan, -math.inf, math.inf

    return (Cell(a / b, interval, in_logs=True),)


def _relative_errors(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    """measured / theory - 1, of their means; PressError for a theory of zero."""
    measured, theory = columns
    if theory.mean() == 0:
        raise PressError(f"claim {claim_id}: theory is zero; expected a level test with a tolerance")
    ratio = measured.mean() / theory.mean()

    def interval(level: float) -> intervals.Interval:
        return tuple(edge - 1 for edge in intervals.ratio_of_means(measured, theory, level))

    return (Cell((measured - ratio * theory) / theory.mean() + ratio - 1, interval),)


def _levels(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    """The values as they are, of each result."""
    names = test.results or (test.a,)
    return tuple(
        Cell(row, lambda level, row=row: intervals.mean_level(row, level), name)
        for row, name in zip(columns, names, strict=True)
    )


def _ahead(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    """In which share of the seeds the first is the larger one."""
    larger = (columns[0] > columns[1]).astype(float)
    return (Cell(larger, lambda level: intervals.mean_level(larger, level)),)


def _steps(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    names, pairs = test.results, list(zip(columns, columns[1:], strict=False))
    return tuple(
        Cell(
            above - below,
            lambda level, a=above, b=below: intervals.paired_difference(a, b, level),
            f"{names[k]} to {names[k + 1]}",
        )
        for k, (below, above) in enumerate(pairs)
    )


# ---- Exact checks -----------------------------------------------------------------------------------------------------


def _rounding(test: Test, recorded: Recorded) -> Outcome:
    """The largest |violation| over seeds and instances is within a tolerance; what is not finite fails."""
    values = np.abs(recorded.over(test.a))
    worst = float(values.max()) if np.isfinite(values).all() else math.inf
    detail = f"{values.size} values" if values.ndim > 1 else ""
    unit = recorded.unit(test.a)
    return Outcome(worst <= test.tolerance, worst, (worst, worst), len(values), unit, detail)


def _violations(test: Test, recorded: Recorded) -> Outcome:
    """At most so many of many trials violate a bound: one more refutes it, whatever the interval of their share;
    PressError where these are no counts."""
    violations = recorded.over(test.a)
    if isinstance(test.b, str):
        own = recorded.over(test.b)
    else:
        own = np.full(len(violations), violations[0].size if test.b is None else test.b)
    found, trials = violations.sum(), own.sum()
    if not (np.isfinite([found, trials]).all() and 0 <= found <= trials and trials > 0):
        raise PressError(
            f"claim {recorded.claim_id}: {found:g} violations in {trials:g} trials; expected a count of them"
        )
    counts = violations.reshape(len(violations), -1).sum(axis=1)
    interval = _by_seed(intervals.clopper_pearson(int(found), int(trials)), counts[own > 0] / own[own > 0])
    detail = f"{int(found)} violations in {int(trials)} trials"
    holds, share = bool(found <= (test.allowed or 0)), float(found / trials)
    return Outcome(holds, share, interval, len(violations), "of trials", detail, int(trials))


def _by_seed(pooled: tuple[float, float], shares: np.ndarray) -> tuple[float, float]:
    """At least as wide as that of the seeds' own shares: the trials of one seed may go with each other, steps
    of one training say, so that those of all are no independent ones."""
    if len(shares) < 2:
        return pooled
    _, low, high = intervals.of_mean(shares)
    return max(0.0, min(pooled[0], low)), min(1.0, max(pooled[1], high))


# ---- What has to hold, in words ---------------------------------------------------------------------------------------


def _asks_difference(test: Test, shown: Effect) -> str:
    """ "more than 3 points higher with batch norm", of logarithms "more than 2 times as large"."""
    if base := BASES.get(shown.unit):
        return beyond(base**test.threshold, test, factor_words(test, shown), "times")
    (bound,) = in_points([test.threshold], shown.unit)
    return beyond(bound, test, directions(test, shown, "higher", ("higher", "lower")), shown.unit)


def _asks_level(test: Test, shown: Effect, bare: str = "mean") -> str:
    """ "more than 50 % of the steps", "2 times as large, within a factor of 1.2", "mean > 3"."""
    plain = "" if shown.unit or shown.more else f"{bare} "
    if plain or not test.side:
        sign = ">" if test.side == "greater" else "<"
        return plain + (f"{sign} {format_number(test.threshold)}" if test.side else near(test, shown))
    if base := BASES.get(shown.unit):
        return beyond(base**test.threshold, test, factor_words(test, shown), "times")
    bound = in_points([test.threshold], shown.unit)
    return level_beyond(*bound, test, shown.unit, (shown.more, shown.less))


def _asks_identity(test: Test, shown: Effect) -> str:
    """ "off by at most 10⁻¹⁰"."""
    (bound,) = in_points([test.tolerance or 0], shown.unit)
    most = f"at most {format_number(bound)}" if bound or not shown.more else "no"
    return put(most if shown.more else f"off by {most}", shown.unit, shown.more)


def _side(test: Test, shown: Effect) -> str:
    """ "larger without batch norm"."""
    return directions(test, shown, "larger", ("larger", "smaller"))[test.side == "less"]


# ---- The effect and its interval, in words ------------------------------------------------------------------------------


def _say_difference(outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
    """ "3.1 points higher with batch norm"."""
    unit = shown.unit or outcome.unit
    return directed(
        in_points(values, unit), unit, directions(outcome.test, shown, "higher", ("higher", "lower"))
    )


def _say_level(outcome: Outcome, shown: Effect, values: list[float], bare: str = "") -> Shown:
    """ "0.31", "slope 0.31", or "3.1 points higher" where the claim has words for more and less."""
    unit = shown.unit or outcome.unit
    values = in_points(values, unit)
    if shown.more:
        return directed(values, unit, (shown.more, shown.less))
    effect, low, high = rounded(values)
    return f"{'' if unit else bare} {effect} {unit}".strip(), f"{low} to {high}"


def _say_sign(outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
    """ "larger without batch norm in 14 of 20 seeds", with the interval of the share."""
    hits = f"{round(outcome.effect * outcome.n, 1):g}"
    return f"{_side(outcome.test, shown)} in {hits} of {outcome.n} seeds", percent(outcome.interval)


def _say_steps(outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
    """ "2.1 points up from γ = 0.1 to γ = 0.5"."""
    unit = shown.unit or outcome.unit
    first, second = outcome.detail.removeprefix("decided by ").split(" to ")
    effect, ends = directed(in_points(values, unit), unit, ("up", "down"))
    return f"{effect} from {arm_of(first)} to {arm_of(second)}", ends


def _say_identity(outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
    """ "off by at most 10⁻¹²"."""
    unit = shown.unit or outcome.unit
    (value,) = in_points([outcome.effect], unit)
    if shown.more:  # four digits, for 99.99 % are not all
        return put(format_number(value, ".4g"), unit, shown.more), ""
    return "exact" if value == 0 else f"off by at most {upwards(value)} {unit}".strip(), ""


def _say_violations(outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
    """ "0 of 4,000 trials break it", with the interval of the share."""
    hits = round(outcome.effect * outcome.trials)
    return f"{hits:,} of {outcome.trials:,} {shown.more or 'trials break it'}", percent(outcome.interval)


# ---- The kinds of test by their names, and what others ask of a test -----------------------------------------------

KINDS: dict[str, Kind] = {
    # a - b lies beyond a threshold
    "difference": Kind(_asks_difference, _say_difference, _differences),
    # a / b lies beyond a threshold; the interval is one of logarithms
    "ratio": Kind(
        lambda test, shown: beyond(test.threshold, test, factor_words(test, shown), "times"),
        lambda outcome, shown, values: factor(values, outcome.test, shown),
        _ratios,
        has_unit=False,
        one_mean=True,
        in_factors=True,
    ),
    # a - b lies within a margin
    "equivalence": Kind(margin, _say_difference, _differences),
    # each of several results lies above the one before it
    "ordering": Kind(lambda test, shown: "every step goes up", _say_steps, _steps, edge=0.0),
    # a lies on the claimed side of b in more than half of the seeds: for what spreads by powers of ten
    "sign": Kind(
        lambda test, shown: f"{_side(test, shown)} in more than half of the seeds",
        _say_sign,
        _ahead,
        edge=0.5,
    ),
    "identity": Kind(_asks_identity, _say_identity),
    "inequality": Kind(
        lambda test, _: f"at most {test.allowed} violations" if test.allowed else "no violation",
        _say_violations,
    ),
    # a slope lies beyond a threshold or near what is expected
    "rate": Kind(
        lambda test, shown: _asks_level(test, shown, "slope"),
        lambda outcome, shown, values: _say_level(outcome, shown, values, "slope"),
        _levels,
        one_mean=True,
    ),
    # the relative error of a theory b, a / b - 1 of their means, lies within a tolerance
    "agreement": Kind(
        lambda test, _: f"relative error within ± {format_number(100 * (test.tolerance or 0))} %",
        lambda outcome, _, values: directed([100 * value for value in values], "%", ("above", "below")),
        _relative_errors,
        has_unit=False,
        one_mean=True,
        by_theory=True,
    ),
    # a result, or each of several, lies beyond a threshold or near what is expected
    "level": Kind(_asks_level, _say_level, _levels, one_mean=True),
}


def kind_of(test: Test) -> Kind:
    return KINDS[test.kind]


def evaluate(
    test: Test, results: Mapping[str, np.ndarray], claim_id: str, shown: Effect | None = None
) -> Outcome:
    """Judge recorded results by one test.

    Raises PressError where a result is missing, has no single number per seed where one is needed, is paired
    with a result of other seeds, or where a ratio's values are negative.
    """
    outcome = kind_of(test).outcome(test, Recorded(results, claim_id))
    return replace(outcome, test=test, shown=shown)


def describe_test(test: Test, shown: Effect | None = None) -> str:
    """What has to hold, in the effect's unit and direction: "more than 3 points higher with batch norm"."""
    return spelled(kind_of(test).asks(test, shown or Effect()))


#: Beyond so many seeds nothing is sought.
MOST = 10_000


def can_hold(test: Test, seeds: int) -> bool:
    """Whether some outcome of so many seeds makes the test hold."""
    return kind_of(test).can_hold(test, seeds)


def least_seeds(test: Test) -> int:
    """The fewest seeds with which the test can hold; MOST where it takes more."""
    return next((seeds for seeds in range(1, MOST) if can_hold(test, seeds)), MOST)
