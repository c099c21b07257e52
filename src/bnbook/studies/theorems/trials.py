"""Many instances: errors and margins by seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bnbook.errors import BnbookError
from bnbook.results import record
from bnbook.studies.theorems.margins import violations

Trial = Callable[[np.random.Generator, int], dict[str, float]]


@dataclass(frozen=True)
class Trials:
    """Every number that the trials gave, by name and seed."""

    values: dict[
        str, list[list[float]]
    ]  # name -> S lists; a name with a condition has fewer than `instances` values

    def worst(self, name: str) -> list[float]:
        """Largest error of each seed; not a number counts as infinite."""
        return [float(np.nan_to_num(np.array(row), nan=np.inf).max()) for row in self._rows(name)]

    def median(self, name: str) -> list[float]:
        """Median of each seed."""
        return [float(np.median(row)) for row in self._rows(name)]

    def violated(self, name: str) -> list[int]:
        """Number of violated bounds of each seed; not a number counts as violated."""
        return [int(violations(np.nan_to_num(np.array([row]), nan=-1.0))[0]) for row in self._rows(name)]

    def count(self, name: str) -> list[int]:
        """Number of trials of each seed."""
        return [len(row) for row in self._rows(name)]

    def share(self, name: str) -> list[float]:
        """Share of violated bounds of each seed."""
        return [v / n if n else 0.0 for v, n in zip(self.violated(name), self.count(name), strict=True)]

    def all(self, name: str) -> np.ndarray:
        """All values of all seeds, for a figure."""
        return np.concatenate([np.asarray(row, dtype=float) for row in self._rows(name)])

    def _rows(self, name: str) -> list[list[float]]:
        if name not in self.values:
            raise BnbookError(f"no trial gave {name!r}; expected one of {', '.join(sorted(self.values))}")
        return self.values[name]


def run_trials(trial: Trial, seeds: int, instances: int, stream: int = 0) -> Trials:
    """`trial(rng, number)` for every seed and number; each instance has random numbers of its own."""
    values: dict[str, list[list[float]]] = {}
    for seed in range(seeds):
        for number in range(instances):
            for name, value in trial(np.random.default_rng([stream, seed, number]), number).items():
                values.setdefault(name, [[] for _ in range(seeds)])[seed].append(float(value))
    return Trials(values)


def record_trials(found: Trials) -> None:
    """Record every error (the worst of each seed) and for every bound its violations, trials and share of
    violations."""
    for name in found.values:
        kind, _, what = name.partition(".")
        if kind == "error":
            record(name, found.worst(name), note="largest relative error of an instance")
        elif kind == "margin":
            record(f"violations.{what}", found.violated(name), note="instances that violate the bound")
            record(f"trials.{what}", found.count(name), note="instances on which the bound was tried")
            record(f"share.{what}", found.share(name), note="share of instances that violate the bound")
