"""What a test asks for, in words and in the unit of the effect."""

from __future__ import annotations

import math

from bnbook.claims.claim import Effect, Test
from bnbook.claims.words import format_number

#: Units of logarithms, shown as the factors that they stand for, and of shares.
BASES = {"log": math.e, "log10": 10.0}
SHARES = ("points", "%")


def describe_test(test: Test, shown: Effect | None = None) -> str:
    """What has to hold, in the effect's unit: "mean difference > 3 points"."""
    shown = shown or Effect()
    threshold, tolerance = _in_unit(test.threshold or 0, shown), _in_unit(test.tolerance or 0, shown)
    near = f"within {format_number(test.expected or 0)} ± {tolerance}"
    if shown.unit in SHARES:
        points = format_number(100 * (test.tolerance or 0))
        near = f"within {_in_unit(test.expected or 0, shown)} ± {points} points"
    if shown.unit in BASES:
        about = f" of {_in_unit(test.expected, shown)}" if test.expected else ""
        near = f"within a factor of {tolerance}{about}"
    sign = "<" if test.side == "less" else ">"
    target = f"{sign} {threshold}" if test.side else near
    what = "factor" if shown.unit in BASES else "mean"
    margin = _in_unit(test.margin or 0, shown)
    return {
        "difference": f"{'factor' if shown.unit in BASES else 'mean difference'} {target}",
        "ratio": f"mean ratio {sign} {format_number(test.threshold or 0)}",
        "equivalence": f"within a factor of {margin}"
        if shown.unit in BASES
        else f"mean difference within ± {margin}",
        "ordering": "every step up > 0",
        "sign": "more than half of the seeds",
        "identity": f"largest violation ≤ {format_number(test.tolerance or 0)}",
        "inequality": f"at most {test.allowed} violations" if test.allowed else "no violation",
        "rate": f"{'slope' if not shown.unit else 'mean'} {target}",
        "agreement": f"relative error within ± {format_number(100 * (test.tolerance or 0))} %",
        "level": f"{what} {target}" if test.side or shown.unit not in BASES else target,
    }[test.kind]


def _in_unit(value: float, shown: Effect) -> str:
    """A bound in the unit of the effect: the factor that a logarithm stands for, a share in points."""
    if shown.unit in BASES:
        return format_number(BASES[shown.unit] ** value)
    if shown.unit in SHARES:
        return f"{format_number(100 * value)} {shown.unit}"
    return format_number(value)
