"""Which answers stay and which turn: a table of claims against the rungs of a ladder."""

from __future__ import annotations

from collections.abc import Iterable

from bnbook.claims.effects import effect_and_interval
from bnbook.claims.judging import NOT_TESTED, Judgement
from bnbook.claims.kinds import Outcome
from bnbook.claims.words import without_markup

UNTRIED = "–"


def rung_table(judgements: Iterable[Judgement]) -> str:
    """A Markdown table: a row for each claim that is judged rung by rung, a column for each rung that was
    reached; whether it holds there, and small the effect. Below it the rungs that no run has reached."""
    rows = [found for found in judgements if found.claim.rungs and found.parts]
    reached = {says: False for found in rows for says, _, _ in found.parts}
    for found in rows:
        for says, verdict, _ in found.parts:
            reached[says] = reached[says] or verdict != NOT_TESTED
    shown = [says for says, has in reached.items() if has]
    if not shown:
        return "No rung has been reached."
    lines = ["| the source says | " + " | ".join(says.rstrip(".") for says in shown) + " |"]
    lines.append("|:---|" + ":---|" * len(shown))
    for found in rows:
        parts = {says: (verdict, outcome) for says, verdict, outcome in found.parts}
        if not any(says in parts and parts[says][0] != NOT_TESTED for says in shown):
            continue
        cells = [_cell(*parts[says]) if says in parts else "" for says in shown]
        says = without_markup(found.claim.says).replace("|", "\\|")
        lines.append(f"| {says} | " + " | ".join(cells) + " |")
    missing = [says.rstrip(".") for says, has in reached.items() if not has]
    note = f"\n\nNot tested at this scale: {'; '.join(missing)}." if missing else ""
    return "\n".join(lines) + note


def _cell(verdict: str, outcome: Outcome) -> str:
    if verdict == NOT_TESTED:
        return UNTRIED
    word = "open" if outcome.holds is None else "**yes**" if outcome.holds else "**no**"
    effect = effect_and_interval(outcome)[0].replace("|", "\\|")
    return f"{word}<br><small>{effect}; n = {outcome.n}</small>"
