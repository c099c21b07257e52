"""What hangs on a margin: the verdict at half and at twice what a claim's tests ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bnbook.claims.claim import Claim, Effect, Test
from bnbook.claims.judging import judge

FACTORS = (0.5, 2.0)
EXACT = (
    "identity",
    "inequality",
    "ordering",
    "sign",
)  # rounding, counts and signs have no margin that was chosen


def at_other_margins(
    claim: Claim, results: Mapping[str, np.ndarray], profile: str | None = None, *, exact: bool = False
) -> tuple[str, ...]:
    """The verdicts at half and at twice the margin; none where no test has a margin."""
    scaled = [_scaled_claim(claim, factor) for factor in FACTORS]
    if all(other.tests == claim.tests for other in scaled):
        return ()
    return tuple(judge(other, results, profile, exact=exact).verdict for other in scaled)


def scaled_test(test: Test, factor: float, shown: Effect | None = None) -> Test:
    """The test with its margin, tolerance or threshold `factor` times as far from no effect at all.

    No effect is a difference or a level of 0 and a ratio of 1, by which also what is shown as "times …" is
    meant. Above one half a share is near to all, so that "nine in ten" becomes 0.95 and 0.8; "most" stays.
    """
    if test.kind in EXACT:
        return test
    if test.margin is not None:
        return replace(test, margin=factor * test.margin)
    if test.tolerance is not None:
        return replace(test, tolerance=factor * test.tolerance)
    threshold, unit = test.threshold or 0.0, shown.unit if shown else ""
    if test.kind == "ratio" or unit.startswith("times"):
        return replace(test, threshold=threshold**factor)
    if test.kind == "level" and 0.5 < threshold < 1:
        return replace(test, threshold=1 - factor * (1 - threshold))
    if unit == "%" and threshold == 0.5:
        return test
    return replace(test, threshold=factor * threshold)


def _scaled_claim(claim: Claim, factor: float) -> Claim:
    own = claim.effect
    parts = tuple(
        replace(part, test=scaled_test(part.test, factor, part.effect or own)) for part in claim.parts
    )
    test, corrected = (each and scaled_test(each, factor, own) for each in (claim.test, claim.corrected))
    return replace(claim, test=test, parts=parts, corrected=corrected)
