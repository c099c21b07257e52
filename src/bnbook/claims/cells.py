"""What a test compares: cells, each with one value per seed and an interval of their mean at any level."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bnbook import intervals
from bnbook.claims.claim import Test
from bnbook.errors import BnbookError

HAIR = 1e-9


@dataclass(frozen=True)
class Cell:
    """One comparison: values (S,), their interval at a level of confidence, a name if there are several."""

    values: np.ndarray
    interval: Callable[[float], intervals.Interval]
    name: str = ""
    in_logs: bool = False  # the interval is one of the logarithms
    resolution: float | None = None  # of the grid that the values come from

    def ends(self, level: float) -> intervals.Interval:
        """The interval, wider by the resolution: all seeds share one grid, whose error no seed shows.

        A bracket does not contain its own ends (one works, one does not): they are kept a hair inside.
        """
        effect, low, high = self.interval(level)
        if self.resolution is None:
            return effect, low, high
        if self.in_logs:
            width = self.resolution ** (1 - HAIR)
            return effect, low / width, high * width
        width = self.resolution * (1 - HAIR)
        return effect, low - width, high + width


def compared(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    """The cells of a test, from its results as rows (K, S) of finite numbers.

    Differences a - b, ratios a/b (the interval is one of their logarithms), relative errors of a theory, the
    steps of an ordering, values as they are. BnbookError for a ratio of negative values, for a theory of 0.
    """
    cells = {
        "difference": _difference,
        "equivalence": _difference,
        "ratio": _ratio,
        "agreement": _agreement,
        "ordering": _steps,
        "sign": _sign,
        "rate": _level,
        "level": _level,
    }[test.kind](test, columns, claim_id)
    return tuple(replace(cell, resolution=test.resolution) for cell in cells)


def _difference(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    a, b = columns
    return (Cell(a - b, lambda level: intervals.paired_difference(a, b, level)),)


def _ratio(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    a, b = columns
    if (columns < 0).any():
        raise BnbookError(f"claim {claim_id}: a ratio of negative values; expected positive ones")

    def interval(level: float) -> intervals.Interval:
        try:
            return intervals.geometric_ratio(a, b, level)
        except OverflowError:  # few seeds, one of them on the brink of divergence: wider than numbers reach
            return math.nan, -math.inf, math.inf

    return (Cell(a / b, interval, in_logs=True),)


def _agreement(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    """The relative error of theory, measured / theory - 1."""
    measured, theory = columns
    if theory.mean() == 0:
        raise BnbookError(f"claim {claim_id}: theory is zero; expected a level test with a tolerance")
    ratio = measured.mean() / theory.mean()

    def interval(level: float) -> intervals.Interval:
        return tuple(edge - 1 for edge in intervals.ratio_of_means(measured, theory, level))

    return (Cell((measured - ratio * theory) / theory.mean() + ratio - 1, interval),)


def _sign(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    """1 for a seed in which a lies on the claimed side of b: for what spreads by powers of ten."""
    a, b = columns if test.side == "greater" else columns[::-1]
    found = (a > b).astype(float)
    return (Cell(found, lambda level: intervals.mean_level(found, level)),)


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


def _level(test: Test, columns: np.ndarray, claim_id: str) -> tuple[Cell, ...]:
    names = test.results or (test.a,)
    return tuple(
        Cell(row, lambda level, row=row: intervals.mean_level(row, level), name)
        for row, name in zip(columns, names, strict=True)
    )
