"""Where a rerun's mean must fall: the band that the published seeds span, and whether it tells anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from bookpress import claims
from bookpress.book import command_name
from bookpress.claims import Claim
from bookpress.claims.judging import HOLDS, NOT_TESTED, OPEN
from bookpress.errors import PressError
from bookpress.intervals import is_share
from bookpress.pipeline import chapter_runs, prose
from bookpress.pipeline.chapter_runs import Evidence, published_runs
from bookpress.pipeline.chapters import Chapter

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
    log = ratio and (mine > 0).all() and (theirs > 0).all()
    to, back = (np.log, np.exp) if log else (np.asarray, np.asarray)
    low, high = back(prediction_band(to(theirs), len(mine), coverage))
    middle, book = (float(back(to(values).mean())) for values in (mine, theirs))
    if log:
        telling = high <= WIDEST_FACTOR * book
    elif share or is_share(theirs):
        low, high = max(low, 0.0), min(high, 1.0)
        telling = high - low <= WIDEST_SHARE
    else:
        telling = low * high >= 0 or high - low <= 2 * ROUNDING  # it knows the sign
    return Row(name, middle, book, float(low), float(high), bool(telling))


# ---- Does a rerun agree with the book? Results against the bands that the published seeds span, and verdicts -------

#: Units whose values lie between 0 and 1, as those that the text shows with {{ share:… }}.
SHARES = ("share", "accuracy")

AGREES, DIFFERS, UNTOLD, OTHER = (
    "agrees with",
    "differs from",
    "cannot be told from",
    "is not comparable with",
)
#: Outcomes that are no failure; another profile was asked for, not another answer.
PASSING = (AGREES, OTHER)


def compare(run: Evidence, details: bool = False) -> tuple[list[str], str]:
    """The report of `--compare`, its outcome first, and the outcome: AGREES, DIFFERS, UNTOLD or OTHER.

    Results that claims rest on are compared by their bands, where the book has a run at the same profile, and
    verdicts by what they say: exact checks at the same profile, all of an exact chapter at every profile, but
    for an exception that a smaller profile's search has not met.
    UNTOLD: nothing could be compared, or no band was narrow enough. OTHER: the book has other profiles only; then the
    rest is said with `details` alone.
    Raises PressError where the chapter has no published run.
    """
    book = counterpart(run.chapter, run.profile)
    same_profile = run.profile == book.profile
    lines = _differences(run, book)
    found = list(rows(run, book)) if same_profile else []
    for row in found:
        lines.append(
            f"  {row.name}: {row.mine:.4g}, book {row.book:.4g}, band {row.low:.4g} to {row.high:.4g}: {row.outcome}"
        )
    counted = []  # whether verdicts that have to be the same are: both decided, and decided without chance
    own = {claim.id: claim for claim in claims.chapter_claims(run.chapter.name)}
    for mine in chapter_runs.chapter_verdicts(run):
        claim = own[mine["id"]]
        theirs = chapter_runs.judged(claim, book)
        missed = not same_profile and _missed(claim, mine, theirs)
        exact = run.chapter.exact or same_profile and all(test.exact for test in claim.tests)
        if exact and not missed and not {mine["verdict"], theirs["verdict"]} & {NOT_TESTED, OPEN}:
            counted.append(mine["verdict"] == theirs["verdict"])
        few = ": too few trials to tell" * missed
        lines.append(f"  claim {claim.id}: {mine['words']}; book: {claims.marked(theirs)}{few}")
    agree, differ = (sum(row.outcome.startswith(word) for row in found) for word in ("agrees", "DIFFERS"))
    if differ or not all(counted):
        outcome = DIFFERS
    elif counted or agree:
        outcome = AGREES
    else:
        outcome = UNTOLD if same_profile else OTHER
    said = [f"{agree} of {len(found)} results in their bands"] if found else []
    if wide := len(found) - agree - differ:
        said.append(f"{wide} cannot be told, their bands are too wide")
    said += [f"{sum(counted)} of {len(counted)} exact verdicts as in the book"] if counted else []
    said += [f"try --profile {book.profile}; --details says what differs"] if outcome == OTHER else []
    first = f"{run.chapter.name}: this {run.profile} run {outcome} the book's {book.profile} run: "
    shown = lines if details or outcome != OTHER else []
    return [first + (", ".join(said) or "nothing to compare"), *shown], outcome


def rows(run: Evidence, book: Evidence) -> Iterator[Row]:
    """The results that decide claims by measurement and that both runs have, at whatever profile; of exact
    checks the size of the rounding errors says nothing, the verdict all."""
    tests = [test for claim in claims.chapter_claims(run.chapter.name) for test in claim.tests]
    judged = {name: None for test in tests if not test.exact for name in test.result_names()}
    ratios = {name for test in tests if test.in_factors for name in test.result_names()}
    shown = (token for token in prose.tokens(run.chapter.text) if token.verb == "share" and not token.chapter)
    shares = {token.name for token in shown}
    mine, theirs = run.results, book.results
    names = [name for name in judged if name in mine and name in theirs]
    for name in names:
        yield compare_one(
            name,
            mine[name],
            theirs[name],
            1 - (1 - COVERAGE) / len(names),
            ratio=name in ratios,
            share=name in shares or theirs.unit(name) in SHARES,
        )


def _missed(claim: Claim, mine: claims.Row, theirs: claims.Row) -> bool:
    """Whether a search of fewer trials may just not have met the exception that the book has found."""
    searched = any(test.kind == "inequality" for test in claim.tests)
    return searched and mine["verdict"] == HOLDS and theirs["verdict"] not in (HOLDS, NOT_TESTED, OPEN)


def counterpart(chapter: Chapter, profile: str) -> Evidence:
    """The book's run at the same profile, else its highest; PressError where there is none."""
    if there := published_runs(chapter):
        return next((each for each in there if each.folder.name == profile), there[0])
    raise PressError(
        f"{chapter.name} has no published run to compare with; publish one first ({command_name()} publish)"
    )


