"""What a test can reach with the seeds that its chapter plans: one that cannot hold is refused when it is
read."""

from __future__ import annotations

import re
from pathlib import Path

from bnbook.claims.claim import Test
from bnbook.claims.kinds.known import kind_of
from bnbook.texts import read_text

SEEDS = re.compile(r"^\s*(?:\w+_)?seeds(?:: .*? =|:| =) *(\d+)", re.M)
STEPS = re.compile(r"^(?:\w+_)?steps(?:: .*?)? = ", re.M)
#: Beyond so many seeds nothing is sought.
MOST = 10_000


def planned_seeds(chapter: Path) -> int | None:
    """The most seeds that a chapter (its .md) or the settings beside it give to anything; None: no word."""
    texts = [read_text(path, path.name) for path in (chapter, *chapter.parent.glob("_*.yml"))]
    return max((int(number) for text in texts for number in SEEDS.findall(text)), default=None)


def trains(chapter: Path) -> bool:
    """Whether a chapter (its .md) has steps among its parameters: what it measures may then diverge."""
    return bool(STEPS.search(read_text(chapter, chapter.name)))


def can_hold(test: Test, seeds: int) -> bool:
    """Whether some outcome of so many seeds makes the test hold."""
    return kind_of(test).can_hold(test, seeds)


def least_seeds(test: Test) -> int:
    """The fewest seeds with which the test can hold; MOST where it takes more."""
    return next((seeds for seeds in range(1, MOST) if can_hold(test, seeds)), MOST)
