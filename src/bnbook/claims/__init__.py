"""Claims of the sources, the tests fixed before a run judges them, and the verdicts computed from it."""

from __future__ import annotations

from bnbook.claims.carried import carry
from bnbook.claims.claim import Claim, Part, Source, Test
from bnbook.claims.coverage import REASONS, Count, Coverage, Sentence, count_sentences
from bnbook.claims.coverage_reading import load_coverage, unfinished_sources
from bnbook.claims.effects import effect_and_interval, format_effect
from bnbook.claims.errata import CHANGES, ERRATUM_KINDS, Erratum, load_errata, source_titles
from bnbook.claims.instruments import Instrument, find_instrument, load_instruments, rests_on, unmeasured
from bnbook.claims.judging import Judgement, judge
from bnbook.claims.kinds.known import describe_test
from bnbook.claims.ledger import keep, ledger_row
from bnbook.claims.reading import chapter_claims, load_claims
from bnbook.claims.rung_table import ends, rung_table, turned
from bnbook.claims.sensitivity import at_other_margins
from bnbook.claims.showing import show_verdicts
from bnbook.claims.tables import exploratory_note, markdown_table, verdict_rows
from bnbook.claims.words import format_number, without_markup

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
    "ends",
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
