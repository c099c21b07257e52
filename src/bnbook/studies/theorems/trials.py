"""Many instances: errors and margins by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from bnbook.errors import BnbookError
from bnbook.studies.theorems.margins import EDGES, violations

Trial = Callable[[np.random.Generator, int], dict[str, float]]


@dataclass(frozen=True)
class Trials:
    """Every number that the trials gave, by name and seed."""

    values: dict[str, list[list[float]]]  # name -> S lists; one with a condition has fewer than all instances

    def errors(self, names: str) -> dict[str, list[float]]:
        """error.NAME for each word of `names`: the largest error of each seed."""
        return {f"error.{name}": self.worst(f"error.{name}") for name in names.split()}

    def bounds(self, names: str) -> dict[str, list[int]]:
        """trials.NAME and violations.NAME for each word: a seed's instances on which it was tried, failed."""
        tried = {
            f"trials.{name}": [len(row) for row in self._rows(f"margin.{name}")] for name in names.split()
        }
        return tried | {f"violations.{name}": self.violated(f"margin.{name}") for name in names.split()}

    def shares(self, names: str) -> dict[str, list[float]]:
        """share.NAME for each word: the share of each seed's instances on which a bound failed, 0 of none."""
        return {f"share.{name}": self.share(f"margin.{name}") for name in names.split()}

    def tallies(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """NAME: how many margins of each seed lie where, (S, bins of `margins.EDGES`), for a figure."""
        return {
            name: np.stack(
                [np.histogram(np.nan_to_num(row, nan=-1.0), EDGES)[0] for row in self._rows(f"margin.{name}")]
            )
            for name in names
        }

    def worst(self, name: str) -> list[float]:
        """Largest error of each seed; not a number counts as infinite. BnbookError for a seed without any."""
        if not all(self._rows(name)):
            raise BnbookError(f"a seed has no instance that gives {name!r}; expected more instances a seed")
        return [float(np.nan_to_num(np.array(row), nan=np.inf).max()) for row in self._rows(name)]

    def median(self, name: str) -> list[float]:
        """Median of each seed."""
        return [float(np.median(row)) for row in self._rows(name)]

    def violated(self, name: str) -> list[int]:
        """Number of violated bounds of each seed; not a number counts as violated."""
        return [int(violations(np.nan_to_num(np.array([row]), nan=-1.0))[0]) for row in self._rows(name)]

    def share(self, name: str) -> list[float]:
        """Share of violated bounds of each seed."""
        counts = zip(self.violated(name), self._rows(name), strict=True)
        return [failed / max(len(row), 1) for failed, row in counts]

    def all(self, name: str) -> np.ndarray:
        """All values of all seeds, for a figure."""
        return np.concatenate([np.asarray(row, dtype=float) for row in self._rows(name)])

    def _rows(self, name: str) -> list[list[float]]:
        if name not in self.values:
            raise BnbookError(f"no trial gave {name!r}; expected one of {', '.join(sorted(self.values))}")
        return self.values[name]


def run_trials(trial: Trial, seeds: int, instances: int, stream: int = 0, first: int = 0) -> Trials:
    """`trial(rng, number)` for seeds from `first` on; each instance has random numbers of its own."""
    values: dict[str, list[list[float]]] = {}
    for seed in range(seeds):
        for number in range(instances):
            for name, value in trial(np.random.default_rng([stream, first + seed, number]), number).items():
                values.setdefault(name, [[] for _ in range(seeds)])[seed].append(float(value))
    return Trials(values)
