"""Kinds that judge by a 95 % interval over the seeds.

A one-sided claim holds where the whole interval lies beyond the threshold and fails where none of it does; a
claim "within ±" holds where the whole interval lies inside and fails where it lies outside. All else is
undecided. A claim about several cells (the steps of an ordering, the worst of many layers) holds where each
of them does and fails where one fails, by simultaneous intervals: each at 1 - 5 % / their number.

Seeds are paired: value s of every result comes from seed s. A seed without a finite value (a diverged run)
makes the test undecided, unless the test's `nonfinite` says what such a seed counts as (the accuracy or the
loss of guessing, fixed before the run). It is never dropped: the seeds that survive are not a fair sample.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from bnbook import intervals
from bnbook.claims.cells import Cell
from bnbook.claims.claim import Effect, Test
from bnbook.claims.directions import Shown, factor, power
from bnbook.claims.kinds.kind import Kind
from bnbook.claims.outcome import Outcome
from bnbook.claims.recorded import Recorded, mean
from bnbook.claims.units import BASES

Decision = tuple[bool | None, int, intervals.Interval]


class Sampled(Kind):
    """A kind that judges by an interval over the seeds."""

    may_have = {"nonfinite", "resolution"}
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
