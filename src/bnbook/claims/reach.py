"""What a test can reach with the seeds that its chapter plans: one that cannot hold is refused when it is
read."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import NormalDist

import numpy as np

from bnbook.claims.cells import compared
from bnbook.claims.claim import Test
from bnbook.claims.kinds import decide
from bnbook.intervals import LEVEL

EXACT = ("identity", "inequality")
SEEDS = re.compile(r"^\s*(?:\w+_)?seeds(?::| =) *(\d+)", re.M)
STEPS = re.compile(r"^(?:\w+_)?steps = ", re.M)
#: Beyond so many seeds nothing is sought.
MOST = 10_000


def planned_seeds(chapter: Path) -> int | None:
    """The most seeds that a chapter (its .md) or the settings beside it give to anything; None: no word."""
    texts = [path.read_text(encoding="utf-8") for path in (chapter, *chapter.parent.glob("_*.yml"))]
    return max((int(number) for text in texts for number in SEEDS.findall(text)), default=None)


def trains(chapter: Path) -> bool:
    """Whether a chapter (its .md) has steps among its parameters: what it measures may then diverge."""
    return bool(STEPS.search(chapter.read_text(encoding="utf-8")))


def can_hold(test: Test, seeds: int) -> bool:
    """Whether some outcome of so many seeds makes the test hold.

    Student's interval can be as narrow as one likes from two seeds on. One for events of seeds cannot: with S
    hits of S it still reaches down to 0.025^(1/S) (Clopper and Pearson), and the difference of two shares, S
    against 0, to Bonett and Price's lower end.
    """
    if test.kind in EXACT:
        return True
    if test.kind == "sign":
        return ((1 - LEVEL) / 2) ** (1 / seeds) > 0.5
    if seeds < 2 or not test.events:
        return seeds >= 2
    if test.kind == "level" and test.side:
        least = ((1 - LEVEL) / 2) ** (1 / seeds)
        return least > test.threshold if test.side == "greater" else 1 - least < test.threshold
    if test.kind == "difference":
        share = (seeds + 1) / (seeds + 2)
        middle = share - 1 / (seeds + 2)
        half = (
            NormalDist().inv_cdf((1 + LEVEL) / 2)
            * ((share + 1 / (seeds + 2) - middle**2) / (seeds + 2)) ** 0.5
        )
        return middle - half > (test.threshold if test.side == "greater" else -test.threshold)
    return any(decide(test, compared(test, columns, ""))[0] for columns in _outcomes(test, seeds))


def least_seeds(test: Test) -> int:
    """The fewest seeds with which the test can hold; MOST where it takes more."""
    return next((seeds for seeds in range(1, MOST) if can_hold(test, seeds)), MOST)


def _outcomes(test: Test, seeds: int) -> list[np.ndarray]:
    """What seeds may give at best: any number of hits, or two arms that agree in every seed."""
    if test.kind == "equivalence":
        return [np.zeros((2, seeds))]
    rows = len(test.results or "1")
    return [np.tile(np.arange(seeds) < hits, (rows, 1)).astype(float) for hits in range(seeds + 1)]
