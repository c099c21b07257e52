"""What every kind of test has."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from bnbook.claims.claim import Effect, Test
from bnbook.claims.directions import Shown
from bnbook.claims.outcome import Outcome
from bnbook.claims.recorded import Recorded


class Kind(ABC):
    """One kind of test."""

    name: str
    needs: tuple[set[str], ...]  # sets of keys of which a test has one
    may_have: set[str] = set()  # keys besides
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
