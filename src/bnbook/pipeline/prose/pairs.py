"""Numbers of two results in prose, a factor or a difference, and which of the two is larger."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from bnbook.claims.words import alike, format_number, telling
from bnbook.intervals import geometric_ratio, paired_difference

if TYPE_CHECKING:
    from bnbook.pipeline.prose.tokens import Pages

RESULT = r"(?:[a-z0-9/-]+#)?[A-Za-z][A-Za-z0-9_.-]*(?:\[-?\d+\])?"
PAIR = re.compile(
    rf"\{{\{{\s*(?P<verb>times|ratio|points|gap|seeds):\s*(?P<a>{RESULT})\s*(?P<sign> [-<>] |/)\s*"
    rf"(?P<b>{RESULT}|[\d.]+)"
    r"\s*(?:\\?\|\s*(?P<format>[^}|\\]+?))?\s*\}\}"
)
SIGNS = {"times": "/", "ratio": "/", "points": "-", "gap": "-", "seeds": "<>"}
COMPARISON = re.compile(rf"(?P<geo>geo:)?(?P<a>{RESULT})\s+(?P<sign>[<>])\s+(?P<b>{RESULT}|[\d.]+)")
PLACE = re.compile(r"(?:(?P<chapter>[a-z0-9/-]+)#)?(?P<name>[^\[]+)(?:\[(?P<index>-?\d+)\])?")
#: What stands in for a number of a chapter that has no fresh evidence.
ABSENT = "—"


def number(match: re.Match, chapter: str, pages: Pages) -> str:
    """What a match of PAIR stands for: `times:a / b` a factor and `ratio:a / b` with its interval,
    `points:a - b` a difference of shares in points and `gap:a - b` with its interval, `seeds:a > b` in how
    many seeds it is so.

    A factor is the geometric mean over the seeds, which are paired. Words behind the format stand between the
    number and its interval: `gap:a - b | .1f points more`; what stands where the run lacks a result is last:
    `.1f or –`. In a table the interval stands below, small. ValueError says why there is none.
    """
    verb, sign = match["verb"], match["sign"].strip()
    form, instead = format_and_else(match)
    spec, _, words = (form or ".2g").partition(" ")
    if sign not in SIGNS[verb]:
        raise ValueError(f"expected {' or '.join(SIGNS[verb])} between the two results of {verb}")
    if instead and _lacks(match, chapter, pages):
        return instead
    columns = values(match, chapter, pages)
    if columns is None:
        return ABSENT
    a, b = columns
    if verb == "seeds":
        return f"{int((a > b).sum() if sign == '>' else (a < b).sum())} of {len(a)}"
    if verb in ("times", "ratio"):
        if (a <= 0).any() or (b <= 0).any():
            raise ValueError("a factor needs values above 0")
        found, unit = geometric_ratio(a, b), words
    else:
        found, unit = tuple(100 * edge for edge in paired_difference(a, b)), words or "points"
    if verb in ("times", "points"):
        return format_number(found[0], spec)
    spec = telling(*found[1:], spec)
    middle, low, high = alike(found, spec)
    if "\\|" in match[0]:  # in a table
        return f"{middle}{' ' * bool(words)}{words}<br><small>{low} to {high}</small>"
    interval = f"(95 % interval {low} to {high})" if len(a) > 1 else "(one seed, no interval)"
    return " ".join(part for part in (middle, unit, interval) if part)


def is_larger(match: re.Match, chapter: str, pages: Pages) -> tuple[bool | None] | None:
    """Whether a match of COMPARISON is so, in a tuple; None in it where the 95 % interval has both sides.

    The interval is that of the mean paired difference, with `geo:` of the mean ratio. None without a run; (None,)
    too where a run has the results of other sizes alone.
    """
    if _is_of_another_size(match, chapter, pages):
        return (None,)
    columns = values(match, chapter, pages)
    if columns is None:
        return None
    a, b = columns if match["sign"] == ">" else columns[::-1]
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return (None,)
    _, low, high = geometric_ratio(a, b) if match["geo"] else paired_difference(a, b)
    even = 1.0 if match["geo"] else 0.0
    return (True if low > even else False if high < even else None,)


def format_and_else(match: re.Match) -> tuple[str, str]:
    """`.1f points or not reached`: the format, and what stands there where the run has no such result."""
    form, _, instead = (match["format"] or "").partition(" or ")
    return form, instead


def _lacks(match: re.Match, chapter: str, pages: Pages) -> bool:
    """Whether a run has not recorded one of the two results."""
    named = ((where or chapter, name) for where, name in result_names([match]))
    return any((run := pages.evidence.get(where)) and name not in run.results for where, name in named)


def _is_of_another_size(match: re.Match, chapter: str, pages: Pages) -> bool:
    """Whether a run lacks results of the two and has each of them of another size, `speed.w1.batch` for
    `speed.long.batch`: what is no slip of the pen."""
    named = [(pages.evidence.get(where or chapter), name) for where, name in result_names([match])]
    lacking = [(run.results, name.split(".")) for run, name in named if run and name not in run.results]
    return bool(lacking) and all(
        any(len(o) == len(parts) > 1 and o[:1] + o[2:] == parts[:1] + parts[2:] for o in map(_parts, known))
        for known, parts in lacking
    )


def _parts(name: str) -> list[str]:
    return name.split(".")


def result_names(matches: list[re.Match]) -> set[tuple[str | None, str]]:
    """(chapter or None for the page's own, result) of all that matches of PAIR or COMPARISON read."""
    texts = [match[key] for match in matches for key in ("a", "b")]
    places = [PLACE.fullmatch(text) for text in texts if not text[0].isdigit()]
    return {(place["chapter"], place["name"]) for place in places}


def values(match: re.Match, chapter: str, pages: Pages) -> tuple[np.ndarray, np.ndarray] | None:
    """Values (S,) of the two results, paired by seed; a number stands for itself, no run is None.

    Where only one of them has earlier draws, with other seeds, both are taken by the last run alone.
    """
    found = _values(match, chapter, pages, alone=False)
    if found and found[1][0] != found[1][-1]:
        found = _values(match, chapter, pages, alone=True)
    if found and found[1][0] != found[1][-1]:
        raise ValueError(f"{match['a']} and {match['b']} come from different seeds; expected the same ones")
    return found and found[0]


def _values(match: re.Match, chapter: str, pages: Pages, alone: bool) -> tuple[tuple, list[list[int]]] | None:
    """The two columns, and the seeds of those that are results."""
    found, seeds = [], []
    for text in (match["a"], match["b"]):
        if text[0].isdigit():
            found.append(np.full(len(found[0]), float(text)))
            continue
        place = PLACE.fullmatch(text)
        where = place["chapter"] or chapter
        if where not in pages.evidence:
            raise ValueError(f"no chapter {where!r}")
        evidence = pages.evidence[where]
        if evidence is None:
            return None
        found.append(evidence.per_seed(place["name"], place["index"], alone=alone))
        entry = evidence.results.entries[place["name"]]
        seeds.append(entry["seeds"] if alone else evidence.quoted(place["name"])[0])
    return (found[0], found[1]), seeds
