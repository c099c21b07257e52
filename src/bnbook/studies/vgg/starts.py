"""Whether trainings start, and how fast they are, by the learning rate."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bnbook.training.curves import guessing, moving_mean, started, steps_to_reach

Arrays = dict[str, np.ndarray]


def tag(rate: float) -> str:
    """0.1 -> "lr0_1", as result names have it."""
    return f"lr{rate:g}".replace(".", "_")


def matched(plain: Arrays, normed: Arrays, classes: int, window: int) -> Arrays:
    """Updates until the mean batch accuracy of `window` steps is the highest that the plain arm ever has, by
    norm, (S,)."""
    curves = {"none": guessing(plain["accuracy"], classes), "batch": guessing(normed["accuracy"], classes)}
    best = moving_mean(curves["none"], window)[:, window - 1 :].max(1)
    return {
        norm: np.array([steps_to_reach(curve, level, window) for curve, level in zip(values, best)])
        for norm, values in curves.items()
    }


def lead(speeds: Mapping[float, np.ndarray], rate: float) -> np.ndarray:
    """By how much the speed (S,) at a rate is above that at the other rate whose mean is best, (S,)."""
    others = [values for other, values in speeds.items() if other != rate]
    return speeds[rate] - max(others, key=np.mean)


def failed(run: Arrays, classes: int) -> np.ndarray:
    """1 where the mean loss of the last sixth of the steps is not 2 % below ln(classes), or is none, (S,)."""
    return (~started(run["loss"], classes)).astype(float)
