"""The kinds of test: from recorded values per seed to an effect, its 95 % interval, and whether it holds.

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
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from bnbook import intervals
from bnbook.claims.cells import Cell, compared
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
    cells: tuple[Cell, ...] = field(default=(), repr=False, compare=False)  # what was compared
    place: int = 0  # of the cell that is shown: the one that decides

    @property
    def values(self) -> np.ndarray:
        """What the interval is of, one value per seed (S,); empty for an exact check."""
        return self.cells[self.place].values if self.cells else np.empty(0)


def evaluate(
    test: Test, results: Mapping[str, np.ndarray], claim_id: str, shown: Effect | None = None
) -> Outcome:
    """Judge recorded results by one test.

    Raises BnbookError where a result is missing, has no single number per seed where one is needed, is paired
    with a result of other seeds, or where a ratio's values are negative.
    """
    recorded = Recorded(results, claim_id)
    exact = {"identity": _identity, "inequality": _inequality}.get(test.kind, _statistical)
    return replace(exact(test, recorded), test=test, shown=shown)


def decide(
    test: Test, cells: tuple[Cell, ...], level: float = intervals.LEVEL
) -> tuple[bool | None, int, intervals.Interval]:
    """Whether the test holds at a level of confidence, the place of the cell that decides, and its interval.

    With K cells a test fails by simultaneous intervals (Bonferroni), for the data pick the worst. It holds
    where every cell does by its own, which needs no correction: each of K errors would have to happen.
    """
    count = test.cells or len(cells)
    sure = [cell.ends(1 - (1 - level) / count) for cell in cells]
    if test.kind == "ordering":  # all steps by simultaneous intervals, also where they hold
        held = [_position(test, low, high) for _, low, high in sure]
        end = 2 if False in held else 1
        place = min(range(len(cells)), key=lambda k: sure[k][end])
        return False if False in held else None if None in held else True, place, sure[place]
    own = sure if count == 1 else [cell.ends(level) for cell in cells]
    held = [
        False if _position(test, *wide[1:]) is False else _position(test, *narrow[1:]) or None
        for wide, narrow in zip(sure, own, strict=True)
    ]
    rank = {False: 0, None: 1, True: 2}
    place = min(range(len(cells)), key=lambda k: (rank[held[k]], -_reach(test, *own[k][1:])))
    holds = False if False in held else None if None in held else True
    return holds, place, own[place] if holds else sure[place]


def _statistical(test: Test, recorded: Recorded) -> Outcome:
    names = test.results or ((test.a,) if test.b is None else (test.a, test.b))
    last = test.kind == "agreement"
    columns = recorded.paired(names, test.nonfinite, broadcast_last=last, events=bool(test.events))
    unit = "" if test.kind in ("ratio", "agreement") else recorded.unit(names[0])
    n = columns.shape[1]
    lost = int((~np.isfinite(columns)).any(axis=0).sum())
    if lost:
        return _undecided(n, unit, f"{lost} of {n} seeds have no finite value")
    if test.kind == "ratio" and (zeros := int((columns == 0).any(axis=0).sum())):
        return _undecided(n, unit, f"{zeros} of {n} seeds have a value of zero: no logarithm")
    cells = compared(test, columns, recorded.claim_id)
    holds, place, (effect, *ends) = decide(test, cells)
    if math.isnan(effect):
        return _undecided(n, unit, "the interval is wider than numbers reach")
    detail = f"decided by {cells[place].name}" if test.results else ""
    return Outcome(holds, effect, tuple(ends), n, unit, detail, cells=cells, place=place)


def edges(test: Test) -> tuple[float, float]:
    """Between which values a test holds: (threshold, ∞), (-∞, threshold) or within ± of a centre."""
    if test.kind == "sign":  # of its share of seeds
        return 0.5, math.inf
    if test.kind == "ordering" or test.side == "greater":
        return test.threshold or 0.0, math.inf
    if test.side == "less":
        return -math.inf, test.threshold
    margin, centre = test.tolerance if test.margin is None else test.margin, test.expected or 0.0
    return centre - margin, centre + margin


def _position(test: Test, low: float, high: float) -> bool | None:
    """Where an interval lies: beyond the threshold or within the margin, on the other side, or across."""
    if test.side or test.kind == "ordering":
        (threshold, top), less = edges(test), test.side == "less" and test.kind != "sign"
        if less:
            return True if high < top else False if low >= top else None
        return True if low > threshold else False if high <= threshold else None
    least, most = edges(test)
    if least <= low and high <= most:
        return True
    return False if low > most or high < least else None


def _reach(test: Test, low: float, high: float) -> float:
    """How far an interval reaches to the wrong side: the worst cell reaches furthest."""
    least, most = edges(test)
    return max(high - most, least - low)


def _undecided(n: int, unit: str, detail: str) -> Outcome:
    return Outcome(None, math.nan, (-math.inf, math.inf), n, unit, detail)


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
