"""What a test compares: cells, each with one value per seed and an interval of their mean at any level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bnbook import intervals

HAIR = 1e-9


@dataclass(frozen=True)
class Cell:
    """One comparison: values (S,), their interval at a level of confidence, a name if there are several."""

    values: np.ndarray
    interval: Callable[[float], intervals.Interval]
    name: str = ""
    in_logs: bool = False  # the interval is one of the logarithms
    resolution: float | None = None  # of the grid that the values come from

    def ends(self, level: float) -> intervals.Interval:
        """The interval, wider by the resolution: all seeds share one grid, whose error no seed shows.

        A bracket does not contain its own ends (one works, one does not): they are kept a hair inside.
        """
        effect, low, high = self.interval(level)
        if self.resolution is None:
            return effect, low, high
        if self.in_logs:
            width = self.resolution ** (1 - HAIR)
            return effect, low / width, high * width
        width = self.resolution * (1 - HAIR)
        return effect, low - width, high + width
