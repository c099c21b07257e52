"""Recorded results as a test reads them: present, one number per seed, paired by seed.

A published run may have draws before it: a test reads the union of all that have what it needs, seed by seed. Of a seed
that was drawn several times the last draw counts, and nothing is averaged; so n is the number of seeds however often they
were drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bookpress.errors import PressError


def union(runs: Iterable[tuple[Sequence[int], np.ndarray]]) -> tuple[list[int], np.ndarray]:
    """Seeds and values (S, ...) of all runs, each given by its seeds and values, the oldest first; as it is where
    there is one."""
    (seeds, values), *more = reversed([*runs])
    if not more:
        return list(seeds), values
    found = dict(zip(seeds, values, strict=True))
    for seeds, values in more:
        found = dict(zip(seeds, values, strict=True)) | found
    return sorted(found), np.array([found[seed] for seed in sorted(found)])


class Recorded:
    """A mapping name -> values (S, ...), `bookpress.results.Results` or a plain dict, as one claim reads it."""

    def __init__(self, results: Mapping[str, np.ndarray], claim_id: str) -> None:
        self.results, self.claim_id = results, claim_id
        self.draws = getattr(results, "draws", ())  # those that count

    def array(self, name: str) -> np.ndarray:
        """The values (S, ...) of a result."""
        if name not in self.results:
            raise PressError(
                f"claim {self.claim_id}: result {name} is missing; expected the chapter to record() it"
            )
        values = np.asarray(self.results[name], dtype=float)
        if values.ndim == 0 or values.size == 0:
            raise PressError(
                f"claim {self.claim_id}: result {name} has no seed axis; expected shape (S, ...)"
            )
        return values

    def over(self, name: str) -> np.ndarray:
        """The values (S, ...) of a result by all draws."""
        values = self.array(name)  # which says what is missing
        runs = [(run.entries[name]["seeds"], run[name]) for run in self.draws if name in run]
        return union([*runs, (self._seeds(name) or range(len(values)), values)])[1]

    def seeds(self, names: Sequence[str | float]) -> list[int]:
        """The seeds of all draws of what a test reads; numbered from 0 for a plain dict."""
        last = self._seeds(names[0]) or list(range(len(self.array(str(names[0])))))
        drawn = {s for run in self.draws if _has(run, names) for s in run.entries[names[0]]["seeds"]}
        return sorted({*last, *drawn}) if drawn else last

    def per_seed(self, name: str) -> np.ndarray:
        """One number per seed (S,)."""
        values = self.array(name)
        if values.size != len(values):
            raise PressError(
                f"claim {self.claim_id}: result {name} has shape {values.shape}; expected one number per seed"
            )
        return values.reshape(len(values))

    def paired(
        self,
        names: Sequence[str | float],
        nonfinite: float | None,
        broadcast_last: bool = False,
        events: bool = False,
    ) -> np.ndarray:
        """The named results as rows (len(names), S) of the same seeds; `nonfinite` fills non-finite values.

        A number in place of a name is the same for every seed, and with `broadcast_last` so is a last result
        of one value (a theory that does not depend on the seed). `events`: only 0 and 1 are taken.
        """
        if self.draws:
            asked = (names, nonfinite, broadcast_last, events)
            runs = [run for run in (*self.draws, replace(self.results, draws=())) if _has(run, names)]
            each = [Recorded(run, self.claim_id) for run in runs]
            return union([(run.seeds(names), run.paired(*asked).T) for run in each])[1].T
        first = self.per_seed(str(names[0]))
        rows = [first]
        for k, name in enumerate(names[1:], start=1):
            row = self.per_seed(name) if isinstance(name, str) else np.full(1, float(name))
            is_constant = len(row) == 1 and (
                not isinstance(name, str) or broadcast_last and k == len(names) - 1
            )
            if is_constant:
                row = np.full(len(first), row[0])
            elif len(row) != len(first) or self._seeds(name) != self._seeds(names[0]):
                raise PressError(
                    f"claim {self.claim_id}: {names[0]} and {name} come from different seeds "
                    f"({len(first)} and {len(row)} values); expected arms paired by seed"
                )
            rows.append(row)
        stacked = np.stack(rows)
        if nonfinite is not None:
            stacked = np.where(np.isfinite(stacked), stacked, nonfinite)
        if events and not np.isin(stacked[np.isfinite(stacked)], (0.0, 1.0)).all():
            raise PressError(
                f"claim {self.claim_id}: {names[0]} is no event; expected 0 or 1, or no `events: true`"
            )
        return stacked

    def unit(self, name: str) -> str:
        """The unit that a result was recorded with, none for a plain dict."""
        unit = getattr(self.results, "unit", None)
        return unit(name) if callable(unit) else ""

    def _seeds(self, name: str | float) -> list[int] | None:
        entries = getattr(self.results, "entries", None)
        return entries[name].get("seeds") if entries else None


def _has(run: Mapping[str, np.ndarray], names: Sequence[str | float]) -> bool:
    return all(name in run for name in names if isinstance(name, str))
