"""Comparisons of two arms of a rung, seed by seed: at equal steps, and where both have come equally far."""

from __future__ import annotations

import numpy as np

from bnbook.probes.over_steps import share_of_training
from bnbook.studies.ladder.curves import seen
from bnbook.studies.ladder.windows import come_to, over_window
from bnbook.training.curves import START_MARGIN, guessing, moving_mean, steps_to_reach
from bnbook.training.placed import PlacedArm

Arrays = dict[str, np.ndarray]
LEVELS = 9  # losses at which two arms are compared
COMPARED = ("loss_range", "smoothness", "shift")  # curves that are compared at equal loss


def compare(plain: Arrays, normed: Arrays, arms: tuple[PlacedArm, PlacedArm], classes: int) -> Arrays:
    """Numbers of a pair, without and with batch norm, (S,) each.

    steps_to_match_none, steps_to_match_batch: until the batch accuracy is the best that the plain arm has;
    smoother_share_smoothness: share of the steps at which batch norm has the smaller effective β;
    gap_loss_range_early, gap_loss_range_late: range of the loss without over with, medians of the first tenth
    and of the second half; equal_loss_X: logarithm of X without over with where both have come equally far,
    median over `at_equal_loss`.
    """
    steps = arms[0].steps
    window = max(1, steps // 60)
    accuracy = [guessing(run["accuracy"], classes) for run in (plain, normed)]
    best = moving_mean(accuracy[0], window)[:, window - 1 :].max(1)
    found = {}
    for word, curves in zip(("none", "batch"), accuracy):
        reached = [steps_to_reach(curve, level, window) for curve, level in zip(curves, best)]
        found[f"steps_to_match_{word}"] = np.array(reached)
    one, other = seen(plain, arms[0]), seen(normed, arms[1])
    alive, probe_step = np.isfinite(plain["start_loss"]), plain["probe_step"][0]
    smoother = one["smoothness"] > other["smoothness"]
    found["smoother_share_smoothness"] = share_of_training(smoother, alive, probe_step)
    for part, (low, high) in {"early": (0, 0.1 * steps), "late": (0.5 * steps, steps)}.items():
        middles = (over_window(each["loss_range"], probe_step, low, high) for each in (one, other))
        found[f"gap_loss_range_{part}"] = np.divide(*middles)
    come = come_to(plain["loss"]), come_to(normed["loss"])
    for name in COMPARED:
        values = at_equal_loss((one[name], other[name]), come, probe_step, classes)
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.log(values[0] / values[1])
        found[f"equal_loss_{name}"] = np.median(apart, axis=1)  # NaN where an arm never started
    return found


def overtaken(one: np.ndarray, other: np.ndarray, steps: int) -> np.ndarray:
    """The step from which on `one` is ahead of `other` to the end, by their mean accuracies in equal parts of
    the training, (S, parts) each -> (S,); inf where it is not ahead at the end."""
    behind = one <= other
    last = behind.shape[-1] - np.argmax(behind[:, ::-1], axis=-1)  # parts up to the last one behind
    last = np.where(behind.any(-1), last, 0)
    return np.where(behind[:, -1], np.inf, last * steps / behind.shape[-1])


def at_equal_loss(
    curves: tuple[np.ndarray, np.ndarray],
    come: tuple[np.ndarray, np.ndarray],
    probe_step: np.ndarray,
    classes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """What two arms show where each first reaches the same loss, (S, P) twice -> (S, LEVELS) twice.

    come: how far each has come, (S, T), see `windows.come_to`. The losses lie evenly between the start of
    learning and the end of the arm that ends higher. A curve is read between its probes along a straight
    line. NaN where an arm has not started.
    """
    found = tuple(np.full((len(values), LEVELS), np.nan) for values in curves)
    high = (1 - START_MARGIN) * np.log(classes)
    for seed in range(len(curves[0])):
        low = max(float(np.nanmin(each[seed])) for each in come)
        if not low < high:
            continue
        for values, each, row in zip(curves, come, found):
            at = [int(np.argmax(each[seed] <= level)) for level in np.linspace(high, low, LEVELS)]
            row[seed] = np.interp(at, probe_step, values[seed])
    return found
