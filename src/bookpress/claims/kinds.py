"""The kinds of test, a class each: the keys that a claims file gives it, how it judges, and its words.

`known` has them by name and what others ask of a test; `kind` what every kind has, `sampled` what those have
that judge by an interval over the seeds: `comparisons` of two results, `levels` of one or several; `exact`
are those without sampling error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from bookpress import intervals
from bookpress.claims.claim import Cell, Effect, Outcome, Test
from bookpress.claims.recorded import Recorded, geometric_mean, mean
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

# ---- What every kind of test has -----------------------------------------------------------------------------------


class Kind(ABC):
    """One kind of test."""

    name: str
    exact = False  # without sampling error: rounding, or a count
    one_mean = False  # judged by Student's interval of one mean
    in_factors = False  # the effect is a factor, its interval one of logarithms

    @abstractmethod
    def columns(self, test: Test, recorded: Recorded) -> np.ndarray:
        """The results that the test compares, as rows (K, S) of the same seeds."""

    @abstractmethod
    def outcome(self, test: Test, recorded: Recorded) -> Outcome:
        """What the test finds in recorded results."""

    @abstractmethod
    def asks(self, test: Test, shown: Effect) -> str:
        """What has to hold, in words and in the effect's unit."""

    @abstractmethod
    def effect(self, outcome: Outcome, shown: Effect) -> Shown:
        """The effect and its interval in words."""

    def edges(self, test: Test) -> tuple[float, float]:
        """Between which values a test holds: (threshold, ∞), (-∞, threshold) or within ± of a centre."""
        if test.side == "greater":
            return test.threshold or 0.0, math.inf
        if test.side == "less":
            return -math.inf, test.threshold
        margin, centre = test.tolerance if test.margin is None else test.margin, test.expected or 0.0
        return centre - margin, centre + margin

    def scaled(self, test: Test, factor: float, shown: Effect | None = None) -> Test:
        """The test with its margin `factor` times as wide; as it is, where none was chosen."""
        return test

    def can_hold(self, test: Test, seeds: int) -> bool:
        """Whether some outcome of so many seeds makes the test hold."""
        return True


# ---- Kinds that judge by a 95 % interval over the seeds ------------------------------------------------------------
# A one-sided claim holds where the whole interval lies beyond the threshold and fails where none of it does; a
# claim "within ±" holds where the whole interval lies inside and fails where it lies outside. All else is
# undecided. A claim about several cells (the steps of an ordering, the worst of many layers) holds where each
# of them does and fails where one fails, by simultaneous intervals: each at 1 - 5 % / their number.
#
# Seeds are paired: value s of every result comes from seed s. A seed without a finite value (a diverged run)
# makes the test undecided, unless the test's `nonfinite` says what such a seed counts as (the accuracy or the
# loss of guessing, fixed before the run). It is never dropped: the seeds that survive are not a fair sample.

Decision = tuple[bool | None, int, intervals.Interval]


