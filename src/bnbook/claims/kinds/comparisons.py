"""Kinds of test that compare two results, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist

import numpy as np

from bnbook import intervals
from bnbook.claims.cells import Cell
from bnbook.claims.claim import Effect, Test
from bnbook.claims.directions import Shown, beyond, directed, directions, factor, factor_words
from bnbook.claims.kinds.sampled import Sampled
from bnbook.claims.outcome import Outcome
from bnbook.claims.recorded import geometric_mean
from bnbook.claims.units import BASES, in_points, margin
from bnbook.claims.words import format_number
from bnbook.errors import BnbookError
from bnbook.intervals import LEVEL


class Difference(Sampled):
    """a - b lies beyond a threshold."""

    name = "difference"
    needs = ({"a", "b", "side", "threshold"},)
    may_have = Sampled.may_have | {"events"}

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
    needs = ({"a", "b", "margin"},)

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
    needs = ({"a", "b", "side", "threshold"},)
    one_mean = in_factors = True
    has_unit = False
    together = staticmethod(geometric_mean)

    def unusable(self, columns: np.ndarray) -> str:
        """Nor has a seed with a value of zero a logarithm."""
        zeros = int((columns == 0).any(axis=0).sum())
        none = f"{zeros} of {columns.shape[1]} seeds have a value of zero: no logarithm"
        return super().unusable(columns) or (none if zeros else "")

    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """a / b; BnbookError for negative values."""
        a, b = columns
        if (columns < 0).any():
            raise BnbookError(f"claim {claim_id}: a ratio of negative values; expected positive ones")

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
    needs = ({"a", "b", "tolerance"},)
    one_mean = by_theory = True
    has_unit = False

    def compare(self, test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
        """measured / theory - 1; BnbookError for a theory of zero."""
        measured, theory = columns
        if theory.mean() == 0:
            raise BnbookError(f"claim {claim_id}: theory is zero; expected a level test with a tolerance")
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
