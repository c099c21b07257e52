"""The first page: what its own tokens stand for; and the small pictures of findings, on it and on others."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bookpress.book import book
from bookpress.claims import format_number
from bookpress.errors import PressError
from bookpress.pipeline import prose
from bookpress.site import verdicts
from bookpress.site.rendering import macro

Row = dict[str, Any]
BLOCK = re.compile(r"^```\{dots\} *([^\n]*)\n(.*?)^```$", re.M | re.S)
LINE = re.compile(r"([^|]+)\|\s*([a-z0-9]+)\s*\|\s*([a-z0-9/-]+)#([\w.-]+)(?:\[(-?\d+)\])?\s*")
LEFT, RIGHT = 1.0, {"": 70.0, "factor": 62.0}  # percent of a card, what a value's words leave: "0.012 times"


def tokens(rows: list[Row], shown: prose.Pages) -> dict[str, Any]:
    """`trust`, and a verdict as its chip."""
    return {"trust": trust(rows, shown), "verdict": verdicts.inlined(shown.rows, "")}


def trust(rows: list[Row], shown: prose.Pages) -> str:
    """Data, seeds, locks and what was not run, each as one line of a list."""
    made = [each for each in shown.evidence.values() if each]
    full = sum(each.profile == "paper" for each in made)
    names = sorted({row["name"] for each in made for row in each.results.header["data"]})
    data = [book().data_names.get(name, name) for name in names]
    untried = {"not run", "not tested at this scale"}
    # with n = 1 nothing is random; what no run has judged was not judged by its seeds
    seeds = sorted(row["n"] for row in rows if (row["n"] or 0) > 1 and row["verdict"] not in untried)
    again = [bool(row["exploratory"]) for row in rows if row["rungs"]]
    rows = [row for row in rows if not row["rungs"]]  # those that have a square
    young = sum(bool(row["exploratory"]) for row in rows)
    changed = sum(bool(row["changed"]) and not row["exploratory"] for row in rows)
    missing = sum(row["verdict"] in untried for row in rows)
    undecided = sum(row["verdict"] == "open" for row in rows)
    lines = {
        "Full size": f"{full or 'None'} of {len(made)} chapters ran at both the full width and the full number of steps "
        "of the paper that it tests",
        "Data": ", ".join(data) or "none but formulas",
        "Seeds": f"Where chance has a part, {seeds[0]} to {seeds[-1]} seeds or random trials judge a claim, and half of "
        f"these claims have {seeds[len(seeds) // 2]} or fewer. Where nothing is random, one run is enough"
        if seeds
        else "none",
        "Tests": f"{len(rows) - young} of {len(rows)} claims have a test that was fixed before its data"
        + f". Of these {len(rows) - young}, {changed} had an earlier test or plan that was changed; fresh seeds, drawn "
        "after the change, judge them"
        * bool(changed)
        + f". The other {young} are exploratory: their test or measure came or changed after the data"
        * bool(young)
        + f". {len(again)} further claims ask the same at other sizes; {sum(again)} of these are exploratory"
        * bool(again),
        "Not settled": f"{undecided} of the {len(rows)} claims are open, {missing} are not tested at this scale",
    }
    return "\n".join(f"- **{name}.** {text}." for name, text in lines.items())


def _round(low: float, high: float, factor: bool, log: bool) -> list[float]:
    """Round places of a logarithmic axis, as its values are recorded; none where the axis is not."""
    if not log and not factor:
        return []
    low, high = (10**low, 10**high) if factor else (low, high)
    for steps in (1,), (1, 2, 5), (1, 1.2, 1.5, 2, 3, 5, 7):
        every = (step * 10.0**power for power in range(-9, 10) for step in steps)
        if len(found := [at for at in every if low <= at <= high]) > 1:
            break
    found = found[:: max(1, len(found) // 3)]
    return [float(np.log10(at)) for at in found] if factor else found


def _short(value: float) -> str:
    """A number of a logarithmic axis in two digits, or as a power of ten."""
    if value < 0.01:
        return format_number(value, ".0e").removeprefix("1·")
    return format_number(value, ",.0f" if value >= 10 else ".2g")


def pictures(text: str, shown: prose.Pages, page: str) -> str:
    """A page's text with every `{dots}` block as a small plot: a line for each arm, a dot for each seed."""
    return BLOCK.sub(lambda match: _dots(match[1].split(), match[2].strip().splitlines(), shown, page), text)


def _dots(options: list[str], lines: list[str], shown: prose.Pages, page: str) -> str:
    arms = []
    for line in lines:
        match = LINE.fullmatch(line)
        if not match or match[3] not in shown.evidence:
            raise PressError(f"{page}: {line!r} in a dots block; expected LABEL | INK | PART/CHAPTER#RESULT")
        if (evidence := shown.evidence[match[3]]) is None:
            return ""
        if evidence.profile == "smoke" and match[4] not in evidence.results:
            continue  # of an arm that so short a run leaves out
        values = np.asarray(evidence.column(match[4], match[5])[1], dtype=float)
        arms.append({"label": match[1].strip(), "ink": match[2], "values": values[np.isfinite(values)]})
    if not arms:
        return ""
    every = np.concatenate([arm["values"] for arm in arms])
    log, factor = "log" in options and (every > 0).all(), "factor" in options
    right = RIGHT["factor" if factor else ""]
    low, high = (every.min() / 1.3, every.max() * 1.1) if log else (min(0.0, every.min()), every.max())

    def place(value: float) -> float:
        start, end, at = np.log([low, high, value]) if log else np.array([low, high, value])
        return round(float(LEFT + (at - start) / ((end - start) or 1) * (right - LEFT)), 2)

    def said(value: float) -> str:
        if factor:  # the recorded values are logarithms to base ten
            return f"{_short(10**value)} times"
        three = float(f"{value:.3g}")  # digits, as texts have them
        return format_number(value, ".1%") if "percent" in options else format_number(three, ",.4g")

    ticks = {place(at): _short(10**at if factor else at) for at in _round(low, high, factor, log)}
    for arm in arms:
        values = arm["values"]
        middle = float(np.exp(np.log(values).mean()) if log else values.mean())
        arm |= {"dots": [place(v) for v in values], "middle": place(middle), "said": said(middle)}
    words = "; ".join(f"{arm['label']}: {arm['said']}" for arm in arms)
    words += f". A dot a seed{', logarithmic scale' if log else ''}."
    return macro("dots.html.j2", "dots")(arms, ticks, LEFT, right, words)
