"""What a test found, for readers: effect and interval in words or as bare numbers."""

from __future__ import annotations

import math

from bnbook.claims.claim import Effect
from bnbook.claims.directions import Shown
from bnbook.claims.judging import Judgement
from bnbook.claims.kinds.known import kind_of
from bnbook.claims.outcome import Outcome
from bnbook.claims.words import alike, spelled, telling

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
