"""Does a rerun agree with the book? Its results against the band that the published seeds span."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bnbook import claims
from bnbook.errors import BnbookError
from bnbook.intervals import is_share
from bnbook.pipeline.evidence import HIGHEST_FIRST, Evidence, published

#: All results together agree within bands that 99 of 100 honest reruns would keep to.
COVERAGE = 0.99
#: Two exact results agree up to rounding on another machine.
ROUNDING = 1e-6
#: Exact checks: the size of their rounding errors says nothing, their verdict all.
BY_VERDICT = ("identity", "inequality")


@dataclass(frozen=True)
class Row:
    """One result beside the book's: the mean of the rerun, and the band for it."""

    name: str
    mine: float
    book: float
    low: float
    high: float

    @property
    def agrees(self) -> bool:
        same = self.mine == self.book or (
            np.isnan(self.mine) and np.isnan(self.book)
        )  # infinities among them
        return bool(same or self.low <= self.mine <= self.high)


def compare(run: Evidence) -> tuple[list[str], bool]:
    """The report of `--compare`, and whether the rerun agrees with the published run of the same chapter.

    Compared are the results that claims rest on. Raises BnbookError where the chapter has no published run.
    """
    book = _counterpart(run)
    mine, theirs = run.results, book.results
    lines = [f"{run.chapter.name}: this {run.profile} run against the book's {book.profile} run"]
    lines += _differences(mine.header, theirs.header)
    names = [name for name in _judged_results(run) if name in theirs]
    missing = [name for name in names if name not in mine]
    lines += [f"  {name}: not measured in this run" for name in missing]
    shared = [name for name in names if name in mine]
    rows = [_row(name, mine[name], theirs[name], 1 - (1 - COVERAGE) / len(shared)) for name in shared]
    for row in rows:
        word = "agrees" if row.agrees else "DIFFERS"
        lines.append(
            f"  {row.name}: {row.mine:.4g}, book {row.book:.4g}, band {row.low:.4g} to {row.high:.4g}: {word}"
        )
    flipped = 0
    for claim in claims.load_claims():
        if claim.chapter == run.chapter.name and set(claim.result_names()) <= set(mine):
            verdicts = [
                claims.judge(claim, e.results, e.profile, exact=e.chapter.exact).words for e in (run, book)
            ]
            lines.append(f"  claim {claim.id}: {verdicts[0]}; book: {verdicts[1]}")
            exact = all(test.kind in BY_VERDICT for test in claim.tests)
            flipped += exact and run.profile == book.profile and verdicts[0] != verdicts[1]
    outside = sum(not row.agrees for row in rows)
    agreed = not (outside or flipped)
    words = f"{'agrees with' if agreed else 'differs from'} the book: "
    words += f"{len(rows) - outside} of {len(rows)} results in "
    words += "their bands" + (f", {flipped} exact verdicts other than the book's" if flipped else "")
    return [*lines, f"  {words}"], agreed


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
        half = max(half, t * values.std(ddof=1) * np.sqrt(1 / seeds + 1 / count))
    return float(mean - half), float(mean + half)


def _row(name: str, mine: np.ndarray, theirs: np.ndarray, coverage: float) -> Row:
    mine, theirs = (values.reshape(len(values), -1).mean(axis=1) for values in (mine, theirs))
    low, high = prediction_band(theirs, len(mine), coverage)
    return Row(name, float(mine.mean()), float(theirs.mean()), low, high)


def _counterpart(run: Evidence) -> Evidence:
    for profile in (run.profile, *HIGHEST_FIRST):
        candidate = published(run.chapter, profile)
        if candidate.exists:
            return candidate
    raise BnbookError(
        f"{run.chapter.name} has no published run to compare with; publish one first (bnbook publish)"
    )


def _judged_results(run: Evidence) -> list[str]:
    """Results that decide claims; exact checks (identities, counts of violations) are compared by verdict
    alone."""
    names: dict[str, None] = {}
    for claim in claims.load_claims():
        if claim.chapter == run.chapter.name:
            for test in claim.tests:
                if test.kind not in BY_VERDICT:
                    names.update(dict.fromkeys(test.result_names()))
    return list(names)


def _differences(mine: dict, theirs: dict) -> list[str]:
    """What was not the same in the two runs: data, parameters, profile."""
    lines = []
    data = [
        ", ".join(f"{row['name']} {row['sha256'][:12]}" for row in side.get("data", []))
        for side in (mine, theirs)
    ]
    if data[0] != data[1]:
        lines.append(f"  other data: {data[0] or 'none'}; book: {data[1] or 'none'}")
    both = mine["parameters"].keys() & theirs["parameters"].keys()
    for name in sorted(both):
        if mine["parameters"][name] != theirs["parameters"][name]:
            lines.append(
                f"  other {name}: {mine['parameters'][name]!r}; book: {theirs['parameters'][name]!r}"
            )
    return lines