class Sampled(Kind):
    """A kind that judges by an interval over the seeds."""

    has_unit = True  # the effect has that of the first result
    together = staticmethod(mean)  # of the draws of one seed, rows (D, K)
    by_theory = False  # the last result is a theory's: one value may stand for every seed

    @abstractmethod
    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """The cells of a test, from its results as rows (K, S) of finite numbers."""

    @abstractmethod
    def words(self, outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
        """The effect and its interval in words; values: effect, ends of the interval, edges."""

    def cells(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """The same, each with the resolution of the grid that its values come from."""
        compared = self.compare(test, columns, claim_id)
        return tuple(replace(cell, resolution=test.resolution) for cell in compared)

    def of_run(self, rows: np.ndarray) -> np.ndarray:
        """What of one run's results (K, S) is averaged over draws."""
        return rows

    def columns(self, test: Test, recorded: Recorded) -> np.ndarray:
        """One number per seed of each result; of a seed that counts as `nonfinite`, that."""
        asked = (_names(test), test.nonfinite, self.by_theory, bool(test.events))
        return recorded.paired(*asked, self.of_run, self.together)

    def outcome(self, test: Test, recorded: Recorded) -> Outcome:
        """Undecided where a seed has no finite value."""
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
        lost = int((~np.isfinite(columns)).any(axis=0).sum())
        return f"{lost} of {columns.shape[1]} seeds have no finite value" if lost else ""

    def decide(self, test: Test, cells: tuple[Cell, ...], level: float = intervals.LEVEL) -> Decision:
        """Whether the test holds at a level of confidence, the place of the cell that decides, its interval.

        With K cells a test fails by simultaneous intervals (Bonferroni), for the data pick the worst. It
        holds where every cell does by its own, which needs no correction: each of K errors would have to
        happen.
        """
        sure = simultaneous(test, cells, level)
        own = sure if len(cells) == 1 and not test.cells else [cell.ends(level) for cell in cells]
        held = [
            False if self.position(test, *wide[1:]) is False else self.position(test, *narrow[1:]) or None
            for wide, narrow in zip(sure, own, strict=True)
        ]
        rank = {False: 0, None: 1, True: 2}
        place = min(range(len(cells)), key=lambda k: (rank[held[k]], -self._reach(test, *own[k][1:])))
        holds = together(held)
        return holds, place, own[place] if holds else sure[place]

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

    def _reach(self, test: Test, low: float, high: float) -> float:
        """How far an interval reaches to the wrong side: the worst cell reaches furthest."""
        least, most = self.edges(test)
        return max(high - most, least - low)

    def effect(self, outcome: Outcome, shown: Effect) -> Shown:
        """A logarithm is shown as the factor that it stands for."""
        values = [outcome.effect, *outcome.interval, *self.edges(outcome.test)]
        if base := BASES.get(shown.unit):
            return factor([power(base, value) for value in values], outcome.test, shown)
        return self.words(outcome, shown, values)

    def scaled(self, test: Test, factor: float, shown: Effect | None = None) -> Test:
        """With its margin, tolerance or threshold `factor` times as far from no effect at all.

        No effect is a difference or a level of 0 and a ratio of 1, by which also what is shown as "times …"
        is meant; "most" stays.
        """
        if test.margin is not None:
            return replace(test, margin=factor * test.margin)
        if test.tolerance is not None:
            return replace(test, tolerance=factor * test.tolerance)
        threshold, unit = test.threshold or 0.0, shown.unit if shown else ""
        if self.in_factors or unit.startswith("times") or shown and (shown.more or "").startswith("times"):
            return replace(test, threshold=threshold**factor)
        return test if unit == "%" and threshold == 0.5 else replace(test, threshold=factor * threshold)

    def can_hold(self, test: Test, seeds: int) -> bool:
        """Student's interval can be as narrow as one likes from two seeds on. One for events of seeds cannot:
        with S hits of S it still reaches down to 0.025^(1/S) (Clopper and Pearson)."""
        if seeds < 2 or not test.events:
            return seeds >= 2
        return any(self.decide(test, self.cells(test, rows, ""))[0] for rows in self.best(test, seeds))

    def best(self, test: Test, seeds: int) -> Iterable[np.ndarray]:
        """What events of so many seeds may give at best: any number of hits, in every result alike."""
        rows = len(test.results or "1")
        return (np.tile(np.arange(seeds) < hits, (rows, 1)).astype(float) for hits in range(seeds + 1))


def simultaneous(test: Test, cells: Sequence[Cell], level: float) -> list[intervals.Interval]:
    """The cells' intervals that all contain their means with this confidence (Bonferroni)."""
    return [cell.ends(1 - (1 - level) / max(test.cells or 1, len(cells))) for cell in cells]


def together(held: Sequence[bool | None]) -> bool | None:
    """Kleene's "and" of what cells gave."""
    return False if False in held else None if None in held else True


def _names(test: Test) -> tuple[str | float, ...]:
    return test.results or ((test.a,) if test.b is None else (test.a, test.b))


def _undecided(n: int, unit: str, detail: str) -> Outcome:
    return Outcome(None, math.nan, (-math.inf, math.inf), n, unit, detail)


# ---- Kinds of test that compare two results, seed by seed ----------------------------------------------------------


class Difference(Sampled):
    """a - b lies beyond a threshold."""

    name = "difference"

    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """a - b."""
        a, b = columns
        return (Cell(a - b, lambda level: intervals.paired_difference(a, b, level)),)

    def can_hold(self, test: Test, seeds: int) -> bool:
        """Of two shares, S hits against none: by Bonett and Price's lower end."""
        if seeds < 2 or not test.events:
            return seeds >= 2
        share = (seeds + 1) / (seeds + 2)
        middle = share - 1 / (seeds + 2)
        spread = share + 1 / (seeds + 2) - middle**2
        half = NormalDist().inv_cdf((1 + LEVEL) / 2) * (spread / (seeds + 2)) ** 0.5
        return middle - half > (test.threshold if test.side == "greater" else -test.threshold)

    def asks(self, test: Test, shown: Effect) -> str:
        """ "more than 3 points higher with batch norm", of logarithms "more than 2 times as large"."""
        if base := BASES.get(shown.unit):
            return beyond(base**test.threshold, test, factor_words(test, shown), "times")
        (bound,) = in_points([test.threshold], shown.unit)
        return beyond(bound, test, directions(test, shown, "higher", ("higher", "lower")), shown.unit)

    def words(self, outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
        """ "3.1 points higher with batch norm"."""
        unit = shown.unit or outcome.unit
        more, less = directions(outcome.test, shown, "higher", ("higher", "lower"))
        return directed(in_points(values, unit), unit, (more, less))


class Equivalence(Difference):
    """a - b lies within a margin."""

    name = "equivalence"

    def can_hold(self, test: Test, seeds: int) -> bool:
        """Of two shares, the two alike in every seed."""
        return Sampled.can_hold(self, test, seeds)

    def best(self, test: Test, seeds: int) -> Iterable[np.ndarray]:
        """Two arms that agree in every seed."""
        return [np.zeros((2, seeds))]

    def asks(self, test: Test, shown: Effect) -> str:
        """ "difference within ± 0.05", of logarithms "within a factor of 1.1"."""
        return margin(test, shown)


class Ratio(Sampled):
    """a / b lies beyond a threshold; the interval is one of logarithms."""

    name = "ratio"
    one_mean = in_factors = True
    has_unit = False
    together = staticmethod(geometric_mean)

    def unusable(self, columns: np.ndarray) -> str:
        """Nor has a seed with a value of zero a logarithm."""
        zeros = int((columns == 0).any(axis=0).sum())
        none = f"{zeros} of {columns.shape[1]} seeds have a value of zero: no logarithm"
        return super().unusable(columns) or (none if zeros else "")

    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
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

    def asks(self, test: Test, shown: Effect) -> str:
        """ "more than 2 times as large without batch norm"."""
        return beyond(test.threshold, test, factor_words(test, shown), "times")

    def words(self, outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
        """ "4.5 times as large without batch norm"."""
        return factor(values, outcome.test, shown)


class Agreement(Sampled):
    """The relative error of a theory b, a / b - 1 of their means, lies within a tolerance."""

    name = "agreement"
    one_mean = by_theory = True
    has_unit = False

    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """measured / theory - 1; PressError for a theory of zero."""
        measured, theory = columns
        if theory.mean() == 0:
            raise PressError(f"claim {claim_id}: theory is zero; expected a level test with a tolerance")
        ratio = measured.mean() / theory.mean()

        def interval(level: float) -> intervals.Interval:
            return tuple(edge - 1 for edge in intervals.ratio_of_means(measured, theory, level))

        return (Cell((measured - ratio * theory) / theory.mean() + ratio - 1, interval),)

    def asks(self, test: Test, shown: Effect) -> str:
        """ "relative error within ± 5 %"."""
        return f"relative error within ± {format_number(100 * (test.tolerance or 0))} %"

    def words(self, outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
        """ "1.3 % above"."""
        return directed([100 * value for value in values], "%", ("above", "below"))


# ---- Kinds of test that judge one result, or several side by side --------------------------------------------------


class Level(Sampled):
    """A result, or each of several, lies beyond a threshold or near what is expected."""

    name = "level"
    one_mean = True
    bare = "mean"  # what has to hold, where it has no unit

    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """The values as they are."""
        names = test.results or (test.a,)
        return tuple(
            Cell(row, lambda level, row=row: intervals.mean_level(row, level), name)
            for row, name in zip(columns, names, strict=True)
        )

    def can_hold(self, test: Test, seeds: int) -> bool:
        """Of a share with a side: by the exact interval of S hits of S."""
        if seeds < 2 or not (test.events and test.side):
            return super().can_hold(test, seeds)
        least = _least_share(seeds)
        return least > test.threshold if test.side == "greater" else 1 - least < test.threshold

    def scaled(self, test: Test, factor: float, shown: Effect | None = None) -> Test:
        """Above one half a share is near to all, so that "nine in ten" becomes 0.95 and 0.8."""
        one_sided = test.tolerance is None and not (shown and shown.unit.startswith("times"))
        if one_sided and 0.5 < (test.threshold or 0.0) < 1:
            return replace(test, threshold=1 - factor * (1 - test.threshold))
        return super().scaled(test, factor, shown)

    def asks(self, test: Test, shown: Effect) -> str:
        """ "more than 50 % of the steps", "2 times as large, within a factor of 1.2", "mean > 3"."""
        plain = "" if shown.unit or shown.more else f"{self.bare} "
        if plain or not test.side:
            sign = ">" if test.side == "greater" else "<"
            return plain + (f"{sign} {format_number(test.threshold)}" if test.side else near(test, shown))
        if base := BASES.get(shown.unit):
            return beyond(base**test.threshold, test, factor_words(test, shown), "times")
        bound = in_points([test.threshold], shown.unit)
        return level_beyond(*bound, test, shown.unit, (shown.more, shown.less))

    def words(self, outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
        """ "0.31", or "3.1 points higher" where the claim has words for more and less."""
        unit = shown.unit or outcome.unit
        values = in_points(values, unit)
        if shown.more:
            return directed(values, unit, (shown.more, shown.less))
        effect, low, high = rounded(values)
        return f"{effect} {unit}".strip(), f"{low} to {high}"


class Rate(Level):
    """A slope."""

    name = "rate"
    bare = "slope"

    def scaled(self, test: Test, factor: float, shown: Effect | None = None) -> Test:
        """A slope above one half is no share."""
        return Sampled.scaled(self, test, factor, shown)

    def words(self, outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
        """ "slope 0.98" where it has no unit."""
        effect, ends = super().words(outcome, shown, values)
        bare = not (shown.more or shown.unit or outcome.unit)
        return f"slope {effect}" if bare else effect, ends


class Sign(Sampled):
    """a lies on the claimed side of b in more than half of the seeds: for what spreads by powers of ten."""

    name = "sign"

    def of_run(self, rows: np.ndarray) -> np.ndarray:
        """1 for a seed in which a result (2, S) is the larger one, in none of them where they are the same."""
        return np.where(np.isfinite(rows).all(axis=0), rows > rows[::-1], math.nan)

    def columns(self, test: Test, recorded: Recorded) -> np.ndarray:
        """First whether what is claimed to be the larger one is."""
        found = super().columns(test, recorded)
        return found[::-1] if test.side == "less" else found

    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """In which share of a seed's draws the first is the larger one."""
        return (Cell(columns[0], lambda level: intervals.mean_level(columns[0], level)),)

    def edges(self, test: Test) -> tuple[float, float]:
        """Of its share of seeds."""
        return 0.5, math.inf

    def scaled(self, test: Test, factor: float, shown: Effect | None = None) -> Test:
        """Half of the seeds is no margin that was chosen."""
        return test

    def can_hold(self, test: Test, seeds: int) -> bool:
        """By the exact interval of S hits of S."""
        return _least_share(seeds) > 0.5

    def asks(self, test: Test, shown: Effect) -> str:
        """ "larger without batch norm in more than half of the seeds"."""
        return f"{self._side(test, shown)} in more than half of the seeds"

    def words(self, outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
        """ "larger without batch norm in 14 of 20 seeds", with the interval of the share."""
        hits = f"{round(outcome.effect * outcome.n, 1):g}"
        found = f"{self._side(outcome.test, shown)} in {hits} of {outcome.n} seeds"
        return found, percent(outcome.interval)

    def _side(self, test: Test, shown: Effect) -> str:
        return directions(test, shown, "larger", ("larger", "smaller"))[test.side == "less"]


class Ordering(Sampled):
    """Each of several results lies above the one before it."""

    name = "ordering"

    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """The steps up."""
        names, pairs = test.results, list(zip(columns, columns[1:], strict=False))
        return tuple(
            Cell(
                above - below,
                lambda level, a=above, b=below: intervals.paired_difference(a, b, level),
                f"{names[k]} to {names[k + 1]}",
            )
            for k, (below, above) in enumerate(pairs)
        )

    def edges(self, test: Test) -> tuple[float, float]:
        """Of a step up."""
        return test.threshold or 0.0, math.inf

    def decide(self, test: Test, cells: tuple[Cell, ...], level: float = LEVEL) -> Decision:
        """All steps by simultaneous intervals, also where they hold."""
        sure = simultaneous(test, cells, level)
        held = [self.position(test, low, high) for _, low, high in sure]
        end = 2 if False in held else 1
        place = min(range(len(cells)), key=lambda k: sure[k][end])
        return together(held), place, sure[place]

    def scaled(self, test: Test, factor: float, shown: Effect | None = None) -> Test:
        """Up is no margin that was chosen."""
        return test

    def asks(self, test: Test, shown: Effect) -> str:
        """ "every step goes up"."""
        return "every step goes up"

    def words(self, outcome: Outcome, shown: Effect, values: list[float]) -> Shown:
        """ "2.1 points up from γ = 0.1 to γ = 0.5"."""
        unit = shown.unit or outcome.unit
        first, second = outcome.detail.removeprefix("decided by ").split(" to ")
        effect, ends = directed(in_points(values, unit), unit, ("up", "down"))
        return f"{effect} from {arm_of(first)} to {arm_of(second)}", ends


def _least_share(seeds: int) -> float:
    """The lower end of the exact interval where every seed hits."""
    return ((1 - LEVEL) / 2) ** (1 / seeds)


# ---- Kinds of test without sampling error: the rounding of an identity, the violations of a bound ------------------


class Identity(Kind):
    """The largest |violation| over seeds and instances is within a tolerance; no interval."""

    name = "identity"
    exact = True

    def columns(self, test: Test, recorded: Recorded) -> np.ndarray:
        """The largest |violation| of each seed."""
        values = np.abs(recorded.worst(test.a))
        return values.reshape(1, len(values), -1).max(axis=2)

    def outcome(self, test: Test, recorded: Recorded) -> Outcome:
        """What is not finite fails."""
        values = np.abs(recorded.worst(test.a))
        worst = float(values.max()) if np.isfinite(values).all() else math.inf
        detail = f"{values.size} values" if values.ndim > 1 else ""
        unit = recorded.unit(test.a)
        return Outcome(worst <= test.tolerance, worst, (worst, worst), len(values), unit, detail)

    def asks(self, test: Test, shown: Effect) -> str:
        """ "off by at most 10⁻¹⁰"."""
        (bound,) = in_points([test.tolerance or 0], shown.unit)
        most = f"at most {format_number(bound)}" if bound or not shown.more else "no"
        return put(most if shown.more else f"off by {most}", shown.unit, shown.more)

    def effect(self, outcome: Outcome, shown: Effect) -> Shown:
        """ "off by at most 10⁻¹²"."""
        unit = shown.unit or outcome.unit
        (value,) = in_points([outcome.effect], unit)
        if shown.more:  # four digits, for 99.99 % are not all
            return put(format_number(value, ".4g"), unit, shown.more), ""
        return "exact" if value == 0 else f"off by at most {upwards(value)} {unit}".strip(), ""


class Inequality(Kind):
    """At most so many of many trials violate a bound: one more refutes it, whatever the interval."""

    name = "inequality"
    exact = True

    def columns(self, test: Test, recorded: Recorded) -> np.ndarray:
        """How many violations each seed has."""
        values = np.abs(recorded.worst(test.a))
        return values.reshape(1, len(values), -1).sum(axis=2)

    def outcome(self, test: Test, recorded: Recorded) -> Outcome:
        """The share of trials that violate it; PressError where these are no counts."""
        violations = recorded.worst(test.a)
        if isinstance(test.b, str):
            own = recorded.worst(test.b)
        else:
            own = np.full(len(violations), violations[0].size if test.b is None else test.b)
        found, trials = violations.sum(), own.sum()
        if not (np.isfinite([found, trials]).all() and 0 <= found <= trials and trials > 0):
            raise PressError(
                f"claim {recorded.claim_id}: {found:g} violations in {trials:g} trials; expected a count of "
                "them"
            )
        counts = violations.reshape(len(violations), -1).sum(axis=1)
        interval = _by_seed(
            intervals.clopper_pearson(int(found), int(trials)), counts[own > 0] / own[own > 0]
        )
        detail = f"{int(found)} violations in {int(trials)} trials"
        holds = bool(found <= (test.allowed or 0))
        share, unit = float(found / trials), "of trials"
        return Outcome(holds, share, interval, len(violations), unit, detail, int(trials))

    def asks(self, test: Test, shown: Effect) -> str:
        """ "no violation"."""
        return f"at most {test.allowed} violations" if test.allowed else "no violation"

    def effect(self, outcome: Outcome, shown: Effect) -> Shown:
        """ "0 of 4,000 trials break it", with the interval of the share."""
        hits = round(outcome.effect * outcome.trials)
        broken = shown.more or "trials break it"
        return f"{hits:,} of {outcome.trials:,} {broken}", percent(outcome.interval)


def _by_seed(pooled: tuple[float, float], shares: np.ndarray) -> tuple[float, float]:
    """At least as wide as that of the seeds' own shares: the trials of one seed may go with each other, steps
    of one training say, so that those of all are no independent ones."""
    if len(shares) < 2:
        return pooled
    _, low, high = intervals.of_mean(shares)
    return max(0.0, min(pooled[0], low)), min(1.0, max(pooled[1], high))


# ---- The kinds of test by their names, and what others ask of a test -----------------------------------------------

_ALL = (Difference, Ratio, Equivalence, Ordering, Sign, Identity, Inequality, Rate, Agreement, Level)
KINDS: dict[str, Kind] = {kind.name: kind() for kind in _ALL}


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
