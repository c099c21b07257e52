"""The numbers of the page *How a verdict is made*: a worked example, how often tests err, what another draw changes.

How often the tests err is simulated: true effects on the edge itself, few seeds, three kinds of data. On the edge every
decision but one is a coin that must not fall: a test that says "holds" or "fails" there is wrong in one of two ways, each
of which may happen in 2.5 % of all books. The intervals are those of `bookpress.intervals`, written for many books at
once: values (R, ..., S), R books of S seeds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import comb
from typing import Any

import numpy as np

from bookpress import intervals, paths, results
from bookpress.book import book
from bookpress.claims import Claim, Test, draws, format_number, kinds, locks, without_markup
from bookpress.claims.judging import FALSE_SHARE
from bookpress.claims.kinds import POWER, SIGN_TEST_DECIDES, TOO_MANY, evaluate
from bookpress.claims.words import literal
from bookpress.errors import PressError
from bookpress.intervals import LEVEL, clopper_pearson, is_share
from bookpress.pipeline.prose import ABSENT, Pages
from bookpress.profiles import PUBLISHED
from bookpress.results import Results

# ---- How often each kind of test errs ---------------------------------------------------------------------------------

BOOKS = 4_000
SEEDS = (4, 5, 20)
RNG_SEED = 20260713
CROWDED = (4.5, 0.5)  # of the beta distribution
STEPS, CELLS = 3, 12  # of an ordering, of a worst case

#: Data with mean 0: normal, with tails as heavy as t of three degrees of freedom, and shares near their end
#: (a beta distribution of mean 0.9).
DATA: dict[str, Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, size=shape),
    "shares near 1": lambda rng, shape: rng.beta(*CROWDED, size=shape) - CROWDED[0] / sum(CROWDED),
}


@dataclass(frozen=True)
class Rates:
    """Share of books in which a test errs while the truth lies on the edge: "holds", and "fails"."""

    holds: float
    fails: float


def one_mean(data: str, seeds: int) -> Rates:
    """Student's interval of one mean: levels, rates, paired differences, and ratios by their logarithms."""
    low, high = student_ends(_draw(data, (BOOKS, seeds)))
    return Rates(float((low > 0).mean()), float((high <= 0).mean()))


def relative_error(data: str, seeds: int) -> Rates:
    """Measurement over theory, both with a spread of a tenth per seed: the linearised interval."""
    noise = 0.1 * _draw(data, (BOOKS, 2, seeds)) / DATA_SPREAD[data]
    a, b = 1 + noise[:, 0], 1 + noise[:, 1]
    bottom = b.mean(-1, keepdims=True)
    ratio = a.mean(-1, keepdims=True) / bottom
    low, high = student_ends((a - ratio * b) / bottom)
    ratio = ratio[:, 0] - 1
    return Rates(float((ratio + low > 0).mean()), float((ratio + high <= 0).mean()))


def ordering(data: str, seeds: int) -> Rates:
    """Steps that are all exactly 0 ("fails" by mistake); one that is 0 among large ones ("holds")."""
    low, high = student_ends(_draw(data, (BOOKS, STEPS, seeds)), 1 - 0.05 / STEPS)
    return Rates(float((low[:, 0] > 0).mean()), float((high <= 0).any(axis=1).mean()))


def worst_cell(data: str, seeds: int) -> Rates:
    """Cells that all lie on the upper edge of a wide margin ("fails"); one that does ("holds")."""
    values = _draw(data, (BOOKS, CELLS, seeds))
    own, sure = student_ends(values), student_ends(values, 1 - 0.05 / CELLS)
    return Rates(float((own[1][:, 0] < 0).mean()), float((sure[0] > 0).any(axis=1).mean()))


def share(chance: float, seeds: int) -> Rates:
    """A share of seeds against its true chance, by the exact interval; all outcomes counted, none drawn."""
    hits = np.arange(seeds + 1)
    weights = np.array([comb(seeds, k) * chance**k * (1 - chance) ** (seeds - k) for k in range(seeds + 1)])
    ends = np.array([intervals.clopper_pearson(int(k), seeds) for k in hits])
    return Rates(float(weights[ends[:, 0] > chance].sum()), float(weights[ends[:, 1] <= chance].sum()))


