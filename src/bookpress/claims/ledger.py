"""What a test found, for readers: effect and interval in words or as bare numbers."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix
from typing import Any

import numpy as np

from bookpress import results as session
from bookpress.claims import locks
from bookpress.claims.claim import Claim, Effect, Outcome, Test
from bookpress.claims.judging import NOT_TESTED, Judgement, judge, other_settings, word
from bookpress.claims.kinds import describe_test, kind_of
from bookpress.claims.reading import Carried, carried, load_claims
from bookpress.claims.reading import settings as carried_settings
from bookpress.claims.words import OWN_QUESTION, Shown, alike, literal, spelled, telling, without_markup
from bookpress.errors import PressError
from bookpress.intervals import LEVEL, is_share

NO_INTERVAL = "no interval"
ABSENT = "–"


def effect_and_interval(found: Judgement | Outcome) -> Shown:
    """("4.52 times as large without batch norm", "3.58 to 5.7"), the 95 % interval in the effect's own
    direction and unit, empty for an exact check; a dash if nothing was measured."""
    outcome = found.outcome if isinstance(found, Judgement) else found
    if outcome is None or outcome.test is None or math.isnan(outcome.effect):
        return ABSENT, ""
    kind, (low, high) = kind_of(outcome.test), outcome.interval
    words, ends = kind.effect(outcome, outcome.shown or Effect())
    words = spelled(words)
    if low == high:
        return words, ""
    unknown = math.isinf(high) and (math.isinf(low) or kind.in_factors and low == 0)
    return words, NO_INTERVAL if unknown else ends


def format_effect(found: Judgement | Outcome, spec: str | None = None) -> str:
    """Effect with its 95 % interval in words; with a `spec` the bare numbers: "0.12 (95 % interval 0.1 to
    0.14)"."""
    effect, interval = effect_and_interval(found) if spec is None else _numbers(found, spec)
    return f"{effect} ({interval_words(interval)})" if interval else effect


def interval_words(interval: str) -> str:
    """The second of `effect_and_interval`, where no heading says what it is."""
    return interval if interval in ("", NO_INTERVAL) else f"95 % interval {interval}"


def _numbers(found: Judgement | Outcome, spec: str) -> Shown:
    if math.isnan(found.effect):
        return ABSENT, ""
    low, high = found.interval
    spec = telling(low, high, spec)
    middle, *ends = alike((found.effect, low, high), spec)
    effect = f"{middle} {found.unit}".strip()
    if low == high:
        return effect, ""
    if math.isinf(low) and math.isinf(high):
        return effect, NO_INTERVAL
    return effect, " to ".join(ends)


# ---- Beside an interval: the p-value at which it decides, the sign test, and what remains of many tests ------------

#: Smallest p that is told apart from 0.
SMALLEST = 1e-12
#: From so many seeds on the sign test can decide at 5 %: 2 / 2⁶ is below, 2 / 2⁵ above.
SIGN_TEST_DECIDES = 6
#: Share of what Benjamini and Hochberg keep that may be false.
FALSE_SHARE = 0.05


@dataclass(frozen=True)
class Significance:
    """How surely a test decides; p is the smallest α at which the two-sided interval at 1 - α still does.

    `side` of `n` seeds lie where the verdict says, or for an open test on the side of the median; `sign_p`
    is the same p by the sign test, which assumes nothing of the distribution and is at least 2 / 2ⁿ; for a
    share of seeds by the exact binomial test of that share.
    """

    p: float
    side: int
    n: int
    sign_p: float


def significance(outcome: Outcome) -> Significance | None:
    """None for what is exact (an identity, a count of violations) or was not measured."""
    if not outcome.cells:
        return None
    p = _student_p(outcome)
    if p is None:
        p = smallest(
            lambda alpha: kind_of(outcome.test).decide(outcome.test, outcome.cells, 1 - alpha)[0] is not None
        )
    return Significance(p, *sign_test(outcome.test, outcome.values, outcome.holds))


