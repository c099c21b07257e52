"""The page "How a verdict is made": its text with one worked example, how often tests err, what is shared."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from bnbook.claims import Claim, Test, error_rates, format_number, kinds, locks, without_markup
from bnbook.claims.judging import POWER, TOO_MANY
from bnbook.claims.ledger import FALSE_SHARE, SIGN_TEST_DECIDES
from bnbook.claims.words import DATA_NAMES, literal
from bnbook.errors import BnbookError
from bnbook.intervals import LEVEL, clopper_pearson, is_share
from bnbook.pipeline.chapters import drawn
from bnbook.pipeline.prose.tokens import ABSENT, Pages

#: The claim of the worked example: a ratio of five paired seeds.
EXAMPLE = "landscape-loss-range"
BLANK = re.compile(r"\{\{\s*here:(\w+)\s*\}\}")
Tested = list[
    tuple[dict[str, Any], dict[str, Any]]
]  # rows of the ledger with those of their tests that have a p


def verdict_page(text: str, pages: Pages) -> str:
    """The text with every `{{ here:… }}` filled in; BnbookError for one that nothing fills."""
    from scipy.special import betaincinv

    rows = list(pages.rows.values())
    tested = [(row, test) for row in rows for test in row["tests"] if test["p"] is not None]
    found = {"power": str(round(100 * POWER)), "too_many": str(TOO_MANY), "errors": error_table()}
    found |= {"books": f"{error_rates.BOOKS:,}", "example": example(tested)}
    nine_in_ten = Test("level", a="a", side="greater", threshold=0.9, events=True)
    found |= {"five_of_five": format_number(clopper_pearson(5, 5)[0], ".0%")}
    found |= {"nine_in_ten": str(kinds.least_seeds(nine_in_ten))}
    found |= {"middle": format_number(float(betaincinv(*error_rates.CROWDED, 0.5)), ".2f")}
    found |= (
        redrawings(pages.claims)
        | _coverage(tested)
        | _many(rows, tested)
        | {"shared": _shared(tested, pages)}
    )
    found |= changed_tests(locks.deviations(locks.read().lines), set(pages.rows))
    if unknown := set(BLANK.findall(text)) - found.keys():
        raise BnbookError(
            f"how-a-verdict-is-made.md: nothing fills {min(unknown)}; known: {', '.join(found)}"
        )
    return BLANK.sub(lambda match: found[match[1]], text)


def error_table() -> str:
    """Percentages of books in which a test says "holds" or "fails" by mistake, by interval and data."""
    heads = [f"{seeds} seeds" for seeds in error_rates.SEEDS]
    lines = ["| " + " | ".join(["interval", "data", *heads]) + " |", "|:---|:---|" + "---:|" * len(heads)]
    means = [
        (name, rates, data, data) for name, rates in error_rates.KINDS.items() for data in error_rates.DATA
    ]
    events = [
        (name, rates, f"chance {chance}", chance)
        for name, rates in error_rates.EVENTS.items()
        for chance in error_rates.CHANCES
    ]
    for name, rates, words, case in means + events:
        found = [rates(case, seeds) for seeds in error_rates.SEEDS]
        cells = [f"{100 * each.holds:.1f}, {100 * each.fails:.1f}" for each in found]
        lines.append("| " + " | ".join([name, words, *cells]) + " |")
    return "\n".join(lines)


def redrawings(listed: Sequence[Claim]) -> dict[str, str]:
    """What published runs say by today's tests against the one before: a table, and the counts that a sentence
    needs."""
    counted = {way: [0, 0, 0, 0] for way in drawn.WAYS}
    for way, then, now in drawn.redrawn(listed):
        turned, to_open = then != now, None in (then, now)
        each = (True, turned, turned and to_open, turned and not to_open)
        counted[way] = [count + one for count, one in zip(counted[way], each, strict=True)]
    lines = ["| drawn again with | tests | turned | to or from open | from holds to fails or back |"]
    lines.append("|:---|---:|---:|---:|---:|")
    lines += [f"| {way} | {' | '.join(map(str, numbers))} |" for way, numbers in counted.items()]
    said = {"draws": "\n".join(lines)}
    for kind, way in {"same": drawn.WAYS[0], "other": drawn.WAYS[2]}.items():
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
        name = f'<a href="claims/{each.claim}.html">{each.claim}</a>' if each.claim in listed else each.claim
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
    shares = error_rates.recorded_coverage(recorded, 5)
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
        parameters = results.header.get("parameters", {})
        data = ", ".join(
            DATA_NAMES.get(found["name"], found["name"]) for found in results.header.get("data", [])
        )
        size = tuple(str(parameters.get(key)) for key in ("width", "depth", "steps"))
        name = test["test"].get("a") or test["test"]["results"][0]
        groups[data, size, tuple(results.entries[name]["seeds"])].append((row, test))
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