def paired_shares(chance: float, seeds: int) -> Rates:
    """Two arms whose seeds differ with a chance, as often one way as the other: the truth is 0."""
    half = chance / 2
    held = failed = 0.0
    for a, b in product(range(seeds + 1), repeat=2):
        if a + b <= seeds:
            arms = np.arange(seeds)
            first, second = (arms < a).astype(float), ((arms >= a) & (arms < a + b)).astype(float)
            _, low, high = intervals.paired_shares(first, second)
            ways = comb(seeds, a) * comb(seeds - a, b)
            weight = ways * half ** (a + b) * (1 - chance) ** (seeds - a - b)
            held, failed = held + weight * (low > 0), failed + weight * (high <= 0)
    return Rates(held, failed)


def recorded_coverage(samples: list[np.ndarray], seeds: int, books: int = 1000) -> np.ndarray:
    """In how many books of `seeds` drawn from each recorded sample its mean lies in Student's interval."""
    rng = np.random.default_rng(RNG_SEED)
    found = []
    for values in samples:
        if np.ptp(values) == 0:  # the rounding of its mean must not miss it
            found.append(1.0)
            continue
        low, high = student_ends(rng.choice(values, (books, seeds)) - values.mean())
        found.append(float(((low <= 0) & (high >= 0)).mean()))
    return np.array(found)


