"""What hangs on a margin: the verdict at half and at twice what a claim's tests ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bnbook.claims.claim import Claim, Effect, Test
from bnbook.claims.judging import judge
from bnbook.claims.kinds.known import kind_of

FACTORS = (0.5, 2.0)


def at_other_margins(
    claim: Claim, results: Mapping[str, np.ndarray], profile: str | None = None, *, exact: bool = False
) -> tuple[str, ...]:
    """The verdicts at half and at twice the margin; none where no test has a margin."""
    scaled = [_scaled_claim(claim, factor) for factor in FACTORS]
    if all(other.tests == claim.tests for other in scaled):
        return ()
    return tuple(judge(other, results, profile, exact=exact).verdict for other in scaled)


def _scaled_claim(claim: Claim, factor: float) -> Claim:
    own = claim.effect

    def scaled(test: Test, shown: Effect | None) -> Test:
        return kind_of(test).scaled(test, factor, shown)

    parts = tuple(replace(part, test=scaled(part.test, part.effect or own)) for part in claim.parts)
    test, corrected = (each and scaled(each, own) for each in (claim.test, claim.corrected))
    return replace(claim, test=test, parts=parts, corrected=corrected)
