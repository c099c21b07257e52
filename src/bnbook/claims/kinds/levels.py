"""Kinds of test that judge one result, or several side by side."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bnbook import intervals
from bnbook.claims.cells import Cell
from bnbook.claims.claim import Effect, Test
from bnbook.claims.directions import (
    Shown,
    arm_of,
    beyond,
    directed,
    directions,
    factor_words,
    level_beyond,
    percent,
    rounded,
)
from bnbook.claims.kinds.sampled import Decision, Sampled, simultaneous, together
from bnbook.claims.outcome import Outcome
from bnbook.claims.recorded import Recorded
from bnbook.claims.units import BASES, in_points, near
from bnbook.claims.words import format_number
from bnbook.intervals import LEVEL


class Level(Sampled):
    """A result, or each of several, lies beyond a threshold or near what is expected."""

    name = "level"
    needs = (
        {"a", "side", "threshold"},
        {"a", "expected", "tolerance"},
        {"results", "side", "threshold"},
        {"results", "expected", "tolerance"},
    )
    may_have = Sampled.may_have | {"events", "cells"}
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
    needs = ({"a", "side", "threshold"}, {"a", "expected", "tolerance"})
    may_have = Sampled.may_have
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
    needs = ({"a", "b", "side"},)
    may_have = {"nonfinite"}

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
    needs = ({"results"},)
    may_have = {"nonfinite"}

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
