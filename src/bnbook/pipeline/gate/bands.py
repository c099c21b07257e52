"""Where a rerun's mean must fall: the band that the published seeds span, and whether it tells anything."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bnbook.intervals import is_share

#: All results together agree within bands that 99 of 100 honest reruns would keep to.
COVERAGE = 0.99
#: Two exact results agree up to rounding on another machine.
ROUNDING = 1e-6
#: A band that reaches further from the book's value than this factor tells nothing, nor a wider one of
#: shares.
WIDEST_FACTOR, WIDEST_SHARE = 10.0, 0.5


@dataclass(frozen=True)
class Row:
    """One result beside the book's: the mean of the rerun, and the band for it."""

    name: str
    mine: float
    book: float
    low: float
    high: float
    telling: bool = True  # whether the band is narrow enough for "agrees" to mean something
    mine_seeds: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False, repr=False)
    book_seeds: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False, repr=False)
    log: bool = False  # whether means and band are those of logarithms

    @property
    def outcome(self) -> str:
        if self.mine == self.book or np.isnan(self.mine) and np.isnan(self.book):  # infinities among them
            return "agrees"
        if not self.low <= self.mine <= self.high:
            return "DIFFERS"
        return "agrees" if self.telling else "cannot tell (the band is too wide)"


def prediction_band(values: np.ndarray, count: int, coverage: float = COVERAGE) -> tuple[float, float]:
    """Where the mean of `count` new seeds falls with probability `coverage`; values (S,) are the published
    seeds.

    mean ± t s √(1/S + 1/count); for shares of seeds (all values 0 or 1) the shares that Fisher's exact test
    does not tell from the published one. One published seed, or equal numbers that are no shares, leave only
    rounding.
    """
    from scipy import stats

    values = np.asarray(values, dtype=float)
    mean, seeds = values.mean(), len(values)
    if seeds > 1 and is_share(values):
        hits = int(values.sum())
        tables = ([[hits, seeds - hits], [k, count - k]] for k in range(count + 1))
        kept = [k for k, table in enumerate(tables) if stats.fisher_exact(table).pvalue > 1 - coverage]
        return min(kept) / count, max(kept) / count
    half = ROUNDING * max(abs(mean), ROUNDING)
    if seeds > 1:
        t = stats.t.ppf(0.5 + coverage / 2, seeds - 1)
        with np.errstate(invalid="ignore"):  # infinities have no spread
            half = max(half, t * values.std(ddof=1) * np.sqrt(1 / seeds + 1 / count))
    return float(mean) - float(half), float(mean) + float(half)


def compare_one(
    name: str,
    mine: np.ndarray,
    theirs: np.ndarray,
    coverage: float,
    *,
    ratio: bool = False,
    share: bool = False,
) -> Row:
    """One result (S, ...) of both runs: on a logarithmic scale where it is the side of a ratio and positive,
    between 0 and 1 where it is a share."""
    mine, theirs = (values.reshape(len(values), -1).mean(axis=1) for values in (mine, theirs))
    if ratio and (mine > 0).all() and (theirs > 0).all():
        low, high = np.exp(prediction_band(np.log(theirs), len(mine), coverage))
        middle, book = (float(np.exp(np.log(values).mean())) for values in (mine, theirs))
        telling = bool(high <= WIDEST_FACTOR * book)
        return Row(name, middle, book, float(low), float(high), telling, mine, theirs, log=True)
    low, high = prediction_band(theirs, len(mine), coverage)
    book = float(theirs.mean())
    telling = low * high >= 0 or high - low <= 2 * ROUNDING  # it knows the sign
    if share or is_share(theirs):
        low, high = max(low, 0.0), min(high, 1.0)
        telling = high - low <= WIDEST_SHARE
    return Row(name, float(mine.mean()), book, low, high, bool(telling), mine, theirs)
