"""A bound against what happened: left side over right side, trial by trial."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

#: Relative slack of every bound: beyond it a bound is violated.
SLACK = 1e-9


@dataclass(frozen=True)
class Ratios:
    """Left side over right side of a bound for every trial of one seed; above 1 it is violated."""

    ratio: np.ndarray  # (trials,)

    @property
    def violations(self) -> int:
        return int((~(self.ratio <= 1 + SLACK)).sum())

    @property
    def trials(self) -> int:
        return len(self.ratio)


def tally(seeds: Iterable[np.ndarray], decades: tuple[int, int]) -> np.ndarray:
    """How many ratios of each seed lie where, (S, 4 bins a decade); what lies outside counts in the last bin.

    A ratio of exactly 1, which is no violation, counts below.
    """
    low, high = decades
    edges = np.linspace(low, high, 4 * (high - low) + 1)
    with np.errstate(divide="ignore"):
        logs = (np.log10(np.maximum(one, 1e-99)) - 1e-9 for one in seeds)
        return np.stack([np.histogram(np.clip(one, low, high), edges)[0] for one in logs])
