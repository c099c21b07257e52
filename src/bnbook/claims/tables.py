"""Verdicts for readers: a Markdown table, and the last cell of a chapter."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from bnbook import results as session
from bnbook.claims.claim import Claim
from bnbook.claims.judging import CONDITIONAL, Judgement, judge
from bnbook.claims.reading import load_claims
from bnbook.claims.words import describe_test, format_effect
from bnbook.errors import BnbookError

HEAD = (
    "| the source says | where | must hold, fixed beforehand | measured (95 % interval) | seeds | verdict |\n"
    "|:---|:---|:---|:---|---:|:---|"
)


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
        condition = f", {claim.condition}" if judgement.verdict == CONDITIONAL else ""
        verdict = f"**{judgement.words}**{condition}"
        own = (
            (describe_test(claim.test), format_effect(judgement))
            if claim.test
            else (f"{len(claim.parts)} parts", "")
        )
        lines.append(_row(claim.says, claim.source.where, *own, judgement.n or "–", verdict))
        if judgement.corrected:
            found = judgement.corrected
            lines.append(
                _row(
                    f"– {claim.correction or 'corrected'}",
                    "",
                    describe_test(claim.corrected),
                    format_effect(found),
                    found.n,
                    "",
                )
            )
        for part, (says, word, found) in zip(claim.parts, judgement.parts, strict=False):
            lines.append(_row(f"– {says}", "", describe_test(part.test), format_effect(found), found.n, word))
    return "\n".join(lines)


def show_verdicts(chapter: str, profile: str, *, exact: bool = False) -> None:
    """Show, below the last cell of an interactive session, the verdicts on what it has recorded.

    Under `bnbook run` it stays silent: there the page shows the verdicts. Outside the book's folder, where
    there is no claims file, and before all results are recorded it says so in a line.
    """
    if os.environ.get("BNBOOK_RESULTS"):
        return
    from IPython.display import Markdown, display

    try:
        text = markdown_table(verdict_rows(chapter, session.current(), profile, exact=exact))
    except BnbookError as error:
        text = f"No verdicts: {error}"
    display(Markdown(text))


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
