"""The judge: what a claim's tests find in recorded results, its verdict, and the row of the ledger that all readers take.

A measurement of a source is reproduced or not, a formula or theorem holds or is wrong, a question that is the book's own is
answered by yes or no. Parts are combined in three-valued logic: `all` fails with the first part that fails, `any` holds with
the first that holds, however open the others are.

A row is plain JSON; what is not there is null: no interval of an exact check, no number of what was not measured. Its keys:

- `id`, `chapter`, `figure` (its name in the chapter), `says`, `source` (key, version, where); `was`, the
  words of its lock where `says` only says the same more clearly,
- `kind`: measurement, statement or question; `combine`: all or any of its parts; `rungs`: whether these
  are sizes of what was trained; `of`: the claim that another chapter judges at one size, if one does,
- `rests_on`: the instruments that its numbers come from, ids of book/instruments.yml,
- `verdict`; `words`, the verdict as readers see it; `remark`, what changed since the run; `fresh`, the verdict by the
  last run's seeds alone, where with those of earlier draws it is another; `pooled`, whether these add seeds,
- `exploratory`: why its test counts as made after its data; `locked`: since when it stands; `changed`: when
  and why its preregistered test was changed,
- `effect` and `interval` of the test that decides, as below; `n`, `scope`, `profile`,
- `other_margins`: the verdicts at half and at twice the margin, or null,
- `tests`, one for each test; `n` is 0 where nothing was measured:
  - `role`: whole, part, printed or corrected; `says`; `asks`, what must hold, in words,
  - `test` as in the claims file; `verdict`; `holds`: true, false, or null for open,
  - `effect` {number, unit, words}; `interval` {low, high, words} of 95 %; `n`,
  - `values`: what the interval is of, one for each seed; `side`: how many are on the verdict's side,
  - `p` by the interval and `sign_p` by the sign test; `kept` by Benjamini and Hochberg, in the whole book.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from bookpress.book import book
from bookpress.claims.claim import WIDENING, Claim, Test
from bookpress.claims.draws import Recorded, counted
from bookpress.claims.effects import describe_test, effect_and_interval
from bookpress.claims.kinds import (
    TOO_MANY,
    Outcome,
    can_hold,
    combine,
    evaluate,
    p_value,
    scaled,
    seeds_for_claim,
    sign_test,
)
from bookpress.claims.locks import is_of_seeds

Row = dict[str, Any]

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
MIXED, PARTLY_REFUTED = "mixed", "partly refuted, rest open"
HOLDS, HOLDS_IF, CORRECTED, WRONG = "holds", "holds if …", "wrong as printed, corrected", "wrong"
YES, NO = "yes", "no"
OPEN = "open"
NOT_TESTED, NOT_RUN = "not tested at this scale", "not run"
#: Verdicts as files of earlier runs have them, and the words that the book has for them now.
NOW = {"at most partly": PARTLY_REFUTED, "wrong, mended": CORRECTED}


def judge(
    claim: Claim,
    results: Recorded,
    profile: str | None = None,
    *,
    exact: bool = False,
    known: Callable[[str], Row] = lambda verdict: {},
) -> Row:
    """The row of one claim by recorded results, name -> values (S, ...); of a published run by all its draws.

    At a profile that is no evidence for the claim the verdict says so beside the effect, if measured. An
    `exact` chapter (formulas, theorems) counts at every profile, and so does `profile=None`. A statement that
    fails is "wrong as printed, corrected" where its corrected test holds, "holds if …" where it names a
    condition. `known` gives what else the row has, from the verdict: how its test stands, a remark.
    Raises PressError for a missing result where the profile counts as evidence.
    """
    results = counted(claim, results)
    found = _found(claim, results, profile, exact)
    counts = found.verdict != NOT_TESTED
    row = empty_row(claim) | {"verdict": found.verdict, "profile": profile} | known(found.verdict)
    row["remark"] = found.remark or row["remark"]
    row["words"] = _words(claim, found, profile, row["remark"])
    reached = [says for (says, *_), each in zip(claim.own_tests, found.outcomes) if each.n and claim.rungs]
    row["n"] = min((each.n for each in _own(claim, found.outcomes) if each.n), default=0)
    row["scope"] = scope_words(claim, getattr(results, "header", {}), profile, row["n"], reached)
    if counts and (others := at_other_margins(claim)):
        row["other_margins"] = [_found(each, results, profile, exact).verdict for each in others]
    roles = ("part",) * len(claim.parts) or (("printed", "corrected") if claim.corrected else ("whole",))
    row["tests"] = [
        {"role": role, "says": says, "asks": describe_test(test, shown)}
        | _test(claim, each, counts and each.n > 0)
        for role, (says, test, shown), each in zip(roles, claim.own_tests, found.outcomes)
    ]
    decides = row["tests"][found.place]
    return row | {key: decides[key] for key in ("effect", "interval") if decides["n"]}


def verdict(claim: Claim, results: Recorded, profile: str | None = None, *, exact: bool = False) -> str:
    """The verdict alone."""
    return _found(claim, counted(claim, results), profile, exact).verdict


# ---- From outcomes to verdicts -----------------------------------------------------------------------------------------


class Found(NamedTuple):
    """What the tests of a claim gave, in their order; `place` is that of the one that decides."""

    verdict: str
    outcomes: tuple[Outcome, ...]
    place: int = 0
    plainly: str = ""  # the verdict by intervals without what widens them, where it is another one
    remark: str = ""  # of a rerun with other settings
    few: int = 0  # seeds with which a test of a rerun cannot hold


def _found(claim: Claim, results: Recorded, profile: str | None, exact: bool) -> Found:
    counts = claim.counts_as_evidence(profile, exact)
    if not counts and (claim.rungs or not set(claim.result_names()) <= set(results)):
        return Found(NOT_TESTED, tuple(_own(claim, [Outcome(test) for test in claim.tests])))
    found = _of_tests(claim, results)
    if any(getattr(test, key) is not None for test in claim.tests for key in WIDENING):
        narrow = claim.with_tests(lambda test, _: replace(test, **dict.fromkeys(WIDENING)))
        plainly = _of_tests(narrow, results).verdict
        found = found._replace(plainly=plainly if plainly != found.verdict else "")
    header = getattr(results, "header", {})
    if header.get("default_parameters") is False:
        found = _of_a_rerun(claim, found, header.get("other_settings", ""), exact)
    return found if counts else found._replace(verdict=NOT_TESTED, plainly="")


def _of_tests(claim: Claim, results: Recorded) -> Found:
    """By all tests; of rungs by those that the run has the results of."""
    outcomes = tuple(
        Outcome(test)
        if claim.rungs and not set(test.result_names()) <= set(results)
        else evaluate(test, results, claim.id, shown)
        for _, test, shown in claim.own_tests
    )
    own = _own(claim, outcomes)
    reached = [k for k, each in enumerate(own) if each.n]
    if not reached:
        return Found(NOT_TESTED, outcomes)
    word = word_for(claim, [own[k].holds for k in reached])
    mended = claim.corrected and outcomes[-1].holds
    if word == WRONG and mended:
        word = HOLDS_IF if claim.condition else CORRECTED
    elif word == HOLDS and claim.condition and not claim.corrected:  # the test ran under that condition
        word = HOLDS_IF
    # Shown beside the verdict is the part that decides it, else the first that is open.
    rank = {claim.combine == "any": 0, None: 1, claim.combine != "any": 2}
    place = min(reached, key=lambda k: rank[own[k].holds])
    return Found(word, outcomes if claim.parts or own[0].holds is False else own, place)


def _own(claim: Claim, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """Without that of the corrected form."""
    return outcomes if claim.parts else outcomes[:1]


def _of_a_rerun(claim: Claim, found: Found, other: str, exact: bool) -> Found:
    """Of a run with changed parameters: no verdict where its settings or data are other than the profile's, and open
    where its seeds are too few; of an exact chapter, which counts at every size, what is changed is named."""
    if found.verdict == NOT_TESTED:
        return found
    if exact:
        return found._replace(remark=f"with {other}" if other else "")
    few = [] if claim.out_of_reach else [o.n for o in found.outcomes if o.n and not can_hold(o.test, o.n)]
    if few:
        found = found._replace(verdict=OPEN, few=min(few))
    if other:
        return found._replace(verdict=NOT_TESTED, remark=f"with {other} it reads “{found.verdict}”")
    return found


def word_for(claim: Claim, held: Sequence[bool | None]) -> str:
    """The word for what the parts of a claim, or its one test, gave."""
    holds = combine(held, claim.combine)
    if holds is None:
        return OPEN
    if claim.asks or claim.statement:
        return ((NO, YES) if claim.asks else (WRONG, HOLDS))[holds]
    if holds:
        return REPRODUCED
    return MIXED if True in held else PARTLY_REFUTED if None in held else NOT_REPRODUCED


#: What hangs on a margin: the verdict at half and at twice what a claim's tests ask for.
FACTORS = (0.5, 2.0)


def at_other_margins(claim: Claim) -> list[Claim]:
    """The claim at half and at twice its margins; none where no test has a margin."""
    others = [claim.with_tests(lambda test, shown, by=by: scaled(test, by, shown)) for by in FACTORS]
    return [] if all(other.tests == claim.tests for other in others) else others


# ---- The verdict as a reader sees it: a condition, what would decide it, a later change are said ---------------------


def _words(claim: Claim, found: Found, profile: str | None, remark: str) -> str:
    word = f"holds if {claim.condition}" if found.verdict == HOLDS_IF else found.verdict
    corrected = found.outcomes[1:] if claim.corrected else ()
    untold = found.verdict == WRONG and any(each.holds is None for each in corrected)
    notes = [
        _decided_by(claim, found) if found.verdict == OPEN else "",
        "smoke run" if word == NOT_TESTED and profile == "smoke" else "",
        "its correction is open" if untold else "",
        f"“{found.plainly}” by plain intervals" if found.plainly else "",
        remark,
    ]
    said = "; ".join(note for note in notes if note)
    return f"{word} ({said})" if said else word


def _decided_by(claim: Claim, found: Found) -> str:
    """What would decide an open claim: so many seeds, by the recorded spread, and what the claim says."""
    if found.few:
        return f"{found.few} {'seed' if found.few == 1 else 'seeds'} cannot decide it"
    words = deciding_words(seeds_for_claim(_own(claim, found.outcomes), claim.combine))
    if claim.rungs:  # at which sizes seeds are wanted, and which were not trained
        says = [(part.says, each) for part, each in zip(claim.parts, found.outcomes, strict=True)]
        unsettled = [said for said, each in says if each.n and each.holds is None]
        missing = [said for said, each in says if not each.n]
        words += f" at {_sizes(unsettled)}" + f"; not trained: {_sizes(missing)}" * bool(missing)
    return "; ".join(filter(None, (words, claim.decided_by)))


def deciding_words(needed: float) -> str:
    """ "about 22 seeds would decide it", or that seeds will not."""
    if math.isinf(needed):
        return "seeds will not decide it"
    scale = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    about = f"{math.ceil(needed / scale) * scale:,}"  # to two digits, upwards
    if needed > TOO_MANY:
        return f"seeds will not decide it: it would take about {about}"
    return f"about {about} seeds would decide it"


def _sizes(says: Sequence[str]) -> str:
    """ "the whole width, 2,000 steps" of "The whole width, 2,000 steps."; of more than two their number."""
    named = [each[:1].lower() + each[1:].rstrip(".") for each in says]
    return " and ".join(named) if len(named) <= 2 else f"{len(named)} sizes"


# ---- How far a verdict goes: profile, data, size of what was trained and seeds, in a few words ---------------------------


def scope_words(
    claim: Claim, header: Mapping[str, Any], profile: str | None, n: int, reached: Sequence[str] = ()
) -> str:
    """ "laptop · CIFAR-10 · 1/8 width · 2,000 steps · n = 5", as far as the run's header tells it; of a claim
    with rungs, those that were reached."""
    parameters = header.get("parameters", {})
    data = [book().data_names.get(row["name"], row["name"]) for row in header.get("data", [])]
    said = {"data": ", ".join(data)} | {
        name: _parameter(name, parameters[name])
        for name in claim.scope
        if name in parameters and name != "data"
    }
    words = [profile or header.get("profile", ""), *(said.get(name, "") for name in claim.scope)]
    if reached:
        words += [*_together(reached), f"{len(reached)} of {len(claim.parts)} sizes"]
    return " · ".join(word for word in (*words, f"n = {n}" if n else "") if word)


def other_settings(
    mine: Mapping[str, Any], theirs: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> str:
    """How the parameters and the data of a run differ from a profile's, in words, but for its seeds, which a verdict
    counts itself: "steps = 6, data textures-standin"; "" where it judges claims as the profile's own run does."""
    apart = {"workers", "profile", "data", "datasets"}
    names = [name for name in theirs if name not in apart and not is_of_seeds(name)]
    words = [f"{name} = {mine[name]!r}" for name in names if name in mine and mine[name] != theirs[name]]
    asked = [str(theirs.get("data", "")), *map(str, theirs.get("datasets", ()))]
    known = {name.partition("-")[0] for name in asked if name}  # cifar10-auto may be a copy of cifar10
    words += [f"data {row['name']}" for row in rows if known and row["name"].partition("-")[0] not in known]
    return ", ".join(dict.fromkeys(words))


