"""Numbers in prose: `{{ ci:test_accuracy.batch | .1% }}` becomes the measured value when a page is put
together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from bnbook import claims
from bnbook.claims.effects import format_effect
from bnbook.claims.words import DATA_NAMES, format_number
from bnbook.errors import BnbookError
from bnbook.intervals import Interval, geometric_ratio, mean_level
from bnbook.pipeline import measured, powers, sentences, verdicts
from bnbook.pipeline.evidence import LeftOut
from bnbook.pipeline.shown import Pages

TOKEN = re.compile(
    r"\{\{\s*(?P<verb>mean|median|ci|geo|factor|power|share|value|n|param|data|profile|device|verdict|effect|verdicts"
    r"|standing|rungs|scoreboard|coverage|waffle|tally|trust|found|clone|binder|names|notation)"
    r"(?::(?:(?P<chapter>[a-z0-9/-]+)#)?(?P<name>[A-Za-z0-9_.-]*)(?:\[(?P<index>-?\d+)\])?)?"
    r"\s*(?:\\?\|\s*(?P<format>[^}]+?))?\s*\}\}"  # in a table the bar is written \|
)
ABSENT = "—"  # in place of a number of a chapter that has no fresh evidence


def fill(
    text: str, chapter: str, pages: Pages, extra: Mapping[str, str | Callable[[re.Match], str]] | None = None
) -> str:
    """The text with every token replaced; BnbookError for a token that asks for what does not exist.

    extra: what a verb stands for on this page, or how to tell from the token.
    """

    def one(match: re.Match) -> str:
        own = (extra or {}).get(match["verb"])
        try:
            if own is not None:
                return own if isinstance(own, str) else own(match)
            return _value(match, chapter, pages)
        except LeftOut as left_out:
            return str(left_out)
        except (ValueError, TypeError, IndexError) as problem:  # also a format or index that does not fit
            raise BnbookError(f"token {match[0]} on page {chapter}: {problem}") from None

    if unknown := malformed(text):
        raise BnbookError(f"{chapter}.md: {unknown[0]} is not a token that pages know")
    return TOKEN.sub(one, sentences.choose(measured.expand(text, chapter), chapter, pages))


def result_names(text: str, or_else: bool = True) -> set[tuple[str | None, str]]:
    """(chapter or None for this one, result) of every result that the tokens of a text read; without or_else
    not those for which a token says what stands there where the run has none."""
    found = [match for match in TOKEN.finditer(measured.expand(text)) if match["verb"] in _RESULT_VERBS]
    named = {(m["chapter"], m["name"]) for m in found if or_else or not _format_and_else(m)[1]}
    return named | sentences.result_names(measured.expand(text))


def names_shown_as(verb: str, text: str) -> set[str]:
    """Results of a chapter that its text shows by one verb."""
    found = TOKEN.finditer(measured.expand(text))
    return {match["name"] for match in found if match["verb"] == verb and not match["chapter"]}


def malformed(text: str) -> list[str]:
    """Double braces that look like a token and are none; in formulas a command or a brace is before."""
    rest = TOKEN.sub("", sentences.without(measured.expand(text)))
    return re.findall(r"\{\{\s[^{}]*\}\}|(?<![\w}^])\{\{[a-z]+\s*(?::[^}]*)?(?:\|[^}]*)?\}\}", rest)


def _value(match: re.Match, chapter: str, pages: Pages) -> str:
    """What one token stands for; ValueError says why it stands for nothing."""
    verb, name, (spec, instead) = match["verb"], match["name"], _format_and_else(match)
    where = match["chapter"] or chapter
    if verb in ("verdict", "effect"):
        return _claim_value(verb, name, spec, pages)
    if where not in pages.evidence:
        raise ValueError(f"no chapter {where!r}")
    evidence = pages.evidence[where]
    if evidence is None:
        return ABSENT
    header = evidence.results.header
    if verb in ("verdicts", "standing", "rungs"):
        judgements = [pages.judgement(claim) for claim in pages.claims if claim.chapter == where]
        return _OF_JUDGEMENTS[verb](judgements)
    if verb == "data":
        return ", ".join(DATA_NAMES.get(row["name"], row["name"]) for row in header["data"]) or "none"
    if verb == "profile":
        return header["profile"]
    if verb == "device":
        return header["provenance"]["device"]
    if verb == "param":
        if name not in header["parameters"]:
            raise ValueError(f"{where} has no parameter {name!r}")
        value = header["parameters"][name]
        value = value[int(match["index"])] if match["index"] else value
        if spec == "fraction":
            return str(Fraction(value).limit_denominator(1000))
        return format(value, spec) if spec else _plain(value)
    if instead and name not in evidence.results:
        return instead
    values = evidence.per_seed(name, match["index"])
    shown = _RESULT_VERBS[verb](values, spec or ".3g")
    if isinstance(shown, str):
        return shown
    fewer = len(values) < header["parameters"].get("seeds", 0)
    return _with_interval(shown, len(values), spec or ".3g", "\\|" in match[0], fewer)


def _format_and_else(match: re.Match) -> tuple[str, str]:
    """`.1f or not reached`: the format, and what stands there where the run has no such result."""
    spec, _, instead = (match["format"] or "").partition(" or ")
    return spec, instead


def _mean(values: np.ndarray, spec: str) -> str:
    return format_number(float(values.mean()), spec)


def _median(values: np.ndarray, spec: str) -> str:
    """For what a few seeds carry by orders of magnitude; a seed that diverged counts as infinite."""
    return format_number(float(np.median(np.where(np.isnan(values), np.inf, values))), spec)


def _interval(values: np.ndarray, _spec: str) -> Interval:
    return mean_level(values)


def _geometric(values: np.ndarray, _spec: str) -> Interval:
    """For what is positive by nature: geometric mean, and an interval of the logarithms, which never reaches
    zero."""
    if (values <= 0).any():
        raise ValueError("a geometric mean needs values above 0; use ci")
    return geometric_ratio(values, np.ones(len(values)))


def _bounded(values: np.ndarray, _spec: str) -> Interval:
    """For a share of something in each seed: the interval stops at 0 and 1, beyond which no share lies."""
    if (values < 0).any() or (values > 1).any():
        raise ValueError("a share lies between 0 and 1; use ci")
    mean, low, high = mean_level(values)
    return mean, max(low, 0.0), min(high, 1.0)


def _with_interval(found: Interval, seeds: int, spec: str, table: bool, fewer: bool) -> str:
    """In a sentence with words, in a table (where the bar is written \\|) small and below the value.

    fewer: the result has fewer seeds than the run, which is said.
    """
    middle, low, high = (format_number(edge, spec) for edge in found)
    if seeds < 2:
        return f"{middle} (one seed, no interval)"
    count = f"; n = {seeds}" if fewer else ""
    if table:
        return f"{middle}<br><small>{low.removesuffix(' %')} to {high}{count}</small>"
    return f"{middle} (95 % interval {low} to {high}{count})"


def _single(values: np.ndarray, spec: str) -> str:
    """The number that every seed gave."""
    if not ((values == values[0]) | np.isnan(values) & np.isnan(values[0])).all():
        raise ValueError("its seeds differ; use mean or ci")
    return format_number(float(values[0]), spec)


def _count(values: np.ndarray, spec: str) -> str:
    return str(len(values))


_OF_JUDGEMENTS = {
    "verdicts": claims.markdown_table,
    "standing": verdicts.how_sure,
    "rungs": claims.rung_table,
}
_RESULT_VERBS: dict[str, Callable[[np.ndarray, str], str | Interval]] = {
    "mean": _mean,
    "median": _median,
    "ci": _interval,
    "geo": _geometric,
    "factor": powers.factor,
    "power": powers.power,
    "share": _bounded,
    "value": _single,
    "n": _count,
}


def _claim_value(verb: str, name: str, spec: str | None, pages: Pages) -> str:
    judgement = pages.judgement(pages.claim(name))
    if judgement is None:
        return ABSENT
    return judgement.marked if verb == "verdict" else format_effect(judgement, spec)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    return f"{value:,}" if type(value) is int else str(value)
