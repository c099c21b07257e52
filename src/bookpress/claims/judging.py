"""Verdicts as files of earlier runs have them, and the words that the book has for them now."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from bookpress import intervals
from bookpress.book import book
from bookpress.claims import locks
from bookpress.claims.claim import Cell, Claim, Effect, Outcome, Test
from bookpress.claims.kinds import can_hold, combine, evaluate, kind_of
from bookpress.claims.locks import is_of_seeds, same_numbers
from bookpress.claims.recorded import union
from bookpress.claims.words import spelled
from bookpress.results import Results

NOW = {"at most partly": "partly refuted, rest open", "wrong, mended": "wrong as printed, corrected"}


# ---- Claims judged rung by rung: one test that stands for several sizes of what was trained ------------------------


def judge_rungs(
    claim: Claim, results: Mapping[str, np.ndarray], judge: Callable[[Claim], Any], not_tested: Any
) -> Any:
    """The judgement on a claim whose parts are rungs, by those of them that the run has the results of.

    The others stand among its parts as not tested, and decide nothing; `not_tested` is the judgement where
    none was reached, `judge` the one on a claim of which all is recorded.
    """
    reached = [set(part.test.result_names()) <= set(results) for part in claim.parts]
    measured = tuple(part for part, has in zip(claim.parts, reached, strict=True) if has)
    found = judge(replace(claim, parts=measured)) if measured else not_tested
    rows = iter(found.parts)
    nothing = (-math.inf, math.inf)
    parts = tuple(
        next(rows)
        if has
        else (part.says, not_tested.verdict, Outcome(None, math.nan, nothing, 0, test=part.test))
        for part, has in zip(claim.parts, reached, strict=True)
    )
    return replace(found, claim=claim, parts=parts)


# ---- How far a verdict goes: profile, data, size of what was trained and seeds, in a few words ---------------------


def scope_words(
    claim: Claim, header: Mapping[str, Any], profile: str | None, n: int, reached: Sequence[str] = ()
) -> str:
    """ "laptop · CIFAR-10 · 1/8 width · 2,000 steps · n = 5", as far as the run's header tells it; of a claim
    with rungs, those that were reached."""
    parameters = header.get("parameters", {})
    data = [book().data_names.get(row["name"], row["name"]) for row in header.get("data", [])]
    words = [profile or header.get("profile", "")]
    for name in claim.scope:
        if name == "data":
            words.append(", ".join(data))
        elif name in parameters:
            words.append(_parameter(name, parameters[name]))
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
    if kind in ("steps", "layers"):
        return f"{_number(value)} {kind}"
    if kind == "depth":
        return f"{_number(value)} layers"
    if kind == "widths" and max(value) <= 1:
        return f"{', '.join(map(_share, value))} width"
    if isinstance(value, float) and 0 < value <= 1:
        return f"{_share(value)} {kind}"
    return f"{kind} {_number(value)}"


def _share(value: float) -> str:
    return str(Fraction(value).limit_denominator(1000)) if value < 1 else "full"


def _number(value: Any) -> str:
    if isinstance(value, (list, tuple)):  # layers of one width are said once
        return ", ".join(_number(each) for each in (value[:1] if len(set(value)) == 1 else value))
    return f"{value:,}" if isinstance(value, int) else str(value)


# ---- How many seeds would decide an open claim, if mean and spread stay as they were measured ----------------------

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
    return kind_of(outcome.test).decide(outcome.test, cells)[0] is not None


def _leans(outcome: Outcome) -> bool:
    """Whether the test holds for its estimate, taken as exact."""
    points = tuple(
        replace(cell, interval=lambda level, c=cell: (c.interval(level)[0],) * 3, resolution=None)
        for cell in outcome.cells
    )
    return bool(points) and kind_of(outcome.test).decide(outcome.test, points)[0] is True


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
    from scipy.special import bdtr

    below = bdtr(np.arange(n + 1), n, effect)  # the chance of at most so many hits
    few, many = (int(np.searchsorted(below, chance)) for chance in (1 - POWER, POWER))
    return intervals.clopper_pearson(few, n, level)[0], intervals.clopper_pearson(many, n, level)[1]


def _round(n: float) -> int:
    """To two digits, upwards."""
    scale = 10 ** max(0, math.floor(math.log10(n)) - 1)
    return math.ceil(n / scale) * scale


# ---- Which of a chapter's earlier published runs count beside the last one -----------------------------------------
# Where training is chaotic, another processor makes another draw of the same seeds, and a rerun takes fresh
# seeds. A verdict rests on the union of all draws of one measure, seed by seed (`recorded`).

ROUNDED = 1e-9  # relative; the results file keeps nine digits
SEEN = "its test was written after these data"


def counted(claim: Claim, results: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """A published run with those of its draws that a claim is judged by."""
    draws = getattr(results, "draws", ())
    return replace(results, draws=tuple(counting(claim, results))) if draws else results


def counting(claim: Claim, results: Results) -> list[Results]:
    """The earlier draws that are judged together with a published run, the oldest first."""
    return [draw for draw, why in beside(claim, results) if not why]


def beside(claim: Claim, results: Results) -> tuple[tuple[Results, str], ...]:
    """The earlier draws of what a claim reads, the oldest first, each with why it does not count or "".

    Every page asks for every claim: a run keeps the answers, for as long as claim and locks are these.
    """
    if not results.draws:
        return ()
    chain = locks.read()
    kept = results.__dict__.setdefault("_beside", {})
    key = claim.id, claim.test_hash, claim.rungs, tuple(line.digest for line in chain.lines[-1:])
    if key not in kept:
        kept[key] = tuple((draw, left_out(claim, draw, results)) for draw in distinct(claim, results))
    return kept[key]


def distinct(claim: Claim, results: Results) -> list[Results]:
    """The earlier draws of what a claim reads; one whose every number a later run has is the same draw."""
    read = claim.result_names()
    kept = results.__dict__.setdefault("_distinct", {})
    if read not in kept:
        found = [results]
        for draw in reversed(results.draws):
            names = [name for name in read if name in draw and name in results]
            if names and not any(is_in(draw, later, names) for later in found):
                found.append(draw)
        kept[read] = found[:0:-1]
    return kept[read]


def left_out(claim: Claim, draw: Results, results: Results) -> str:
    """Why a draw is not judged together with the published run, in a few words, or nothing.

    It measures the same where the locks say so: by the same code and settings, or by others with which every
    number that the claim reads stayed the same (`carried`). Where the published run is judged by a test that
    stood before its data, so must be the draw.
    """
    if not set(claim.required_names()) <= set(draw):
        return "it lacks what the test reads"
    if why := otherwise(claim, draw, results):
        return why
    late = [bool(locks.standing(claim, run, locks.read()).exploratory) for run in (draw, results)]
    return SEEN if late == [True, False] else ""


def otherwise(claim: Claim, draw: Results, results: Results) -> str:
    """In what two runs differ that measure the same results otherwise, or nothing."""
    if draw.header["fingerprint"].get("data") != results.header["fingerprint"].get("data"):
        return "other data"
    chain, profile = locks.read(), results.header["profile"]
    was, now = locks.run_measure(draw.header, chain), locks.run_measure(results.header, chain)
    own = (same_numbers(line, claim.id, chain, profile) for line in chain.of_claim(claim.id) if line.tests)
    if was == now or any({was, now} <= each for each in own):
        return ""
    return "other settings" if was[0] == now[0] else "measured otherwise"


def as_quoted(
    name: str,
    results: Results,
    listed: Sequence[tuple[Claim, Sequence[Results]]],
    together: Collection[str] = (),
) -> tuple[list[int], np.ndarray]:
    """Seeds and values (S, ...) of a result as pages quote it: by all draws by which a claim that reads it is judged.
    listed: claims with these draws.

    Where a test reads exactly the results that are quoted `together`, they are quoted as it reads them.
    """
    reading = [
        (test, draws) for claim, draws in listed for test in claim.tests if name in test.result_names()
    ]
    reading = [each for each in reading if set(each[0].result_names()) == set(together)] or reading
    draws = max((draws for _, draws in reading), key=len, default=())
    return over_draws(name, [*draws, results])


def over_draws(name: str, runs: Sequence[Results]) -> tuple[list[int], np.ndarray]:
    """Seeds and values (S, ...) of a result, of each seed by the last run that has it."""
    return union((run.entries[name]["seeds"], run[name]) for run in runs if name in run)


def is_in(
    draw: Results, later: Results, names: Sequence[str], slack: float = 0.0, relative: float = ROUNDED
) -> bool:
    """Whether each of these results of a draw has the same numbers, but for rounding, in a later run, on all its
    seeds; a share to the last bit. `slack` is absolute, and what is `relative` counts as rounding."""
    return all(name in draw and name in later and _same(draw, later, name, slack, relative) for name in names)


def _same(draw: Results, later: Results, name: str, slack: float, relative: float) -> bool:
    rows = [{seed: k for k, seed in enumerate(run.entries[name]["seeds"])} for run in (draw, later)]
    if not rows[0].keys() <= rows[1].keys():
        return False
    mine, theirs = (
        run[name][[row[s] for s in rows[0]]] for run, row in zip((draw, later), rows, strict=True)
    )
    if mine.shape != theirs.shape:
        return False
    if draw.unit(name) == "share" and relative == ROUNDED:
        return np.array_equal(mine, theirs, equal_nan=True)
    return np.allclose(mine, theirs, rtol=relative, atol=slack, equal_nan=True)


# ---- From outcomes to verdicts: the words of the scoreboard, and nothing else decides them -------------------------
# A measurement of a source is reproduced or not, a formula or theorem holds or is wrong, a question that is the
# book's own is answered by yes or no. Parts are combined in three-valued logic: `all` fails with the first part
# that fails, `any` holds with the first that holds, however open the others are.

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
MIXED, PARTLY_REFUTED = "mixed", "partly refuted, rest open"
HOLDS, HOLDS_IF, CORRECTED, WRONG = "holds", "holds if …", "wrong as printed, corrected", "wrong"
YES, NO = "yes", "no"
OPEN = "open"
NOT_TESTED = "not tested at this scale"


@dataclass(frozen=True)
class Judgement:
    """The verdict on one claim from one run."""

    claim: Claim
    verdict: str
    effect: float  # nan where nothing was measured
    interval: tuple[float, float]  # 95 %; both ends equal for an exact check
    n: int  # seeds
    unit: str = ""
    detail: str = ""
    parts: tuple[tuple[str, str, Outcome], ...] = ()  # (says, verdict, outcome) of each part
    corrected: Outcome | None = None  # what the corrected form gave, where the printed one failed
    profile: str | None = None
    remark: str = ""  # what changed since the run
    fresh: str = ""  # what the last run says by itself, where with earlier draws it is something else
    outcome: Outcome | None = None  # the one that decides
    exploratory: str = ""  # why the test counts as made after its data; "" where it was locked before
    locked: str = ""  # date of the lock that counts
    changed: tuple[str, ...] = ()  # when and why its preregistered test was changed
    scope: str = ""  # how far the verdict goes: profile, data, size and seeds
    plainly: str = ""  # the verdict by intervals without what widens them, where it is another one
    few: int = 0  # seeds with which a test of a rerun cannot hold
    pooled: bool = False  # whether seeds of earlier draws count beside the run's

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What its tests found: its parts', or its own and that of the corrected form."""
        own = (self.outcome, self.corrected) if not self.parts else [found for _, _, found in self.parts]
        return tuple(found for found in own if found)

    @property
    def decided_by(self) -> str:
        """What would decide an open claim: so many seeds, by the recorded spread, and what the claim says."""
        if self.verdict != OPEN or not self.outcome:
            return ""
        if self.few:
            return f"{self.few} {'seed' if self.few == 1 else 'seeds'} cannot decide it"
        own = self.outcomes if self.parts else self.outcomes[:1]
        needed = seeds_for_claim(own, self.claim.combine)
        words = deciding_sizes(self.parts, needed) if self.claim.rungs else deciding_words(needed)
        return "; ".join(each for each in (words, self.claim.decided_by) if each)

    @property
    def words(self) -> str:
        """The verdict as a reader sees it: a condition, what would decide it, a later change are said."""
        words = f"holds if {self.claim.condition}" if self.verdict == HOLDS_IF else self.verdict
        smoke = "smoke run" if words == NOT_TESTED and self.profile == "smoke" else ""
        plainly = f"“{self.plainly}” by plain intervals" if self.plainly else ""
        untold = self.verdict == WRONG and self.corrected is not None and self.corrected.holds is None
        mended = "its correction is open" if untold else ""
        notes = "; ".join(note for note in (self.decided_by, smoke, mended, plainly, self.remark) if note)
        return f"{words} ({notes})" if notes else words

    @property
    def marked(self) -> str:
        """The words, and that the verdict is exploratory where it is."""
        return f"{self.words} (exploratory)" if self.exploratory else self.words


