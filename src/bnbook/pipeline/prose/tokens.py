"""Numbers in prose: `{{ ci:test_accuracy.batch | .1% }}` becomes the measured value when a page is put
together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from bnbook import claims
from bnbook.claims.ledger import format_effect
from bnbook.claims.words import DATA_NAMES, format_number
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import verdicts
from bnbook.pipeline.chapters.evidence import LeftOut
from bnbook.pipeline.prose import measured, numbers, sentences
from bnbook.pipeline.prose.shown import Pages

TOKEN = re.compile(
    r"\{\{\s*(?P<verb>mean|median|ci|geo|factor|power|share|value|n|param|data|profile|device|verdict|effect|ends|verdicts"
    r"|standing|rungs|turned|scoreboard|coverage|waffle|tally|trust|found|clone|binder|names|notation)"
    r"(?::(?:(?P<chapter>[a-z0-9/-]+)#)?(?P<name>[A-Za-z0-9_.-]*)(?:\[(?P<index>-?\d+|[A-Za-z][\w.]*)\])?)?"
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
    found = [match for match in TOKEN.finditer(measured.expand(text)) if match["verb"] in numbers.VERBS]
    named = {(m["chapter"], m["name"]) for m in found if or_else or not _format_and_else(m)[1]}
    return named | sentences.result_names(measured.expand(text), or_else)


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
    if verb in ("verdict", "effect", "ends"):
        return _claim_value(verb, name, spec, pages)
    if where not in pages.evidence:
        raise ValueError(f"no chapter {where!r}")
    evidence = pages.evidence[where]
    if evidence is None:
        return ABSENT
    header = evidence.results.header
    if verb in _OF_JUDGEMENTS:
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
    with np.errstate(invalid="ignore"):  # of a seed that diverged the interval is none, which is shown
        shown = numbers.VERBS[verb](values, spec or ".3g")
    if isinstance(shown, str):
        return shown
    fewer = len(values) < header["parameters"].get("seeds", 0)
    return numbers.with_interval(shown, len(values), spec or ".3g", "\\|" in match[0], fewer)


def _format_and_else(match: re.Match) -> tuple[str, str]:
    """`.1f or not reached`: the format, and what stands there where the run has no such result."""
    spec, _, instead = (match["format"] or "").partition(" or ")
    return spec, instead


_OF_JUDGEMENTS = {
    "verdicts": claims.markdown_table,
    "standing": verdicts.how_sure,
    "rungs": claims.rung_table,
    "turned": claims.turned,
}


def _claim_value(verb: str, name: str, spec: str | None, pages: Pages) -> str:
    judgement = pages.judgement(pages.claim(name))
    if judgement is None:
        return ABSENT
    if verb == "ends":
        return claims.ends(judgement)
    return judgement.marked if verb == "verdict" else format_effect(judgement, spec or None)


def _plain(value: Any, powers: bool = False) -> str:
    if isinstance(value, list):  # of numbers read together all that are small are powers of ten, or none is
        powers = any(isinstance(item, float) and "e" in str(item) for item in value)
        return ", ".join(_plain(item, powers) for item in value)
    if isinstance(value, float) and (powers or "e" in str(value)):
        digits = Decimal(str(value)).normalize().as_tuple().digits
        return format_number(value, f".{len(digits) - 1}e")
    return f"{value:,}" if type(value) is int else str(value)
