"""Interleaved timing of two pieces of work, and the verdict on their ratio."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

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
    def least(self) -> float:
        """The smallest of the ratios, of the round that was disturbed least."""
        return min(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the median, from bootstrap resamples of the rounds."""
        draws = np.random.default_rng(0).choice(self.ratios, (4000, len(self.ratios)))
        low, high = np.quantile(np.median(draws, axis=1), (0.025, 0.975))
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        """By the median; "close" where the bar lies inside the interval: another run may say otherwise."""
        if self.bar is None:
            return "no bar"
        low, high = self.interval
        close = ", close" if low <= self.bar < high else ""
        return ("met" if self.median <= self.bar else "not met") + close

    def row(self) -> str:
        low, high = self.interval
        bar = "" if self.bar is None else f"{self.bar:.2f}"
        times = " / ".join(f"{1000 * s:.1f}" for s in self.seconds)
        ratio = f"{self.median:6.3f} ({low:.3f} to {high:.3f})"
        return f"{self.what:<58} {self.least:6.3f}  {ratio:<25}  {bar:>5}  {self.verdict:<14}  {times}"

    def rescaled(self, what: str, change: Callable[[float], float], bar: float | None = None) -> Ratio:
        """The same rounds as another ratio, such as per pass or at another interval."""
        return replace(self, what=what, ratios=tuple(change(ratio) for ratio in self.ratios), bar=bar)

    def as_json(self) -> dict[str, object]:
        return asdict(self) | {
            "least": self.least,
            "median": self.median,
            "interval": self.interval,
            "verdict": self.verdict,
        }


def compare(what: str, work: Work, bare: Work, *, rounds: int, bar: float | None = None) -> Ratio:
    """Time both in turn, R rounds, in alternating order, after one to warm up; ratio = work / bare."""
    measured: list[tuple[float, float]] = []
    for turn in range(rounds + 1):
        if turn % 2:
            second, first = _time(bare), _time(work)
        else:
            first, second = _time(work), _time(bare)
        measured.append((first, second))
    kept = np.array(measured[1:])
    ratios, seconds = kept[:, 0] / kept[:, 1], np.median(kept, axis=0)
    return Ratio(what, tuple(ratios.tolist()), bar, tuple(seconds.tolist()))


def summary(found: Sequence[Ratio]) -> str:
    """How many bars are met, and which are not."""
    counts = Counter(ratio.verdict for ratio in found if ratio.bar is not None)
    said = "; ".join(f"{counts[verdict]} {verdict}" for verdict in sorted(counts))
    missed = [f"  {ratio.verdict}: {ratio.what}" for ratio in found if ratio.verdict.startswith("not met")]
    return "\n".join([f"bars: {said or 'none judged'}", *missed])


def peak_rate(size: int | None = None, rounds: int = 5) -> float:
    """Rate of a square float32 matrix product, the best of R rounds: what this machine can do, in GFLOP/s."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = size or (8192 if device == "cuda" else 1024)  # so long that its start takes no time beside it
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
