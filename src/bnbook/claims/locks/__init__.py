"""What was fixed before the data: book/locks.jsonl, a file that only grows.

lines: what a line says · chain: the file, read and added to · standing: whether a run judges a claim by a
test that stood before it · deviations: which tests were changed, and why.
"""

from __future__ import annotations

from bnbook.claims.locks.chain import Chain, alone, append, has_new_tests, misdated, read
from bnbook.claims.locks.deviations import Deviation, deviations, power
from bnbook.claims.locks.lines import NAME, Line
from bnbook.claims.locks.standing import Standing, is_reached, plan, run_measure, seeds_used, standing

__all__ = [
    "Chain",
    "Deviation",
    "Line",
    "NAME",
    "Standing",
    "alone",
    "append",
    "deviations",
    "has_new_tests",
    "is_reached",
    "misdated",
    "plan",
    "power",
    "read",
    "run_measure",
    "seeds_used",
    "standing",
]
