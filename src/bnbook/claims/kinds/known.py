"""The kinds of test by their names, and what others ask of a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bnbook import intervals
from bnbook.claims.cells import Cell
from bnbook.claims.claim import Effect, Test
from bnbook.claims.kinds.comparisons import Agreement, Difference, Equivalence, Ratio
from bnbook.claims.kinds.exact import Identity, Inequality
from bnbook.claims.kinds.kind import Kind
from bnbook.claims.kinds.levels import Level, Ordering, Rate, Sign
from bnbook.claims.kinds.sampled import Decision
from bnbook.claims.outcome import Outcome
from bnbook.claims.recorded import Recorded
from bnbook.claims.words import spelled

_ALL = (Difference, Ratio, Equivalence, Ordering, Sign, Identity, Inequality, Rate, Agreement, Level)
KINDS: dict[str, Kind] = {kind.name: kind() for kind in _ALL}


def kind_of(test: Test) -> Kind:
    return KINDS[test.kind]


def evaluate(
    test: Test, results: Mapping[str, np.ndarray], claim_id: str, shown: Effect | None = None
) -> Outcome:
    """Judge recorded results by one test.

    Raises BnbookError where a result is missing, has no single number per seed where one is needed, is paired
    with a result of other seeds, or where a ratio's values are negative.
    """
    outcome = kind_of(test).outcome(test, Recorded(results, claim_id))
    return replace(outcome, test=test, shown=shown)


def decide(test: Test, cells: tuple[Cell, ...], level: float = intervals.LEVEL) -> Decision:
    """Whether a test that was sampled holds at a level of confidence, the place of the cell that decides, and
    its interval."""
    return kind_of(test).decide(test, cells, level)


def edges(test: Test) -> tuple[float, float]:
    """Between which values a test holds."""
    return kind_of(test).edges(test)


def describe_test(test: Test, shown: Effect | None = None) -> str:
    """What has to hold, in the effect's unit and direction: "more than 3 points higher with batch norm"."""
    return spelled(kind_of(test).asks(test, shown or Effect()))
