"""Units of effects, and bounds said in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bnbook.claims.claim import Effect, Test
from bnbook.claims.words import format_number

#: Units of logarithms, shown as the factors that they stand for, and of shares.
BASES = {"log": math.e, "log10": 10.0}
SHARES = ("points", "%")


def target(test: Test, shown: Effect) -> str:
    """Where the effect has to lie: "> 3 points", "within 0.5 ± 0.1", of logarithms "within a factor of 2"."""
    if test.side:
        return f"{'<' if test.side == 'less' else '>'} {in_unit(test.threshold or 0, shown)}"
    tolerance = in_unit(test.tolerance or 0, shown)
    if shown.unit in SHARES:
        points = format_number(100 * (test.tolerance or 0))
        return f"within {in_unit(test.expected or 0, shown)} ± {points} points"
    if shown.unit in BASES:
        about = f" of {in_unit(test.expected, shown)}" if test.expected else ""
        return f"within a factor of {tolerance}{about}"
    return f"within {format_number(test.expected or 0)} ± {tolerance}"


def in_unit(value: float, shown: Effect) -> str:
    """A bound in the unit of the effect: the factor that a logarithm stands for, a share in points."""
    if shown.unit in BASES:
        return format_number(BASES[shown.unit] ** value)
    if shown.unit in SHARES:
        return f"{format_number(100 * value)} {shown.unit}"
    return format_number(value)


def in_points(values: Sequence[float], unit: str) -> list[float]:
    """Shares that are shown in points or per cent, times 100."""
    return [100 * value for value in values] if unit in SHARES else list(values)
