"""Verdicts for readers: a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bnbook.claims.claim import Claim, Test
from bnbook.claims.judging import CONDITIONAL, Judgement, judge
from bnbook.claims.kinds import Outcome
from bnbook.claims.reading import load_claims
from bnbook.claims.words import describe_test, effect_and_interval, interval_words, without_markup

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


def markdown_table(judgements: Iterable[Judgement]) -> str:
    """A Markdown table: a row per claim, and below it one per part or for the corrected form."""
    lines = [HEAD]
    for judgement in judgements:
        claim = judgement.claim
        condition = f", {without_markup(claim.condition)}" if judgement.verdict == CONDITIONAL else ""
        notes = [claim.source.where] + ([must_hold(claim.test)] if claim.test else [])
        measured = _measured(judgement) if claim.test else ""
        lines.append(row(claim.says, notes, measured, f"**{judgement.words}**{condition}"))
        if judgement.corrected:
            words = claim.correction or ("under the condition" if claim.condition else "corrected")
            lines.append(row(f"– {words}", [must_hold(claim.corrected)], _measured(judgement.corrected), ""))
        shared = _shared(judgement)  # said once, so that a part is one line
        if shared:
            lines[-1] = row(claim.says, [*notes, *shared], measured, f"**{judgement.words}**{condition}")
        for part, (says, word, found) in zip(claim.parts, judgement.parts, strict=False):
            notes = [] if shared else [must_hold(part.test)]
            lines.append(row(f"– {says}", notes, _measured(found, inline=bool(shared)), word))
    return "\n".join(lines)


def must_hold(test: Test) -> str:
    """What a test asks for, in words."""
    return f"must hold: {describe_test(test)}"


def _shared(judgement: Judgement) -> list[str]:
    """What all parts of a claim have to fulfil and their number of seeds, where these are the same; else
    nothing."""
    tests = {must_hold(part.test) for part in judgement.claim.parts}
    counts = {found.n for _, _, found in judgement.parts}
    if len(judgement.parts) < 2 or len(tests) != 1 or len(counts) != 1:
        return []
    return [f"each {tests.pop()}", *(f"n = {n}" for n in counts if n), "95 % intervals"]


def _measured(found: Judgement | Outcome, inline: bool = False) -> str:
    """Effect, then small its interval and the number of seeds; inline: what `_shared` says is left out."""
    effect, interval = effect_and_interval(found)
    if inline:
        return f"{effect} <small>{interval}</small>" if interval else effect
    notes = [words for words in (interval_words(interval), f"n = {found.n}" if found.n else "") if words]
    return f"{effect}<br><small>{'; '.join(notes)}</small>" if notes else effect


def row(says: str, notes: list[str], *others: str) -> str:
    """One row of a table: what is said, small below it the notes, and the other cells."""
    said = "<br><small>".join(without_markup(text) for text in (says, "; ".join(notes)) if text)
    cells = (f"{said}</small>" if notes else said, *others)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
