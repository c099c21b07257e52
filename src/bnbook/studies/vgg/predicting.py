"""How far a gradient can be trusted: errors of the VGG's and the deep linear network's, summed up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bnbook.probes import summaries
from bnbook.probes.over_steps import holds_from, over_training, share_of_training
from bnbook.studies.ladder.windows import over_window

Arrays = dict[str, np.ndarray]
AHEAD = (1, 2, 4, 8, 16)  # learning rates along the gradient
SHOWN = (0.02, 0.25, 1.0)  # parts of a training at which errors are drawn


def at_length(run: Arrays, lengths: Sequence[float], length: float) -> Arrays:
    """Curves (S, P) at one length: error, relative_error and cosine of `summaries.predictiveness`, and
    descends, 1 where a step so long lowers the batch's loss."""
    at = int(np.argmin(np.abs(np.asarray(lengths) - length)))
    found = {name: values[..., at] for name, values in summaries.predictiveness(run, lengths).items()}
    lower = run["landscape_loss"][..., at] < run["start_loss"]
    return found | {"descends": np.where(np.isfinite(run["start_loss"]), lower, np.nan)}


def of_arm(run: Arrays, lengths: Sequence[float], ahead: Sequence[float] = AHEAD) -> Arrays:
    """NAME.xLENGTH: medians over the training, of cosines and descends the means; of the error also over the
    first tenth of the steps, error.xLENGTH.early, and over the second half, .late, each step alike."""
    steps, found = run["probe_step"][0], {}
    end = float(steps[-1])
    for length in ahead:
        for name, values in at_length(run, lengths, length).items():
            mean = name in ("cosine", "descends")
            found[f"{name}.x{length}"] = over_training(values, steps, mean=mean)
            if name == "error":
                for part, window in {"early": (0.0, 0.1 * end), "late": (0.5 * end, end)}.items():
                    found[f"{name}.x{length}.{part}"] = over_window(values, steps, *window)
    return found


def of_pair(plain: Arrays, normed: Arrays, lengths: Sequence[float], rate: float) -> Arrays:
    """better_share: the share of the steps at which the error at 4 learning rates is smaller with batch norm;
    better_from: the probed step from which on it is to the end (∞: not at the last); equal_distance_ratio:
    error without over with it, equally far in parameters, median over the training."""
    steps, alive = plain["probe_step"][0], np.isfinite(plain["start_loss"])
    one, other = (at_length(run, lengths, 4)["error"] for run in (plain, normed))
    ratio = summaries.error_ratio_at_equal_distance(plain, normed, lengths, rate)
    return {
        "better_share": share_of_training(one > other, alive, steps),
        "better_from": holds_from((one > other) | ~alive, steps),
        "equal_distance_ratio": over_training(ratio, steps),
    }


def shown(steps: np.ndarray) -> list[int]:
    """Places of the probed steps at which errors are drawn: early, at a quarter, the last."""
    return [int(np.searchsorted(steps, part * steps[-1])) for part in SHOWN]
