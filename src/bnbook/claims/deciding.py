"""How many seeds would decide an open claim, if mean and spread stay as they were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from bnbook import intervals
from bnbook.claims.cells import Cell
from bnbook.claims.kinds.known import decide
from bnbook.claims.outcome import Outcome

#: The chance that so many seeds decide, if mean and spread are those that were measured.
POWER = 0.8
#: More seeds than anybody will train: the estimate lies too near to the edge for its spread.
TOO_MANY = 500


def seeds_needed(outcome: Outcome) -> float:
    """The least n at which a test decides with a chance of 80 %, if mean and spread stay; inf: beyond reach.

    The estimate must then lie (t₀.₉₇₅ + t₀.₈) s / √n inside the edge, the half-width of the interval and room
    for the mean of the new seeds to scatter; a share's exact interval is taken at that quantile of its count.
    """
    if outcome.holds is not None:
        return outcome.n
    if not outcome.cells or outcome.n < 2:
        return math.inf
    low, high = outcome.n, 100 * TOO_MANY
    if not _decides(outcome, high):
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _decides(outcome, middle) else (middle, high)
    return high


def seeds_for_claim(outcomes: Sequence[Outcome], combine: str = "all") -> float:
    """For a claim of several parts: the least n at which enough of its open parts are decided.

    Each open part is taken to go where its estimate lies. One part that fails refutes `all`, one that holds
    proves `any`; otherwise every open part must be decided. A part that was not measured at all is not asked.
    """
    open_ones = [outcome for outcome in outcomes if outcome.holds is None and outcome.n]
    needed = [(seeds_needed(outcome), _leans(outcome)) for outcome in open_ones]
    decisive = [n for n, holds in needed if holds is (combine == "any")]
    return min(decisive) if decisive else max((n for n, _ in needed), default=0)


def deciding_words(needed: float) -> str:
    """ "about 22 seeds would decide it", or that seeds will not."""
    if math.isinf(needed):
        return "seeds will not decide it"
    if needed > TOO_MANY:
        return f"seeds will not decide it: it would take about {_round(needed):,}"
    return f"about {_round(needed):,} seeds would decide it"


def deciding_sizes(parts: Sequence[tuple[str, str, Outcome]], needed: float) -> str:
    """The same of a claim that was judged at several sizes, (says, verdict, outcome) each: at which of them
    seeds are wanted, and which were not trained."""
    unsettled = [says for says, _, outcome in parts if outcome.n and outcome.holds is None]
    missing = [says for says, _, outcome in parts if not outcome.n]
    words = [f"{deciding_words(needed)} at {_sizes(unsettled)}"] if unsettled else []
    if missing:
        words.append(f"not trained: {_sizes(missing)}")
    return "; ".join(words)


def _sizes(says: Sequence[str]) -> str:
    """ "the whole width, 2,000 steps" of "The whole width, 2,000 steps."; of more than two their number."""
    named = [each[:1].lower() + each[1:].rstrip(".") for each in says]
    return " and ".join(named) if len(named) <= 2 else f"{len(named)} sizes"


def _decides(outcome: Outcome, n: int) -> bool:
    cells = tuple(_at(cell, outcome.n, n) for cell in outcome.cells)
    return decide(outcome.test, cells)[0] is not None


def _leans(outcome: Outcome) -> bool:
    """Whether the test holds for its estimate, taken as exact."""
    points = tuple(
        replace(cell, interval=lambda level, c=cell: (c.interval(level)[0],) * 3, resolution=None)
        for cell in outcome.cells
    )
    return bool(points) and decide(outcome.test, points)[0] is True


def _at(cell: Cell, then: int, n: int) -> Cell:
    """The cell as n seeds of the same mean and spread would have it."""

    def interval(level: float) -> intervals.Interval:
        effect, low, high = cell.interval(level)
        if intervals.is_share(cell.values):
            return effect, *_share_ends(effect, n, level)
        shrunk = _quantiles(n, level, POWER) / _quantiles(then, level)
        if low > 0 and cell.in_logs:
            return effect, effect * (low / effect) ** shrunk, effect * (high / effect) ** shrunk
        return effect, effect - (effect - low) * shrunk, effect + (high - effect) * shrunk

    return replace(cell, interval=interval)


def _quantiles(n: int, level: float, power: float = 0.5) -> float:
    """(t of the level + t of the power) / √n: half a width, with room for the mean to scatter."""
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + level) / 2) + stdtrit(n - 1, power)) / math.sqrt(n)


def _share_ends(effect: float, n: int, level: float) -> tuple[float, float]:
    """The lower end that few hits would give, and the upper end that many would."""
    from scipy.stats import binom

    few, many = (int(binom.ppf(chance, n, effect)) for chance in (1 - POWER, POWER))
    return intervals.clopper_pearson(few, n, level)[0], intervals.clopper_pearson(many, n, level)[1]


def _round(n: float) -> int:
    """To two digits, upwards."""
    scale = 10 ** max(0, math.floor(math.log10(n)) - 1)
    return math.ceil(n / scale) * scale