def _together(rungs: Sequence[str]) -> list[str]:
    """Rungs that differ in their first words alone, together: "1/16, 1/8 of the width, 2,000 steps"."""
    found: dict[str, list[str]] = {}
    for rung in rungs:
        first, _, rest = (rung[:1].lower() + rung[1:]).rstrip(".").partition(" ")
        found.setdefault(rest, []).append(first)
    return [f"{', '.join(firsts)} {rest}" for rest, firsts in found.items()]


def _parameter(name: str, value: Any) -> str:
    """ "2,000 steps", "1/8 width", "1/16, 1/4 width", "width 1,000"."""
    kind = name.rpartition("_")[2]
    if kind in ("steps", "layers", "depth"):
        return f"{_said(value)} {'layers' if kind == 'depth' else kind}"
    if kind == "widths" and max(value) <= 1:
        return f"{', '.join(map(_share, value))} width"
    if isinstance(value, float) and 0 < value <= 1:
        return f"{_share(value)} {kind}"
    return f"{kind} {_said(value)}"


def _share(value: float) -> str:
    return str(Fraction(value).limit_denominator(1000)) if value < 1 else "full"


def _said(value: Any) -> str:
    if isinstance(value, (list, tuple)):  # layers of one width are said once
        return ", ".join(_said(each) for each in (value[:1] if len(set(value)) == 1 else value))
    return f"{value:,}" if isinstance(value, int) else str(value)


