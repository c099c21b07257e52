"""Numbers in prose: `{{ ci:test_accuracy.batch | .1% }}` becomes the measured value when a page is put
together."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bnbook import claims
from bnbook.claims.words import format_effect, format_number
from bnbook.errors import BnbookError
from bnbook.intervals import Interval, geometric_ratio, mean_level
from bnbook.pipeline import measured
from bnbook.pipeline.evidence import Evidence

TOKEN = re.compile(
    r"\{\{\s*(?P<verb>mean|ci|geo|share|value|n|param|data|profile|device|verdict|effect|verdicts|scoreboard)"
    r"(?::(?:(?P<chapter>[a-z0-9/-]+)#)?(?P<name>[A-Za-z0-9_.-]*)(?:\[(?P<index>-?\d+)\])?)?"
    r"\s*(?:\\?\|\s*(?P<format>[^}]+?))?\s*\}\}"  # in a table the bar is written \|
)
#: What stands in for a number of a chapter that has no fresh evidence.
ABSENT = "—"
CHANGED = "test changed after the run"


@dataclass(frozen=True)
class Pages:
    """All that tokens may ask for: the evidence rendered for each chapter (None where there is none)."""

    evidence: dict[str, Evidence | None]
    claims: list[claims.Claim]

    def judgement(self, claim: claims.Claim) -> claims.Judgement | None:
        evidence = self.evidence.get(claim.chapter)
        if evidence is None:
            return None
        return claims_judge(claim, evidence)


def claims_judge(claim: claims.Claim, evidence: Evidence) -> claims.Judgement:
    """The judgement as every page shows it, marked where the test is not the one that the run was made
    under."""
    found = claims.judge(claim, evidence.results, profile=evidence.profile, exact=evidence.chapter.exact)
    if evidence.results.header.get("claims", {}).get(claim.id) == claim.test_hash:
        return found
    return replace(found, verdict=f"{found.words} ({CHANGED})")


def fill(text: str, chapter: str, pages: Pages, extra: dict[str, str] | None = None) -> str:
    """The text with every token replaced; BnbookError for a token that asks for what does not exist."""

    def one(match: re.Match) -> str:
        verb = match["verb"]
        if extra and verb in extra:
            return extra[verb]
        return _value(match, chapter, pages)

    return TOKEN.sub(one, measured.expand(text, chapter))


def result_names(text: str) -> set[tuple[str | None, str]]:
    """(chapter or None for this one, result) of every result that the tokens of a text read."""
    verbs = tuple(_RESULT_VERBS)
    return {(m["chapter"], m["name"]) for m in TOKEN.finditer(measured.expand(text)) if m["verb"] in verbs}


def malformed(text: str) -> list[str]:
    """Double braces that look like a token and are none."""
    rest = TOKEN.sub("", measured.expand(text))
    return re.findall(r"\{\{\s*[a-z]+\s*(?::[^}]*)?(?:\|[^}]*)?\}\}", rest)


def _value(match: re.Match, chapter: str, pages: Pages) -> str:
    verb, name, token = match["verb"], match["name"], match[0]
    where = match["chapter"] or chapter
    if verb in ("verdict", "effect"):
        return _claim_value(verb, name, token, match["format"], pages)
    if where not in pages.evidence:
        raise BnbookError(f"token {token} on page {chapter}: no chapter {where!r}")
    evidence = pages.evidence[where]
    if evidence is None:
        return ABSENT
    header = evidence.results.header
    if verb == "verdicts":
        return _verdict_table(where, pages)
    if verb == "data":
        return ", ".join(row["name"] for row in header["data"]) or "none"
    if verb == "profile":
        return header["profile"]
    if verb == "device":
        return header["provenance"]["device"]
    if verb == "param":
        if name not in header["parameters"]:
            raise BnbookError(f"token {token} on page {chapter}: {where} has no parameter {name!r}")
        value = header["parameters"][name]
        return format(value, match["format"]) if match["format"] else _plain(value)
    if name not in evidence.results:
        raise BnbookError(f"token {token} on page {chapter}: {where} recorded no result {name!r}")
    values = evidence.results[name]
    if match["index"] is not None:
        values = values[:, int(match["index"])]
    if values.ndim != 1:
        raise BnbookError(
            f"token {token} on page {chapter}: {name!r} is not one number per seed; name an [index]"
        )
    try:
        shown = _RESULT_VERBS[verb](values, match["format"] or ".3g")
        return shown if isinstance(shown, str) else _with_interval(shown, len(values), match)
    except ValueError as problem:
        raise BnbookError(f"token {token} on page {chapter}: {problem}") from None


def _mean(values: np.ndarray, spec: str) -> str:
    return format_number(float(values.mean()), spec)


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


def _with_interval(found: Interval, seeds: int, match: re.Match) -> str:
    """In a sentence with words, in a table (where the bar is written \\|) small and below the value."""
    middle, low, high = (format_number(edge, match["format"] or ".3g") for edge in found)
    if seeds < 2:
        return f"{middle} (one seed, no interval)"
    if "\\|" in match[0]:
        return f"{middle}<br><small>{low.removesuffix(' %')} to {high}</small>"
    return f"{middle} (95 % interval {low} to {high})"


def _single(values: np.ndarray, spec: str) -> str:
    return format_number(float(values[0]), spec)


def _count(values: np.ndarray, spec: str) -> str:
    return str(len(values))


_RESULT_VERBS: dict[str, Callable[[np.ndarray, str], str | Interval]] = {
    "mean": _mean,
    "ci": _interval,
    "geo": _geometric,
    "share": _bounded,
    "value": _single,
    "n": _count,
}


def _claim_value(verb: str, name: str, token: str, spec: str | None, pages: Pages) -> str:
    found = [claim for claim in pages.claims if claim.id == name]
    if not found:
        raise BnbookError(f"token {token}: no chapter has a claim {name!r}")
    judgement = pages.judgement(found[0])
    if judgement is None:
        return ABSENT
    return judgement.words if verb == "verdict" else format_effect(judgement, spec or ".3g")


def _verdict_table(chapter: str, pages: Pages) -> str:
    evidence = pages.evidence[chapter]
    return claims.markdown_table(
        claims_judge(claim, evidence) for claim in pages.claims if claim.chapter == chapter
    )


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    return (
        f"{value:,}".replace(",", "\u202f")
        if isinstance(value, int) and not isinstance(value, bool)
        else str(value)
    )
