"""Claims of the sources, the tests fixed before a run judges them, and the verdicts computed from it."""

# ruff: noqa: F401 (what is imported here is what others call)

from __future__ import annotations

from bookpress.claims.claim import Claim, Part, Source, Test
from bookpress.claims.judging import Row, empty_row, judge, keep, verdict
from bookpress.claims.ledger import (
    as_carried,
    format_effect,
    markdown_table,
    marked,
    rung_table,
    show_verdicts,
    turned,
)
from bookpress.claims.reading import carry, chapter_claims, load_claims
from bookpress.claims.sources import (
    CHANGES,
    ERRATUM_KINDS,
    REASONS,
    Coverage,
    Erratum,
    Instrument,
    count_sentences,
    find_instrument,
    load_coverage,
    load_errata,
    load_instruments,
    references,
    rests_on,
    source_titles,
    unfinished_sources,
    unmeasured,
)
from bookpress.claims.words import format_number, without_markup