# ---- The row -----------------------------------------------------------------------------------------------------------

DIGITS = 6
#: Share of what Benjamini and Hochberg keep that may be false.
FALSE_SHARE = 0.05


def empty_row(claim: Claim) -> Row:
    """The row of a claim whose chapter has not been run."""
    return {
        **{key: getattr(claim, key) for key in ("id", "chapter", "says", "was")},
        "source": {key: getattr(claim.source, key) for key in ("key", "version", "where")},
        "kind": "question" if claim.asks else "statement" if claim.statement else "measurement",
        "verdict": NOT_RUN,
        "words": NOT_RUN,
        "effect": None,
        "interval": None,
        "n": 0,
        "scope": "",
        "profile": None,
        **{key: getattr(claim, key) for key in ("combine", "rungs", "of")},
        "rests_on": [],
        "figure": claim.figure,
        "remark": "",
        "fresh": "",
        "pooled": False,
        "exploratory": "",
        "locked": "",
        "changed": [],
        "other_margins": None,
        "tests": [],
    }


def _test(claim: Claim, outcome: Outcome, counts: bool) -> Row:
    words, ends = effect_and_interval(outcome)
    low, high = map(_number, outcome.interval)
    unit = outcome.shown.unit if outcome.shown and not outcome.trials else outcome.unit
    p = p_value(outcome) if counts else None
    side, sign_p = (None, None) if p is None else sign_test(outcome)
    return {
        "test": {key: list(v) if isinstance(v, tuple) else v for key, v in outcome.test.keys().items()},
        "verdict": word_for(claim, [outcome.holds]) if counts else NOT_TESTED,
        "holds": outcome.holds,
        "effect": {"number": _number(outcome.effect), "unit": unit, "words": words},
        "interval": None if None in (low, high) or low == high else {"low": low, "high": high, "words": ends},
        "n": outcome.n,
        "values": [_number(value) for value in outcome.values],
        "side": side,
        "p": p and _number(p),
        "sign_p": sign_p and _number(sign_p),
        "kept": None,
    }


