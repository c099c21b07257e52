"""Verdicts for readers: a Markdown table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from bnbook.claims.claim import Claim, Effect, Test
from bnbook.claims.effects import effect_and_interval, interval_words
from bnbook.claims.judging import NOT_TESTED, Judgement, judge
from bnbook.claims.kinds.known import describe_test
from bnbook.claims.outcome import Outcome
from bnbook.claims.reading import load_claims
from bnbook.claims.words import OWN_QUESTION, literal, without_markup

UNBROKEN = "\u00a0"
HEAD = "| the source says | measured | verdict |\n|:---|:---|:---|"


def verdict_rows(
    chapter: str,
    results: Mapping[str, np.ndarray],
    profile: str | None,
    *,
    exact: bool = False,
    claims: Sequence[Claim] | None = None,
) -> list[Judgement]:
    """Judge every claim of one chapter, in the order of the claims file (read if `claims` is not given)."""
    listed = load_claims() if claims is None else claims
    return [judge(claim, results, profile, exact=exact) for claim in listed if claim.chapter == chapter]


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
        for part, (says, word, found) in zip(claim.parts, judgement.parts, strict=False):
            if claim.rungs and word == NOT_TESTED:
                continue  # the table of the rungs names those that no run has reached
            notes = [] if shared else [must_hold(part.test, part.effect or claim.effect)]
            fewest = 0 if found.n == judgement.n else found.n
            lines.append(row(f"– {says}", notes, _measured(found, inline=bool(shared), n=fewest), word))
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
