"""Claims of the sources, the tests fixed before a run judges them, and the verdicts computed from it."""

from __future__ import annotations

from bnbook.claims.claim import Claim, Part, Source, Test
from bnbook.claims.judging import Judgement, judge
from bnbook.claims.reading import load_claims
from bnbook.claims.tables import markdown_table, show_verdicts, verdict_rows
from bnbook.claims.words import describe_test, format_effect, format_number

__all__ = [
    "Claim",
    "Judgement",
    "Part",
    "Source",
    "Test",
    "describe_test",
    "format_effect",
    "format_number",
    "judge",
    "load_claims",
    "markdown_table",
    "show_verdicts",
    "verdict_rows",
]