def smallest(decides: Callable[[float], bool]) -> float:
    """The smallest α at which a test decides, to three digits; 1 where it does at none.

    Intervals at 1 - α are nested, so that what decides at one α decides at every larger one.
    """
    if decides(SMALLEST):
        return 0.0
    if not decides(1 - SMALLEST):
        return 1.0
    low, high = math.log(SMALLEST), 0.0
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (low, middle) if decides(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _student_p(outcome: Outcome) -> float | None:
    """The same in closed form for one mean by Student's interval: of its distance from the nearest edge.

    None for all others: shares, several cells, grids, and where nothing varies.
    """
    from scipy.special import stdtr, stdtrit

    (cell, *more), test = outcome.cells, outcome.test
    numbers = (outcome.effect, outcome.interval[0], *kind_of(test).edges(test))
    if more or test.cells or cell.resolution or is_share(cell.values) or not kind_of(test).one_mean:
        return None
    if cell.in_logs:
        numbers = tuple(math.log(number) if number > 0 else -math.inf for number in numbers)
    effect, low, *bounds = numbers
    if not 0 < effect - low < math.inf:
        return None
    error = (effect - low) / float(stdtrit(outcome.n - 1, (1 + LEVEL) / 2))
    return 2 * float(stdtr(outcome.n - 1, -min(abs(effect - edge) for edge in bounds) / error))


def sign_test(test: Test, values: np.ndarray, holds: bool | None) -> tuple[int, int, float]:
    """(seeds on the verdict's side, seeds that differ from the edge, two-sided p of the median).

    Against each edge of the region in which the claim holds, seeds above and below are heads and tails of a
    fair coin (Arbuthnott 1710); where each is a 0 or a 1, of one that falls on 1 as often as the edge says.
    Within ± both edges must be passed, outside one.
    """
    low, high = kind_of(test).edges(test)
    inside = int(((values > low) & (values < high)).sum())
    below, above = int((values <= low).sum()), int((values >= high).sum())
    if holds is None:
        holds = bool(low < np.median(values) < high)
    if holds:
        return inside, values.size, max(_coin(values, edge) for edge in (low, high))
    return max(below, above), values.size, _coin(values, low if below >= above else high)


def benjamini_hochberg(ps: Sequence[float], rate: float = FALSE_SHARE) -> list[bool]:
    """Which of m tests remain where at most `rate` of those kept may be false (1995): p_(k) ≤ k/m · rate."""
    ranked = np.sort(np.asarray(ps, dtype=float))
    kept = ranked <= rate * np.arange(1, ranked.size + 1) / max(ranked.size, 1)
    limit = ranked[kept][-1] if kept.any() else -1.0
    return [bool(p <= limit) for p in ps]


def _coin(values: np.ndarray, edge: float) -> float:
    """Two-sided p that the coin falls so unevenly; 0 at an infinite edge, where no value can cross."""
    from scipy.special import bdtr, bdtrc

    if math.isinf(edge):
        return 0.0
    if is_share(values) and 0 < edge < 1:
        heads, falls, chance = float(values.sum()), values.size, edge
    else:
        heads = int((values > edge).sum())
        falls, chance = heads + int((values < edge).sum()), 0.5
    most, least = math.ceil(heads), math.floor(heads)
    if chance == 0.5:  # exact: rounded to six digits many such numbers are ties
        fewer, more = (
            sum(math.comb(falls, k) for k in range(n + 1)) / 2**falls for n in (most, falls - least)
        )
    else:
        fewer, more = bdtr(most, falls, chance), bdtrc(least - 1, falls, chance)
    return min(1.0, 2 * float(min(fewer, more)))


# ---- One row of the ledger for each claim: everything that a table, a chart or a reader's own code needs of it
# A row is plain JSON. Its keys:
#
# - `id`, `chapter`, `figure` (its name in the chapter), `says`, `source` (key, version, where); `was`, the
#   words of its lock where `says` only says the same more clearly,
# - `kind`: measurement, statement or question; `combine`: all or any of its parts; `rungs`: whether these
#   are sizes of what was trained; `of`: the claim that another chapter judges at one size, if one does,
# - `rests_on`: the instruments that its numbers come from, ids of book/instruments.yml,
# - `verdict`; `words`, the verdict as readers see it; `remark`, what changed since the run; `fresh`, the verdict by the
#   last run's seeds alone, where with those of earlier draws it is another,
# - `exploratory`: why its test counts as made after its data; `locked`: since when it stands; `changed`: when
#   and why its preregistered test was changed,
# - `effect` and `interval` of the test that decides, as below; `n`, `scope`, `profile`,
# - `other_margins`: the verdicts at half and at twice the margin, or null,
# - `tests`, one for each test:
#   - `role`: whole, part, printed or corrected; `says`; `asks`, what must hold, in words,
#   - `test` as in the claims file; `verdict`; `holds`: true, false, or null for open,
#   - `effect` {number, unit, words}; `interval` {low, high, words} of 95 %; `n`,
#   - `values`: what the interval is of, one for each seed; `side`: how many are on the verdict's side,
#   - `p` by the interval and `sign_p` by the sign test; `kept` by Benjamini and Hochberg, in the whole book.
#
# What is not there is null: no interval of an exact check, no number of what was not measured.

DIGITS = 6
NOT_RUN = "not run"


def ledger_row(
    claim: Claim, found: Judgement | None, other_margins: Sequence[str] = (), rests_on: Sequence[str] = ()
) -> dict[str, Any]:
    """The row of one claim, `kept` still null; None: its chapter has not been run."""
    counted = found is not None and found.verdict != NOT_TESTED
    row: dict[str, Any] = {
        "id": claim.id,
        "chapter": claim.chapter,
        "says": claim.says,
        "was": claim.was,
        "source": {"key": claim.source.key, "version": claim.source.version, "where": claim.source.where},
        "kind": "question" if claim.asks else "statement" if claim.statement else "measurement",
        "verdict": found.verdict if found else NOT_RUN,
        "words": found.words if found else NOT_RUN,
        "effect": None,
        "interval": None,
        "n": found.n if found else 0,
        "scope": found.scope if found else "",
        "profile": found.profile if found else None,
        "combine": claim.combine,
        "rungs": claim.rungs,
        "of": claim.of,
        "rests_on": list(rests_on),
        "figure": claim.figure,
        "remark": found.remark if found else "",
        "fresh": found.fresh if found else "",
        "exploratory": found.exploratory if found else "",
        "locked": found.locked if found else "",
        "changed": list(found.changed) if found else [],
        "other_margins": list(other_margins) if counted and other_margins else None,
        "tests": [],
    }
    if found and found.outcome:
        row["tests"] = list(_tests(claim, found, counted))
        row |= {"effect": _effect(found.outcome), "interval": _interval(found.outcome)}
    return row


def keep(rows: Iterable[dict[str, Any]], rate: float = FALSE_SHARE) -> None:
    """Set `kept` in every test that has a p-value and counts: at most `rate` of the kept may be false."""
    tests = [test for row in rows for test in row["tests"] if test["p"] is not None]
    marks = benjamini_hochberg([test["p"] for test in tests], rate)
    for test, mark in zip(tests, marks, strict=True):
        test["kept"] = mark


def _tests(claim: Claim, found: Judgement, counted: bool) -> Iterable[dict[str, Any]]:
    if found.parts:
        for part, (says, _, outcome) in zip(claim.parts, found.parts, strict=True):
            reached = outcome.n > 0  # of rungs a run has some only
            yield _test("part", says, outcome, claim, part.effect or claim.effect, counted and reached)
        return
    role = "printed" if claim.corrected else "whole"
    yield _test(role, claim.says, found.outcome, claim, claim.effect, counted)
    if found.corrected:
        says = claim.correction or (f"if {claim.condition}" if claim.condition else "corrected")
        yield _test("corrected", says, found.corrected, claim, found.corrected.shown, counted)


def _test(
    role: str, says: str, outcome: Outcome, claim: Claim, shown: Effect | None, counted: bool
) -> dict[str, Any]:
    sure = significance(outcome) if counted else None
    return {
        "role": role,
        "says": says,
        "asks": describe_test(outcome.test, shown),
        "test": {key: list(v) if isinstance(v, tuple) else v for key, v in outcome.test.keys().items()},
        "verdict": word(claim, [outcome.holds]) if counted else NOT_TESTED,
        "holds": outcome.holds,
        "effect": _effect(outcome),
        "interval": _interval(outcome),
        "n": outcome.n,
        "values": [_number(value) for value in outcome.values],
        "side": sure.side if sure else None,
        "p": _number(sure.p) if sure else None,
        "sign_p": _number(sure.sign_p) if sure else None,
        "kept": None,
    }


def _effect(outcome: Outcome) -> dict[str, Any]:
    unit = outcome.shown.unit if outcome.shown and not outcome.trials else outcome.unit
    return {"number": _number(outcome.effect), "unit": unit, "words": effect_and_interval(outcome)[0]}


def _interval(outcome: Outcome) -> dict[str, Any] | None:
    low, high = (_number(edge) for edge in outcome.interval)
    if low is None or high is None or low == high:
        return None
    return {"low": low, "high": high, "words": effect_and_interval(outcome)[1]}


def _number(value: float) -> float | None:
    value = float(np.float64(value))
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


# ---- Verdicts for readers: a Markdown table ------------------------------------------------------------------------

UNBROKEN = "\u00a0"
HEAD = "| the source says | measured | verdict |\n|:---|:---|:---|"


def in_bold(judgement: Judgement) -> str:
    """A verdict where nothing else can be shown than words."""
    return f"**{without_markup(judgement.words)}**{exploratory_note(judgement)}"


def markdown_table(judgements: Iterable[Judgement], shown: Callable[[Judgement], str] = in_bold) -> str:
    """A Markdown table: a row per claim, and below it one per part or for the corrected form.

    shown: how the page shows a verdict.
    """
    lines = [HEAD]
    for judgement in judgements:
        claim, shared = judgement.claim, _shared(judgement)
        notes = [_where(claim)]
        notes += [must_hold(claim.test, claim.effect)] if claim.test else shared
        measured = _measured(judgement) if claim.test else ""
        scope = f"<br><small>{judgement.scope}</small>" if judgement.scope else ""
        lines.append(row(claim.says, notes, measured, f"{shown(judgement)}{changed_note(judgement)}{scope}"))
        if judgement.corrected:
            words = claim.correction or ("under the condition" if claim.condition else "corrected")
            asked = must_hold(claim.corrected, judgement.corrected.shown)
            lines.append(row(f"– {words}", [asked], _measured(judgement.corrected), ""))
        for part, (says, verdict, found) in zip(claim.parts, judgement.parts, strict=False):
            if claim.rungs and verdict == NOT_TESTED:
                continue  # the table of the rungs names those that no run has reached
            notes = [] if shared else [must_hold(part.test, part.effect or claim.effect)]
            fewest = 0 if found.n == judgement.n else found.n
            lines.append(row(f"– {says}", notes, _measured(found, inline=bool(shared), n=fewest), verdict))
    return "\n".join(lines)


def exploratory_note(judgement: Judgement) -> str:
    """Below a verdict whose test did not stand before its data: that it is exploratory, and why."""
    reason = without_markup(judgement.exploratory)
    return f"<br><small>exploratory: {reason}</small>" if reason else ""


def changed_note(judgement: Judgement) -> str:
    """Below a verdict: when and why its preregistered test was changed."""
    return "".join(f"<br><small>test changed {literal(words)}</small>" for words in judgement.changed)


def must_hold(test: Test, shown: Effect | None = None) -> str:
    """What a test asks for, in words."""
    return f"must hold: {describe_test(test, shown)}"


def _where(claim: Claim) -> str:
    """Where the source says it; of a question that the book asks itself, what it is about."""
    if not claim.asks:
        return claim.source.where
    asks = f"the book's {OWN_QUESTION}, "
    return f"{'' if OWN_QUESTION in claim.says else asks}on {claim.source.where}"


def _shared(judgement: Judgement) -> list[str]:
    """How parts combine, and what all of them have to fulfil where that is the same: said once, so that a
    part is one line."""
    claim = judgement.claim
    tests = {must_hold(part.test, part.effect or claim.effect) for part in claim.parts}
    if len(judgement.parts) < 2 or len(tests) != 1:
        return []
    return [f"{'any' if claim.combine == 'any' else 'each'} {tests.pop()}", "95 % intervals"]


def _measured(found: Judgement | Outcome, inline: bool = False, n: int = 0) -> str:
    """Effect, then small its interval and the number of seeds if it is given; inline: what `_shared` says is
    left out."""
    effect, interval = effect_and_interval(found)
    said = f"({interval})".replace(" ", UNBROKEN) if inline and interval else interval_words(interval)
    notes = "; ".join(words for words in (said, f"n = {n}" if n else "") if words)
    return f"{effect}{' ' if inline else '<br>'}<small>{notes}</small>" if notes else effect


def row(says: str, notes: list[str], *others: str) -> str:
    """One row of a table: what is said, small below it the notes, and the other cells."""
    said = "<br><small>".join(without_markup(text) for text in (says, "; ".join(notes)) if text)
    cells = (f"{said}</small>" if notes else said, *others)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# ---- Which answers stay and which turn: tables of claims against the rungs of a ladder -----------------------------

UNTRIED, NO_SIZE = "–", "No size has been reached."
#: Whether a claim holds and whether it fails at some rung -> what is said of it.
GROUPS = {
    (True, True): "Turns between the sizes",
    (True, False): "Holds wherever it is decided",
    (False, True): "Fails wherever it is decided",
    (False, False): "Open",
}


def rung_table(judgements: Iterable[Judgement]) -> str:
    """Markdown tables, one for the claims that turn, one each for those that hold, fail and are open at all
    rungs: a row for each claim that is judged rung by rung, a column for each rung that was reached, whose
    seeds stand in its head where all claims have as many; whether it holds there, and beside the word the
    effect. Below them the rungs that no run has reached."""
    rows = [(found, _tried(found)) for found in judgements if found.claim.rungs]
    named = dict.fromkeys(says for found, _ in rows for says, _, _ in found.parts)
    seeds = {says: {tried[says].n for _, tried in rows if says in tried} for says in named}
    shown, missing = [says for says in named if seeds[says]], [says for says in named if not seeds[says]]
    if not shown:
        return NO_SIZE
    groups: dict[str, list[str]] = {title: [] for title in GROUPS.values()}
    for found, tried in ((found, tried) for found, tried in rows if tried):
        words, short = shared_words([effect_and_interval(outcome)[0] for outcome in tried.values()])
        shared = f"<br><small>{words}</small>".replace("|", "\\|") * bool(words)
        own = dict.fromkeys((says for says, _, _ in found.parts), UNTRIED)
        own |= {says: _cell(outcome, short, len(seeds[says]) > 1) for says, outcome in tried.items()}
        says = without_markup(found.claim.says).replace("|", "\\|") + exploratory_note(found) + shared
        groups[_group(tried)].append(f"| {says} | {' | '.join(own.get(each, '') for each in shown)} |")
    counted = {says: f"<br><small>n = {min(seeds[says])}</small>" * (len(seeds[says]) == 1) for says in shown}
    titles = " | ".join(_short(says) + counted[says] for says in shown)
    head = [f"| the source says | {titles} |", "|:---|" + ":---|" * len(shown)]
    tables = [
        "\n".join([f"**{title}** ({len(lines)})\n", *head, *lines])
        for title, lines in groups.items()
        if lines
    ]
    if missing:
        tables.append(f"Not tested at this scale: {'; '.join(map(_short, missing))}.")
    return "\n\n".join(tables)


def _tried(found: Judgement) -> dict[str, Outcome]:
    """What was found at each rung that was reached."""
    return {says: outcome for says, verdict, outcome in found.parts if verdict != NOT_TESTED}


def _group(tried: Mapping[str, Outcome]) -> str:
    here = {outcome.holds for outcome in tried.values()}
    return GROUPS[True in here, False in here]


def turned(judgements: Iterable[Judgement]) -> str:
    """How many claims hold at one rung and fail at another, hold or fail wherever they are decided, and are
    open; and, where a width has rungs of two lengths, how many turn with the width and with the length."""
    found = [tried for each in judgements if each.claim.rungs and (tried := _tried(each))]
    if not found:
        return NO_SIZE
    counts = Counter(map(_group, found))
    turn, hold, fail, still = (counts[title] for title in GROUPS.values())
    who = "One claim" if turn == 1 else f"{turn or 'None'} of the {len(found)} claims"
    s = "s" * (turn < 2)
    decided = f"{hold} hold{'s' * (hold == 1)} and {fail} fail{'s' * (fail == 1)} at every size that decides"
    left = f"{still or 'None'} {'is' if still == 1 else 'are'} open at every size"
    return f"{who} hold{s} at one size and fail{s} at another. Of the others {decided}. {left}.{_with_what(found)}"


def _with_what(found: list[dict[str, Outcome]]) -> str:
    """Whether claims turn between widths, at as many steps, or between numbers of steps, at one width."""
    wide, long = 0, []
    for tried in found:
        widths, lengths = defaultdict(list), defaultdict(list)
        for says, outcome in tried.items():
            if outcome.holds is not None:
                width, _, steps = _short(says).partition(", ")
                widths[steps].append(outcome.holds)
                lengths[width].append(outcome.holds)
        wide += any(len(set(decided)) > 1 for decided in widths.values())
        long += [(decided[0], decided[-1]) for decided in lengths.values() if len(decided) > 1]
    if not long:
        return ""
    up, down = long.count((False, True)), long.count((True, False))
    return (
        f" At equal steps, width changes the verdict of {wide or 'none'}. At equal width, longer training changes that of "
        f"{up + down or 'none'} of {len(long)}. {up} turn from no to yes, {down} from yes to no."
    )


def _short(says: str) -> str:
    return says.rstrip(".")


def shared_words(effects: list[str]) -> tuple[str, Callable[[str], str]]:
    """The words that all effects begin and end with, behind their numbers, to stand once;
    and how an effect reads without them: "4.96 times fewer steps with batch norm" becomes "4.96"."""
    said = [effect.split(" ") for effect in effects]
    before = commonprefix([words[1:] for words in said])
    after = commonprefix([words[1 + len(before) :][::-1] for words in said])[::-1]
    alike = all(len(words) == 1 + len(before) + len(after) for words in said)
    shared = " ".join(before + (after if alike or not after else ["…", *after]))

    def short(effect: str) -> str:
        words = effect.split(" ")
        return " ".join(words[:1] + words[1 + len(before) : len(words) - len(after)])

    return shared, short


def _cell(outcome: Outcome, short: Callable[[str], str], counted: bool) -> str:
    effect = short(effect_and_interval(outcome)[0]).replace("|", "\\|")
    said = f"open, {effect}" if outcome.holds is None else f"{'yes' if outcome.holds else 'no'}, **{effect}**"
    return said + f"<br><small>n = {outcome.n}</small>" * counted


# ---- The last cell of a notebook: this run's numbers and verdicts beside the book's --------------------------------

SHOWN_HEAD = (
    "| the source says | this run | its verdict | the book's run | its verdict |\n|:---|:---|:---|:---|:---|"
)


def show_verdicts(chapter: str, profile: str, *, exact: bool = False) -> None:
    """Show, below the last cell of a notebook, what the book's claims say of the numbers that it recorded.

    Under `run` it stays silent: there the page shows the verdicts. The claims and the book's verdicts
    are those that the notebook carries, else those of the book around it; where there is neither, and for
    what this run has not recorded, it says so.
    """
    if os.environ.get("BNBOOK_RESULTS"):
        return
    from IPython.display import Markdown, display

    try:
        rows = carried(chapter) or of_the_book(chapter, exact=exact)
        found = session.current()
        found.header |= of_a_notebook(chapter, found, sys._getframe(1).f_globals)
        text = comparison(rows, found, profile, exact=exact)
    except PressError as error:
        text = f"No verdicts: {error}"
    display(Markdown(text))


def of_a_notebook(chapter: str, found: session.Results, values: Mapping[str, Any]) -> dict[str, Any]:
    """What a notebook's results rest on, for its verdicts: they count where its parameters and data are those of
    the book's run at that profile."""
    theirs = carried_settings.get(chapter)
    if theirs is None:
        try:
            theirs = session.load(chapter, values.get("profile")).header["parameters"]
        except PressError:
            theirs = {}
    if theirs.get("profile") != values.get("profile"):
        return {"default_parameters": False, "other_settings": "settings that no run of the book has"}
    other = other_settings(values, theirs, found.header.get("data", []))
    mine = {name: values[name] for name in theirs if name in values}
    return {"default_parameters": False, "other_settings": other, "parameters": mine}


def comparison(
    rows: list[Carried], results: Mapping[str, np.ndarray], profile: str, *, exact: bool = False
) -> str:
    """A Markdown table: a row per claim, this run's effect and verdict, then the book's."""
    lines = [SHOWN_HEAD]
    for carried_row in rows:
        claim = carried_row.claim
        notes = [claim.source.where] + ([must_hold(claim.test, claim.effect)] if claim.test else [])
        try:
            found = judge(claim, results, profile, exact=exact)
            effect, verdict = format_effect(found), f"**{found.words}**"
            notes += [found.detail] if claim.parts else []
        except PressError as missing:
            effect, verdict = ABSENT, f"not judged: {missing}"
        lines.append(row(claim.says, notes, effect, verdict, carried_row.effect, carried_row.verdict))
    return "\n".join(lines)


def of_the_book(chapter: str, *, exact: bool = False) -> list[Carried]:
    """The chapter's claims from the book around this notebook, with the verdicts of its committed run."""
    mine = [claim for claim in load_claims() if claim.chapter == chapter]
    if not mine:
        raise PressError(
            f"the book has no claims for {chapter!r}; expected PART/CHAPTER, such as theory/minima"
        )
    try:
        committed = session.load(chapter)
        found = [judge(claim, committed, committed.profile, exact=exact) for claim in mine]
    except PressError:
        return [Carried(claim, ABSENT, "no committed run") for claim in mine]
    chain = locks.read()
    late = [locks.standing(one.claim, committed, chain).exploratory for one in found]
    marked = [replace(one, exploratory=why).marked for one, why in zip(found, late, strict=True)]
    return [Carried(one.claim, format_effect(one), word) for one, word in zip(found, marked, strict=True)]