def _number(value: float) -> float | None:
    value = float(np.float64(value))
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def deciding(row: Row) -> Row | None:
    """The test of a row that its effect and interval are of."""
    alike = (
        test
        for test in row["tests"]
        if all(test[key] == row[key] for key in ("effect", "interval")) and test["role"] != "corrected"
    )
    return next(alike, None)


def tested(test: Row) -> Test:
    """The test of a row as the claims file has it."""
    return Test(**test["test"])


def keep(rows: Iterable[Row], rate: float = FALSE_SHARE) -> None:
    """Set `kept` in every test that has a p-value and counts: at most `rate` of the kept may be false."""
    tests = [test for row in rows for test in row["tests"] if test["p"] is not None]
    marks = benjamini_hochberg([test["p"] for test in tests], rate)
    for test, mark in zip(tests, marks, strict=True):
        test["kept"] = mark


def benjamini_hochberg(ps: Sequence[float], rate: float = FALSE_SHARE) -> list[bool]:
    """Which of m tests remain where at most `rate` of those kept may be false (1995): p_(k) ≤ k/m · rate."""
    ranked = np.sort(np.asarray(ps, dtype=float))
    kept = ranked <= rate * np.arange(1, ranked.size + 1) / max(ranked.size, 1)
    limit = ranked[kept][-1] if kept.any() else -1.0
    return [bool(p <= limit) for p in ps]