def judge(
    claim: Claim, results: Mapping[str, np.ndarray], profile: str | None = None, *, exact: bool = False
) -> Judgement:
    """Judge one claim by recorded results, name -> values (S, ...); of a published run by all its draws.

    At a profile that is no evidence for the claim the verdict says so beside the effect, if measured. An
    `exact` chapter (formulas, theorems) counts at every profile, and so does `profile=None`. A statement that
    fails is "wrong as printed, corrected" where its corrected test holds, "holds if …" where it names a
    condition. Raises PressError for a missing result where the profile counts as evidence.
    """
    results = counted(claim, results)
    nothing = Judgement(claim, NOT_TESTED, math.nan, (-math.inf, math.inf), 0, detail="not measured")
    if claim.counts_as_evidence(profile, exact) and claim.rungs:
        found = judge_rungs(claim, results, partial(_judge_parts, results=results), nothing)
    elif claim.counts_as_evidence(profile, exact):
        found = _judge_parts(claim, results) if claim.parts else _judge_whole(claim, results)
    elif all(name in results for name in claim.result_names()) and not claim.rungs:
        found = replace(judge(claim, results), verdict=NOT_TESTED)
    else:
        found = nothing
    if (narrow := claim.by_plain_intervals()) != claim and claim.counts_as_evidence(profile, exact):
        plainly = judge(narrow, results, profile, exact=exact).verdict
        found = replace(found, plainly=plainly if plainly != found.verdict else "")
    header = getattr(results, "header", {})
    if header.get("default_parameters") is False and not exact:
        found = _of_a_rerun(found, header)
    reached = [says for says, _, outcome in found.parts if outcome.n] if claim.rungs else []
    return replace(found, profile=profile, scope=scope_words(claim, header, profile, found.n, reached))


