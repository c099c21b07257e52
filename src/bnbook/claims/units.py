"""Units of effects, and bounds said in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bnbook.claims.claim import Effect, Test
from bnbook.claims.directions import PLACE, put
from bnbook.claims.words import BOUND, format_number

#: Units of logarithms, shown as the factors that they stand for, and of shares.
BASES = {"log": math.e, "log10": 10.0}
SHARES = ("points", "%")


def near(test: Test, shown: Effect) -> str:
    """Where the effect has to lie: "within 0.5 ± 0.1", of logarithms "within a factor of 2"."""
    expected, tolerance = test.expected or 0.0, test.tolerance or 0.0
    if shown.unit in SHARES:
        about = put(in_unit(expected, shown), "", f"of {PLACE} {shown.more}".strip()) if expected else ""
        return f"within {'' if about else '± '}{_points(tolerance)} {about}".strip()
    if shown.unit in BASES:
        factor = f"within a factor of {in_unit(tolerance, shown)}"
        return f"{in_unit(expected, shown)} times {shown.more}, {factor}" if expected else factor
    number = f"{format_number(expected)} ± {format_number(tolerance, BOUND)}"
    return put(number if PLACE in shown.more else f"within {number}", shown.unit, shown.more)


def margin(test: Test, shown: Effect) -> str:
    """How far from no effect at all it may lie: "within ± 0.05", of logarithms "within a factor of 1.1"."""
    if shown.unit in BASES:
        return f"within a factor of {in_unit(test.margin or 0, shown)}"
    size = _points(test.margin or 0) if shown.unit in SHARES else in_unit(test.margin or 0, shown)
    return f"difference within ± {size}"


def in_unit(value: float, shown: Effect) -> str:
    """A bound in the unit of the effect: the factor that a logarithm stands for, a share in points."""
    if shown.unit in BASES:
        return format_number(BASES[shown.unit] ** value, BOUND)
    if shown.unit in SHARES:
        return f"{format_number(100 * value)} {shown.unit}"
    return format_number(value)


def _points(share: float) -> str:
    points = format_number(100 * share)
    return f"{points} point{'s' * (points != '1')}"


def in_points(values: Sequence[float], unit: str) -> list[float]:
    """Shares that are shown in points or per cent, times 100."""
    return [100 * value for value in values] if unit in SHARES else list(values)
