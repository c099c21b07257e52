"""Where training breaks: the learning rate between the largest that works and the smallest that does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

#: The mean loss of the last tenth of the steps against the first step's: training works where it is below.
WORKS_BELOW = 1.0


def works(loss: np.ndarray, threshold: float = WORKS_BELOW) -> np.ndarray:
    """Whether trainings (S, T) work: they did not explode, and the loss of the last tenth is below the first
    step's, (S,)."""
    tail = max(1, loss.shape[-1] // 10)
    with np.errstate(invalid="ignore"):
        end = loss[..., -tail:].mean(-1)
        return np.isfinite(end) & (end < threshold * loss[..., 0])


def bisect(
    try_rates: Callable[[np.ndarray], np.ndarray], low: Sequence[float], high: Sequence[float], rounds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bisection in log10 η for M members at once: the largest rate that was seen to work and the smallest
    that was not, (M,).

    try_rates(log10 η (M,)) -> whether each member works (M,). low and high bracket the boundary, low working
    and high not; a bracket that turns out wrong is moved by its own width until it is right, which the rounds
    do not count. Each round halves the bracket. The members' boundaries need not be sharp: what is found is
    one change from working to not.
    """
    low, high = np.array(low, dtype=float), np.array(high, dtype=float)
    for edge, other, right in ((low, high, True), (high, low, False)):
        for _ in range(20):
            wrong = try_rates(edge) != right
            if not wrong.any():
                break
            width = np.abs(high - low)
            other[wrong] = edge[wrong]
            edge[wrong] += (-width if right else width)[wrong]
    for _ in range(rounds):
        middle = (low + high) / 2
        good = try_rates(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low, high
