"""Claims judged rung by rung: one test that stands for several sizes of what was trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bnbook.claims.claim import Claim
from bnbook.claims.outcome import Outcome

#: What stands for the rung in the names of a test's results.
PLACE = "{rung}"


def filled(content: Any, rung: str) -> Any:
    """A test as it is written, with the rung put into the names of its results."""
    if isinstance(content, str):
        return content.replace(PLACE, rung)
    if isinstance(content, list):
        return [filled(each, rung) for each in content]
    return (
        {key: filled(each, rung) for key, each in content.items()} if isinstance(content, dict) else content
    )


def judge_rungs(
    claim: Claim, results: Mapping[str, np.ndarray], judge: Callable[[Claim], Any], not_tested: Any
) -> Any:
    """The judgement on a claim whose parts are rungs, by those of them that the run has the results of.

    The others stand among its parts as not tested, and decide nothing; `not_tested` is the judgement where
    none was reached, `judge` the one on a claim of which all is recorded.
    """
    reached = [set(part.test.result_names()) <= set(results) for part in claim.parts]
    measured = tuple(part for part, has in zip(claim.parts, reached, strict=True) if has)
    found = judge(replace(claim, parts=measured)) if measured else not_tested
    rows = iter(found.parts)
    nothing = (-math.inf, math.inf)
    parts = tuple(
        next(rows)
        if has
        else (part.says, not_tested.verdict, Outcome(None, math.nan, nothing, 0, test=part.test))
        for part, has in zip(claim.parts, reached, strict=True)
    )
    return replace(found, claim=claim, parts=parts)