def _of_a_rerun(found: Judgement, header: Mapping[str, Any]) -> Judgement:
    """The judgement of a run with changed parameters: none of the claim where its settings or data are other than
    the profile's, and open where its seeds are too few."""
    if found.verdict == NOT_TESTED:
        return found
    few = [] if found.claim.out_of_reach else [o.n for o in found.outcomes if not can_hold(o.test, o.n)]
    if few:
        found = replace(found, verdict=OPEN, few=min(few))
    if other := header.get("other_settings"):
        return replace(found, verdict=NOT_TESTED, remark=f"with {other} it reads “{found.verdict}”")
    return found


def _judge_whole(claim: Claim, results: Mapping[str, np.ndarray]) -> Judgement:
    printed, corrected = evaluate(claim.test, results, claim.id, claim.effect), None
    if claim.corrected:
        alike = claim.effect if claim.corrected.kind == claim.test.kind else None
        corrected = evaluate(claim.corrected, results, claim.id, alike)
    verdict = word(claim, [printed.holds])
    if verdict == WRONG and corrected and corrected.holds:
        verdict = HOLDS_IF if claim.condition else CORRECTED
    elif verdict == HOLDS and claim.condition and corrected is None:  # the test ran under that condition
        verdict = HOLDS_IF
    shown = corrected if printed.holds is False else None
    return _judgement(claim, verdict, printed, printed.n, printed.detail, corrected=shown)


