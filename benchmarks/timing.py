"""Interleaved timing of two pieces of work, and the verdict on their ratio."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

Work = Callable[[], object]


@dataclass(frozen=True)
class Ratio:
    """Time of one piece of work over that of another, over R rounds."""

    what: str
    ratios: tuple[float, ...]  # (R,): of the two measured right after each other
    bar: float | None  # the ratio that must not be passed; None: only reported
    seconds: tuple[float, float]  # medians of both

    @property
    def median(self) -> float:
        return float(np.median(self.ratios))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the median, from bootstrap resamples of the rounds."""
        draws = np.random.default_rng(0).choice(self.ratios, (4000, len(self.ratios)))
        low, high = np.quantile(np.median(draws, axis=1), (0.025, 0.975))
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return "no bar"
        return "met" if self.interval[1] <= self.bar else "not met" if self.interval[0] > self.bar else "undecided"

    def row(self) -> str:
        low, high = self.interval
        bar = "" if self.bar is None else f"{self.bar:.2f}"
        times = " / ".join(f"{1000 * s:.1f}" for s in self.seconds)
        return f"{self.what:<58} {self.median:6.3f} ({low:.3f} to {high:.3f})  {bar:>5}  {self.verdict:<9}  {times} ms"


def compare(what: str, work: Work, bare: Work, *, rounds: int, bar: float | None = None, share: float = 1.0) -> Ratio:
    """Time both in turn, R rounds, in an order that alternates, after one round to warm up; ratio = work/bare·share.

    `share`: pieces of bare work that count for one piece of work, as a factor 1/pieces.
    """
    measured: list[tuple[float, float]] = []
    for turn in range(rounds + 1):
        if turn % 2:
            second, first = _time(bare), _time(work)
        else:
            first, second = _time(work), _time(bare)
        measured.append((first, second))
    kept = np.array(measured[1:])
    ratios = tuple((kept[:, 0] / kept[:, 1] * share).tolist())
    return Ratio(what, ratios, bar, tuple(np.median(kept, axis=0).tolist()))


def peak_rate(size: int = 1024, rounds: int = 5) -> float:
    """Float32 operations a second of a square matrix product, the best of R: what this machine can do, in GFLOP/s."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    one = torch.randn(size, size, device=device)
    best = min(_time(lambda: one @ one) for _ in range(rounds + 1))
    return 2 * size**3 / best / 1e9


def _time(work: Work) -> float:
    _synchronise()
    begun = time.perf_counter()
    work()
    _synchronise()
    return time.perf_counter() - begun


def _synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
