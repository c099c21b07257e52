"""Claims of the sources, the tests fixed before a run judges them, and the verdicts computed from it."""

from __future__ import annotations

from bookpress.claims.claim import Claim, Part, Source, Test
from bookpress.claims.judging import Judgement, at_other_margins, judge
from bookpress.claims.kinds import describe_test
from bookpress.claims.ledger import (
    effect_and_interval,
    exploratory_note,
    format_effect,
    keep,
    ledger_row,
    markdown_table,
    rung_table,
    show_verdicts,
    turned,
    verdict_rows,
)
from bookpress.claims.reading import carry, chapter_claims, load_claims
from bookpress.claims.sources import (
    CHANGES,
    ERRATUM_KINDS,
    REASONS,
    Count,
    Coverage,
    Erratum,
    Instrument,
    Sentence,
    count_sentences,
    find_instrument,
    load_coverage,
    load_errata,
    load_instruments,
    rests_on,
    source_titles,
    unfinished_sources,
    unmeasured,
)
from bookpress.claims.words import format_number, without_markup

__all__ = [
    "CHANGES",
    "Claim",
    "Count",
    "Coverage",
    "ERRATUM_KINDS",
    "Erratum",
    "Instrument",
    "Judgement",
    "Part",
    "REASONS",
    "Sentence",
    "Source",
    "Test",
    "at_other_margins",
    "carry",
    "chapter_claims",
    "count_sentences",
    "describe_test",
    "effect_and_interval",
    "exploratory_note",
    "find_instrument",
    "format_effect",
    "format_number",
    "judge",
    "keep",
    "ledger_row",
    "load_claims",
    "load_coverage",
    "load_errata",
    "load_instruments",
    "markdown_table",
    "rests_on",
    "rung_table",
    "show_verdicts",
    "source_titles",
    "turned",
    "unfinished_sources",
    "unmeasured",
    "verdict_rows",
    "without_markup",
]