def _judge_parts(claim: Claim, results: Mapping[str, np.ndarray]) -> Judgement:
    outcomes = [evaluate(part.test, results, claim.id, part.effect or claim.effect) for part in claim.parts]
    held = [outcome.holds for outcome in outcomes]
    verdict = word(claim, held)
    if verdict == HOLDS and claim.condition:
        verdict = HOLDS_IF
    # Shown beside the verdict is the part that decides it, else the first that is open.
    rank = {claim.combine == "any": 0, None: 1, claim.combine != "any": 2}
    shown = min(range(len(outcomes)), key=lambda k: rank[held[k]])
    detail = f"part {shown + 1} of {len(outcomes)}: {spelled(claim.parts[shown].says)}"
    parts = tuple(
        (part.says, word(claim, [outcome.holds]), outcome)
        for part, outcome in zip(claim.parts, outcomes, strict=True)
    )
    fewest = min(outcome.n for outcome in outcomes)
    return _judgement(claim, verdict, outcomes[shown], fewest, detail, parts=parts)


def _judgement(claim: Claim, verdict: str, of: Outcome, n: int, detail: str, **more) -> Judgement:
    return Judgement(claim, verdict, of.effect, of.interval, n, of.unit, detail, outcome=of, **more)


def word(claim: Claim, held: Sequence[bool | None]) -> str:
    """The word for what the parts of a claim, or its one test, gave."""
    holds = combine(held, claim.combine)
    if holds is None:
        return OPEN
    if claim.asks:
        return YES if holds else NO
    if claim.statement:
        return HOLDS if holds else WRONG
    if holds:
        return REPRODUCED
    return MIXED if True in held else PARTLY_REFUTED if None in held else NOT_REPRODUCED


# ---- What hangs on a margin: the verdict at half and at twice what a claim's tests ask for -------------------------

FACTORS = (0.5, 2.0)


def at_other_margins(
    claim: Claim, results: Mapping[str, np.ndarray], profile: str | None = None, *, exact: bool = False
) -> tuple[str, ...]:
    """The verdicts at half and at twice the margin; none where no test has a margin."""
    scaled = [_scaled_claim(claim, factor) for factor in FACTORS]
    if all(other.tests == claim.tests for other in scaled):
        return ()
    return tuple(judge(other, results, profile, exact=exact).verdict for other in scaled)


def _scaled_claim(claim: Claim, factor: float) -> Claim:
    own = claim.effect

    def scaled(test: Test, shown: Effect | None) -> Test:
        return kind_of(test).scaled(test, factor, shown)

    parts = tuple(replace(part, test=scaled(part.test, part.effect or own)) for part in claim.parts)
    test, corrected = (each and scaled(each, own) for each in (claim.test, claim.corrected))
    return replace(claim, test=test, parts=parts, corrected=corrected)