def ahead(chapters: Iterable[Chapter], profile: str) -> list[str]:
    """Before a run: of which chapters it will not be comparable, a line for each profile that the book has of them.
    PressError as for `counterpart`."""
    found = defaultdict[str, list[str]](list)
    for chapter in chapters:
        theirs = counterpart(chapter, profile).folder.name
        if theirs != profile and not chapter.exact:
            found[theirs].append(chapter.name)
    of = {
        theirs: names[0] if len(names) == 1 else f"{len(names)} chapters" for theirs, names in found.items()
    }
    return [
        f"note: the book has {each} at --profile {theirs} alone, with which no number of a {profile} run is compared; "
        "--details says what differs"
        for theirs, each in of.items()
    ]


def _differences(run: Evidence, book: Evidence) -> list[str]:
    """What was not the same in the two runs, data first: then bands are those of other data."""
    mine, theirs = run.results.header, book.results.header
    lines = []
    data = [_data_words(header) for header in (mine, theirs)]
    if data[0] != data[1]:
        lines.append(f"  OTHER DATA: {data[0]}; book: {data[1]}; the bands are those of the book's data")
    stale = [part for part in book.stale() if part in ("code", "package")]
    if stale:
        lines.append(f"  other code: the book's run is stale ({' and '.join(stale)} changed since)")
    for name in sorted(mine["parameters"].keys() & theirs["parameters"].keys() - {"profile"}):
        if mine["parameters"][name] != theirs["parameters"][name]:
            lines.append(
                f"  other {name}: {mine['parameters'][name]!r}; book: {theirs['parameters'][name]!r}"
            )
    measured = set(run.results)
    missing = {n for c in claims.chapter_claims(run.chapter.name) for n in c.required_names()} - measured
    return lines + [f"  {name}: not measured in this run" for name in sorted(missing & set(book.results))]


def _data_words(header: Mapping) -> str:
    """Each data set with whether it is the exact one."""
    rows = header.get("data", [])
    words = (
        f"{row['name']} {row['sha256'][:12]} ({'exact' if row.get('exact') else 'not the exact set'})"
        for row in rows
    )
    return ", ".join(words) or "none"
