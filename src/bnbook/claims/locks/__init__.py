"""What was fixed before the data: book/locks.jsonl, a file that only grows.

chain: its lines, read and written · standing: whether a run judges a claim by a test that stood before it.
"""

from __future__ import annotations

from bnbook.claims.locks.chain import Chain, Line, append, read
from bnbook.claims.locks.standing import Standing, plan, run_measure, seeds_used, standing

__all__ = ["Chain", "Line", "Standing", "append", "plan", "read", "run_measure", "seeds_used", "standing"]
