"""The kinds of test: from recorded values per seed to an effect, its 95 % interval, and whether it holds.

A one-sided claim holds where the whole interval lies beyond the threshold and fails where none of it does; a
claim "within ±" holds where the whole interval lies inside and fails where it lies outside. All else is
undecided.

Seeds are paired: value s of every result comes from seed s. A seed without a finite value (a diverged run)
makes the test undecided, unless the test's `nonfinite` says what such a seed counts as (the accuracy or the
loss of guessing, fixed before the run). It is never dropped: the seeds that survive are not a fair sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bnbook import intervals
from bnbook.claims.claim import Effect, Test
from bnbook.claims.recorded import Recorded
from bnbook.errors import BnbookError


@dataclass(frozen=True)
class Outcome:
    """What one test found."""

    holds: bool | None  # None: undecided
    effect: float
    interval: tuple[float, float]
    n: int  # seeds
    unit: str = ""
    detail: str = ""
    trials: int = 0  # of a bound that was tried
    test: Test | None = None
    shown: Effect | None = None  # how readers see the effect; None: as its kind is usually seen


def evaluate(
    test: Test, results: Mapping[str, np.ndarray], claim_id: str, shown: Effect | None = None
) -> Outcome:
    """Judge recorded results by one test.

    Raises BnbookError where a result is missing, has no single number per seed where one is needed, is paired
    with a result of other seeds, or where a ratio's values are negative.
    """
    return replace(_evaluate(test, Recorded(results, claim_id), claim_id), test=test, shown=shown)


def _evaluate(test: Test, recorded: Recorded, claim_id: str) -> Outcome:
    if test.kind == "identity":
        return _identity(test, recorded)
    if test.kind == "inequality":
        return _inequality(test, recorded)
    names = test.results or ((test.a,) if test.b is None else (test.a, test.b))
    columns = recorded.paired(names, test.nonfinite, broadcast_last=test.kind == "agreement")
    unit = "" if test.kind in ("ratio", "agreement") else recorded.unit(names[0])
    n = columns.shape[1]
    lost = int((~np.isfinite(columns)).any(axis=0).sum())
    if lost:
        return _undecided(n, unit, f"{lost} of {n} seeds have no finite value")
    return _STATISTICAL[test.kind](test, columns, claim_id, unit)


def _beyond(low: float, high: float, side: str, threshold: float) -> bool | None:
    if side == "less":
        low, high, threshold = -high, -low, -threshold
    return True if low > threshold else False if high <= threshold else None


def _within(low: float, high: float, tolerance: float) -> bool | None:
    if -tolerance <= low and high <= tolerance:
        return True
    return False if low > tolerance or high < -tolerance else None


def _undecided(n: int, unit: str, detail: str) -> Outcome:
    return Outcome(None, math.nan, (-math.inf, math.inf), n, unit, detail)


def _difference(test: Test, columns: np.ndarray, claim_id: str, unit: str) -> Outcome:
    effect, low, high = intervals.paired_difference(*columns)
    return Outcome(_beyond(low, high, test.side, test.threshold), effect, (low, high), columns.shape[1], unit)


def _equivalence(test: Test, columns: np.ndarray, claim_id: str, unit: str) -> Outcome:
    """Two one-sided tests, by the 95 % interval that the scoreboard prints (so each at 2.5 %)."""
    effect, low, high = intervals.paired_difference(*columns)
    return Outcome(_within(low, high, test.margin), effect, (low, high), columns.shape[1], unit)


def _ratio(test: Test, columns: np.ndarray, claim_id: str, unit: str) -> Outcome:
    n = columns.shape[1]
    if (columns < 0).any():
        raise BnbookError(f"claim {claim_id}: a ratio of negative values; expected positive ones")
    if zeros := int((columns == 0).any(axis=0).sum()):
        return _undecided(n, unit, f"{zeros} of {n} seeds have a value of zero: no logarithm")
    try:
        effect, low, high = intervals.geometric_ratio(*columns)
    except OverflowError:  # few seeds, one of them on the brink of divergence
        return _undecided(n, unit, "the interval is wider than numbers reach")
    return Outcome(_beyond(low, high, test.side, test.threshold), effect, (low, high), n, unit)


def _agreement(test: Test, columns: np.ndarray, claim_id: str, unit: str) -> Outcome:
    measured, theory = columns
    if theory.mean() == 0:
        raise BnbookError(f"claim {claim_id}: theory is zero; expected a level test with a tolerance")
    ratio, low, high = intervals.ratio_of_means(measured, theory)
    return Outcome(
        _within(low - 1, high - 1, test.tolerance), ratio - 1, (low - 1, high - 1), len(measured), unit
    )


def _ordering(test: Test, columns: np.ndarray, claim_id: str, unit: str) -> Outcome:
    """Every adjacent step up, each with a Bonferroni-adjusted interval: together they miss in 5 % at most.

    Shown is the step that decides: the surest step down if there is one, else the least sure step up.
    """
    steps = len(columns) - 1
    level = 1 - (1 - intervals.LEVEL) / steps
    found = [intervals.paired_difference(columns[k + 1], columns[k], level) for k in range(steps)]
    judged = [_beyond(low, high, "greater", 0.0) for _, low, high in found]
    if False in judged:
        holds, shown = False, min(range(steps), key=lambda k: found[k][2])
    else:
        holds, shown = None if None in judged else True, min(range(steps), key=lambda k: found[k][1])
    effect, low, high = found[shown]
    detail = f"decided by {test.results[shown]} to {test.results[shown + 1]}"
    return Outcome(holds, effect, (low, high), columns.shape[1], unit, detail)


def _level(test: Test, columns: np.ndarray, claim_id: str, unit: str) -> Outcome:
    effect, low, high = intervals.mean_level(columns[0])
    if test.side:
        holds = _beyond(low, high, test.side, test.threshold)
    else:
        holds = _within(low - test.expected, high - test.expected, test.tolerance)
    return Outcome(holds, effect, (low, high), columns.shape[1], unit)


_STATISTICAL: dict[str, Callable[[Test, np.ndarray, str, str], Outcome]] = {
    "difference": _difference,
    "equivalence": _equivalence,
    "ratio": _ratio,
    "agreement": _agreement,
    "ordering": _ordering,
    "rate": _level,
    "level": _level,
}


def _identity(test: Test, recorded: Recorded) -> Outcome:
    """The largest |violation| over seeds and instances: no sampling error, so no interval; NaN fails."""
    values = np.abs(recorded.array(test.a))
    worst = float(values.max()) if np.isfinite(values).all() else math.inf
    detail = f"{values.size} values" if values.ndim > 1 else ""
    return Outcome(worst <= test.tolerance, worst, (worst, worst), len(values), recorded.unit(test.a), detail)


def _inequality(test: Test, recorded: Recorded) -> Outcome:
    """Share of trials that violate a bound: one more than allowed refutes it, whatever the interval."""
    violations = recorded.array(test.a)
    if isinstance(test.b, str):
        trials = recorded.array(test.b).sum()
    else:
        trials = violations.size if test.b is None else test.b * len(violations)
    found = violations.sum()
    if not (np.isfinite(violations).all() and 0 <= found <= trials and trials > 0):
        raise BnbookError(
            f"claim {recorded.claim_id}: {found:g} violations in {trials:g} trials; expected a count of them"
        )
    interval = intervals.clopper_pearson(int(found), int(trials))
    detail = f"{int(found)} violations in {int(trials)} trials"
    holds = bool(found <= (test.allowed or 0))
    share, unit = float(found / trials), "of trials"
    return Outcome(holds, share, interval, len(violations), unit, detail, int(trials))