def student_ends(values: np.ndarray, level: float = intervals.LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Student's interval over the last axis."""
    from scipy.special import stdtrit

    count = values.shape[-1]
    half = stdtrit(count - 1, (1 + level) / 2) * values.std(axis=-1, ddof=1) / np.sqrt(count)
    middle = values.mean(axis=-1)
    return middle - half, middle + half


def _draw(data: str, shape: tuple[int, ...]) -> np.ndarray:
    return DATA[data](np.random.default_rng(RNG_SEED), shape)


#: Standard deviations of DATA.
DATA_SPREAD = {"normal": 1.0, "heavy tails": 3**0.5, "shares near 1": (0.9 * 0.1 / 6) ** 0.5}
#: What the page and the tests show, by name; each takes the kind of data and the number of seeds.
KINDS: dict[str, Callable[[str, int], Rates]] = {
    "a mean, difference, rate, equivalence, or ratio in logarithms": one_mean,
    "a relative error": relative_error,
    "an ordering of four": ordering,
    "the worst of twelve cells": worst_cell,
}
CHANCES = (0.5, 0.9)
EVENTS: dict[str, Callable[[float, int], Rates]] = {
    "a share of seeds": share,
    "a difference of two shares of seeds": paired_shares,
}

# ---- What another draw changes ------------------------------------------------------------------------------------------

#: Relative difference up to which two draws count as the same where they are counted.
NEAR = 1e-3
#: How a test was drawn again.
WAYS = (
    "the same seeds, the same measure",
    "the same seeds, measured otherwise",
    "other seeds, or more of them",
)


def redrawn(listed: Iterable[Claim]) -> Iterator[tuple[str, bool | None, bool | None]]:
    """(way, what a run says, what the next one says that gave a test other numbers), for each test of each claim
    by all that was published, on whatever page it is shown; `way` is one of `WAYS`."""
    by_chapter = defaultdict(list)
    for claim in listed:
        by_chapter[claim.chapter].append(claim)
    for name, own in by_chapter.items():
        for profile in PUBLISHED:
            path = paths.executed_folder() / profile / f"{name}.json"
            if path.is_file() and (last := results.read(path)).draws:
                runs = [*last.draws, replace(last, draws=())]
                for claim in own:
                    for test in claim.tests:
                        yield from _turns(claim, test, runs)


def _turns(claim: Claim, test: Test, runs: list[Results]) -> Iterator[tuple[str, bool | None, bool | None]]:
    """Of one test, from each run that it can be judged by to the next one."""
    names, said = test.result_names(), []
    for run in (each for each in runs if set(names) <= set(each)):
        try:
            found = evaluate(test, run, claim.id)
        except PressError:  # not as the test of today needs it
            continue
        if found.n and not (said and draws.is_in(said[-1][0], run, names, relative=NEAR)):
            said.append((run, found.holds))
    for (old, then), (new, now) in pairwise(said):
        if any(old.entries[name]["seeds"] != new.entries[name]["seeds"] for name in names):
            yield WAYS[2], then, now
        else:
            yield WAYS[draws.otherwise(claim, old, new) != ""], then, now


# ---- What the page shows ------------------------------------------------------------------------------------------------

#: The claim of the worked example: a ratio of five paired seeds.
EXAMPLE = "landscape-loss-range"
Tested = list[tuple[dict[str, Any], dict[str, Any]]]  # rows of the ledger, with their tests that have a p


def of_verdicts(pages: Pages) -> dict[str, str]:
    """What `{{ here:… }}` stands for on the page that says how a verdict is made."""
    from scipy.special import betaincinv

    rows = list(pages.rows.values())
    tested = [(row, test) for row in rows for test in row["tests"] if test["p"] is not None]
    nine_in_ten = Test("level", a="a", side="greater", threshold=0.9, events=True)
    return {
        "power": str(round(100 * POWER)),
        "too_many": str(TOO_MANY),
        "errors": error_table(),
        "books": f"{BOOKS:,}",
        "example": example(tested),
        "five_of_five": format_number(clopper_pearson(5, 5)[0], ".0%"),
        "nine_in_ten": str(kinds.least_seeds(nine_in_ten)),
        "middle": format_number(float(betaincinv(*CROWDED, 0.5)), ".2f"),
        "shared": _shared(tested, pages),
        **redrawings(pages.claims),
        **_coverage(tested),
        **_many(rows, tested),
        **changed_tests(locks.deviations(locks.read().lines), set(pages.rows)),
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """Markdown: the first columns are of words, the others of numbers."""
    line = ["|:---" * words + "|---:" * (len(head) - words) + "|"]
    return "\n".join(
        [f"| {' | '.join(head)} |", *line, *(f"| {' | '.join(map(str, row))} |" for row in rows)]
    )


def error_table() -> str:
    """Percentages of books in which a test says "holds" or "fails" by mistake, by interval and data."""
    cases = [(name, rates, each, each) for name, rates in KINDS.items() for each in DATA]
    for name, rates in EVENTS.items():
        cases += [(name, rates, f"chance {each}", each) for each in CHANCES]
    rows = []
    for name, rates, said, case in cases:
        found = [rates(case, seeds) for seeds in SEEDS]
        rows.append([name, said, *(f"{100 * each.holds:.1f}, {100 * each.fails:.1f}" for each in found)])
    return _table(["interval", "data", *(f"{seeds} seeds" for seeds in SEEDS)], rows, words=2)


def redrawings(listed: Sequence[Claim]) -> dict[str, str]:
    """What published runs say by today's tests against the one before: a table, and the counts that a sentence
    needs."""
    counted = {way: [0, 0, 0, 0] for way in WAYS}
    for way, then, now in redrawn(listed):
        turned, to_open = then != now, None in (then, now)
        each = (True, turned, turned and to_open, turned and not to_open)
        counted[way] = [count + one for count, one in zip(counted[way], each, strict=True)]
    head = ["drawn again with", "tests", "turned", "to or from open", "from holds to fails or back"]
    said = {"draws": _table(head, [[way, *numbers] for way, numbers in counted.items()])}
    for kind, way in {"same": WAYS[0], "other": WAYS[2]}.items():
        tests, turned, _, back = counted[way]
        said |= {f"{kind}_tests": str(tests), f"{kind}_turned": str(turned)}
        said[f"{kind}_reversed"] = str(back) if back else "none"
    return said


def example(tested: Tested) -> str:
    """One claim from its test to its verdict, in numbered steps."""
    chosen = [pair for pair in tested if pair[0]["id"] == EXAMPLE] or tested
    if not chosen:
        return ABSENT
    row, test = chosen[0]
    values, on_scale = np.array(test["values"]), _on_scale(test)
    fixed = (
        f"which makes the row exploratory ({late})" if (late := row["exploratory"]) else "fixed beforehand"
    )
    steps = [f"The test, {fixed}: {test['asks']}.", f"What the seeds gave: {_listed(values)}."]
    if test["test"]["kind"] == "ratio":
        steps.append(f"They are ratios, so their logarithms count: {_listed(on_scale)}.")
    if test["interval"] and values.size > 1:
        from scipy.special import stdtrit

        quantile, spread = float(stdtrit(values.size - 1, 0.975)), float(on_scale.std(ddof=1))
        numbers = (float(on_scale.mean()), spread, quantile, quantile * spread / math.sqrt(values.size))
        mean, spread, quantile, half = (format_number(number, ".3f") for number in numbers)
        size = f"Student's t for {values.size} seeds is {quantile}, so half the interval is {half}"
        steps.append(f"Mean {mean}, standard deviation {spread}; {size}.")
        steps.append(f"In words: {test['effect']['words']}, 95 % interval {test['interval']['words']}.")
    marks = [format_number(test[name], ".2g") for name in ("p", "sign_p")]
    steps.append(
        f"The verdict: **{row['verdict']}**. {test['side']} of {test['n']} seeds are on its side; "
        f"p is {marks[0]} by the interval and {marks[1]} by the sign test."
    )
    numbered = [f"{number}. {step}" for number, step in enumerate(steps, start=1)]
    return "\n".join([f"> {without_markup(test['says'])}", "", *numbered])


def changed_tests(found: list[locks.Deviation], listed: Container[str]) -> dict[str, str]:
    """How many preregistered tests were changed, and a list of them by day, chapter and reason; a claim that
    is listed is a link to its page."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in found:
        to = f"{each.chapter}.html#claim-{each.claim}"
        name = f'<a href="{to}">{each.claim}</a>' if each.claim in listed else each.claim
        groups[each.words, each.chapter].append(name)
    lines = [
        f"- {literal(words)} ({chapter}: {', '.join(names)})" for (words, chapter), names in groups.items()
    ]
    return {"changed": str(len(found)), "changes": "\n".join(lines) or ABSENT}


def _coverage(tested: Tested) -> dict[str, str]:
    """Student's interval of five seeds, drawn from what was recorded with at least twenty."""
    recorded = [_on_scale(test) for _, test in tested if test["n"] >= 20]
    recorded = [values for values in recorded if not is_share(values)]
    if not recorded:
        return {"samples": "0", "median": ABSENT, "tenth": ABSENT}
    shares = recorded_coverage(recorded, 5)
    median, tenth = (format_number(float(np.quantile(shares, q)), ".1%") for q in (0.5, 0.1))
    return {"samples": str(len(recorded)), "median": median, "tenth": f"at most {tenth}"}


def _many(rows: list[dict[str, Any]], tested: Tested) -> dict[str, str]:
    decided = [test for _, test in tested if test["holds"] is not None]
    many = [test for test in decided if test["n"] >= SIGN_TEST_DECIDES]
    margins = [row for row in rows if row["other_margins"]]
    kept = sum(test["kept"] for _, test in tested)
    steady = sum(set(row["other_margins"]) == {row["verdict"]} for row in margins)
    counts = {
        "tests": len(tested),
        "decided": len(decided),
        "kept": kept,
        "bar": format_number(FALSE_SHARE * kept / max(len(tested), 1), ".3f"),
        "false": math.ceil(FALSE_SHARE * kept),
        "many": len(many),
        "disagree": sum(test["sign_p"] > 1 - LEVEL for test in many),
        "margins": len(margins),
        "turned": len(margins) - steady,
    }
    return {name: str(count) for name, count in counts.items()}


def _shared(tested: Tested, pages: Pages) -> str:
    """How many tests rest on the same seeds of the same network: same data, size, steps and seeds."""
    groups: dict[tuple, Tested] = defaultdict(list)
    for row, test in tested:
        results = pages.evidence[row["chapter"]].results
        header, own = results.header, test["test"]
        names = [each["name"] for each in header.get("data", [])]
        data = ", ".join(book().data_names.get(name, name) for name in names)
        size = tuple(str(header.get("parameters", {}).get(key)) for key in ("width", "depth", "steps"))
        seeds = results.entries[own.get("a") or own["results"][0]]["seeds"]
        groups[data, size, tuple(seeds)].append((row, test))
    if not groups:
        return ABSENT
    (data, _, seeds), largest = max(groups.items(), key=lambda group: len(group[1]))
    chapters = {row["chapter"] for row, _ in largest}
    sure = sum(test["holds"] is not None for _, test in largest)
    where = "one chapter" if len(chapters) == 1 else f"{len(chapters)} chapters"
    return (
        f"The largest family, {len(largest)} tests of {where}, {sure} of them decided, "
        f"rests on the same {len(seeds)} seeds of networks of one size ({data or 'no data set'}): an unlucky "
        "draw of these seeds would show in many rows at once."
    )


def _on_scale(test: dict[str, Any]) -> np.ndarray:
    """The values as the interval takes them: ratios by their logarithms."""
    values = np.array(test["values"], dtype=float)
    return np.log(values) if test["test"]["kind"] == "ratio" else values


def _listed(values: np.ndarray) -> str:
    return ", ".join(format_number(float(value)) for value in values)


#: Page -> (pages) -> what `{{ here:NAME }}` stands for on it.
PAGES = {"how-a-verdict-is-made": of_verdicts}
