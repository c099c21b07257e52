"""What one test found."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bnbook.claims.cells import Cell
from bnbook.claims.claim import Effect, Test


@dataclass(frozen=True)
class Outcome:
    """What one test found."""

    holds: bool | None  # None: undecided
    effect: float
    interval: tuple[float, float]
    n: int  # seeds
    unit: str = ""
    detail: str = ""
    trials: int = 0  # of a bound that was tried
    test: Test | None = None
    shown: Effect | None = None  # how readers see the effect; None: as its kind is usually seen
    cells: tuple[Cell, ...] = field(default=(), repr=False, compare=False)  # what was compared
    place: int = 0  # of the cell that is shown: the one that decides

    @property
    def values(self) -> np.ndarray:
        """What the interval is of, one value per seed (S,); empty for an exact check."""
        return self.cells[self.place].values if self.cells else np.empty(0)
