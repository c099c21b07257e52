"""Comparisons of two arms of a rung, seed by seed: at equal steps, and where both have come equally far."""

from __future__ import annotations

import numpy as np

from bnbook.probes import summaries
from bnbook.probes.over_steps import over_training, share_of_training
from bnbook.studies.ladder.curves import seen
from bnbook.studies.ladder.windows import over_window, progress
from bnbook.training.curves import START_MARGIN, guessing, moving_mean, steps_to_reach
from bnbook.training.placed import PlacedArm

Arrays = dict[str, np.ndarray]
LEVELS = 9  # losses at which two arms are compared
#: Curves that are compared at equal loss: by the logarithm of their ratio, or by their difference.
RATIOS = (
    "loss_range",
    "gradient_change",
    "smoothness",
    "gradient_norm",
    "shift",
    "relative_shift",
    "error_x4",
)
DIFFERENCES = ("cosine", "cosine_x4")


def compare(plain: Arrays, normed: Arrays, arms: tuple[PlacedArm, PlacedArm], classes: int) -> Arrays:
    """Numbers of a pair, without and with batch norm, (S,) each.

    steps_to_match_none, steps_to_match_batch: until the batch accuracy is the best that the plain arm has;
    smoother_share_X: share of the steps at which batch norm has the smaller X; worse_share_cosine,
    worse_share_shift: at which it has the larger covariate shift; gap_X_early, gap_X_late: X without over
    with, medians of the first tenth and of the second half; equal_loss_X: logarithm of X without over with
    (of cosines their difference) where both have come equally far, median over `at_equal_loss`;
    equal_distance_ratio: error of the gradient without over with, where both have moved equally far.
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
    for name in ("loss_range", "gradient_change", "smoothness"):
        found[f"smoother_share_{name}"] = share_of_training(one[name] > other[name], alive, probe_step)
        for part, (low, high) in {"early": (0, 0.1 * steps), "late": (0.5 * steps, steps)}.items():
            middles = (over_window(each[name], probe_step, low, high) for each in (one, other))
            found[f"gap_{name}_{part}"] = np.divide(*middles)
    found["worse_share_cosine"] = share_of_training(other["cosine"] < one["cosine"], alive, probe_step)
    found["worse_share_shift"] = share_of_training(other["shift"] > one["shift"], alive, probe_step)
    come = progress(plain["loss"]), progress(normed["loss"])
    for name in (*RATIOS, *DIFFERENCES):
        values = at_equal_loss((one[name], other[name]), come, probe_step, classes)
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.log(values[0] / values[1]) if name in RATIOS else values[0] - values[1]
        found[f"equal_loss_{name}"] = np.median(apart, axis=1)  # NaN where an arm never started
    ratio = summaries.error_ratio_at_equal_distance(plain, normed, arms[0].landscape, arms[0].learning_rate)
    found["equal_distance_ratio"] = over_training(ratio, probe_step)
    return found


def at_equal_loss(
    curves: tuple[np.ndarray, np.ndarray],
    come: tuple[np.ndarray, np.ndarray],
    probe_step: np.ndarray,
    classes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """What two arms show where each first reaches the same loss, (S, P) twice -> (S, LEVELS) twice.

    come: how far each has come, (S, T), see `windows.progress`. The losses lie evenly between the start of
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
