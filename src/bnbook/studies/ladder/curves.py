"""Single numbers of one arm of the ladder: name -> one value per seed, (S,)."""

from __future__ import annotations

import numpy as np

from bnbook.probes import summaries
from bnbook.probes.over_steps import over_training
from bnbook.probes.places import PLACES
from bnbook.studies.ladder.windows import over_window, start_step
from bnbook.training.curves import guessing, started
from bnbook.training.placed import PARTS, PlacedArm

Arrays = dict[str, np.ndarray]
AHEAD = (1, 2, 4, 8)  # learning rates along the gradient at which its predictiveness is looked at
PLACED = (2, 5, 8)  # convolutions whose moments are averaged, as in the other chapters
STARTS = 300  # steps by which a training has started or has not
#: Curves that are also summed up over a part of the training.
WINDOWED = (
    "loss_range",
    "gradient_change",
    "smoothness",
    "gradient_norm",
    "shift",
    "cosine",
    "removed_along_one",
)
WAYS = {"update_change": "update", "batch_change": "batch", "checkpoint_change": "checkpoint"}


def learning(run: Arrays, arm: PlacedArm, classes: int) -> Arrays:
    """How fast and how well: batch accuracy over the training and at its end, train and test accuracy at the
    last three checkpoints (a diverged run counts as guessing), the gain over the last tenth, the start."""
    accuracy = guessing(run["accuracy"], classes)
    tenth = max(1, arm.steps // 10)
    end, before = accuracy[:, -tenth:].mean(1), accuracy[:, -2 * tenth : -tenth].mean(1)
    last = {
        name: guessing(run[name], classes)[:, -3:].mean(1) for name in ("train_accuracy", "test_accuracy")
    }
    return last | {
        "training_speed": accuracy.mean(1),
        "end_accuracy": end,
        "last_tenth_gain": end - before,
        "diverged": run["diverged"],
        "not_started": (~started(run["loss"][:, :STARTS], classes)).astype(float),
        "start_step": start_step(run["loss"], classes),
        "seconds": run["seconds"],
    }


def seen(run: Arrays, arm: PlacedArm) -> Arrays:
    """Every curve over the probed steps, (S, P)."""
    found = summaries.landscape(run, arm.landscape, arm.learning_rate)
    found |= summaries.random_direction(run, arm.random_directions, arm.learning_rate)
    found |= summaries.covariate_shift(run)
    ahead = summaries.predictiveness(run, arm.landscape)
    for length in AHEAD:
        at = arm.landscape.index(length)
        found |= {f"{name}_x{length}": values[..., at] for name, values in ahead.items()}
        lower = run["landscape_loss"][..., at] < run["start_loss"]
        found[f"descends_x{length}"] = np.where(np.isfinite(run["start_loss"]), lower, np.nan)
    for name in ("along_one", "along_values"):
        found[f"removed_{name}"] = run[f"removed_{name}"].mean(-1)
        found[f"removed_{name}_part"] = run[f"removed_{name}_part"].mean(-1)
    for array, way in WAYS.items():
        if array != "checkpoint_change":
            found |= moved(run[array], arm, way)
    return found


def moved(change: np.ndarray, arm: PlacedArm, way: str) -> Arrays:
    """Change of mean and variance at each place, mean over the convolutions `PLACED`: (S, T, L, places, 2) ->
    (S, T) each."""
    rows = [arm.placed_layers.index(layer) for layer in PLACED]
    change = change[:, :, rows].mean(2)
    return {
        f"{way}_{moment}_{place}": change[:, :, k, m]
        for k, place in enumerate(PLACES)
        for m, moment in enumerate(("mean", "variance"))
    }


def numbers(run: Arrays, arm: PlacedArm, classes: int) -> Arrays:
    """All single numbers of an arm, (S,) each.

    A curve over the probed steps gives its median over the training (of cosines and shares the mean), under
    its own name; those of `WINDOWED` under NAME_early that of the first tenth of the steps, under NAME_late
    of the second half, under NAME_started of a tenth of the steps from the start of learning on, each step
    alike. Changes of moments also give their natural logarithm, NAME_log.
    """
    found, curves, probe_step = learning(run, arm, classes), seen(run, arm), run["probe_step"][0]
    tenth, start = 0.1 * arm.steps, found["start_step"]
    windows = {"early": (0.0, tenth), "late": (0.5 * arm.steps, arm.steps), "started": (start, start + tenth)}
    for name, values in curves.items():
        mean = name.startswith(("cosine", "descends", "removed"))
        found[name] = over_training(values, probe_step, mean=mean)
        for part, (low, high) in windows.items() if name in WINDOWED else ():
            found[f"{name}_{part}"] = over_window(values, probe_step, low, high, mean)
    for name, values in moved(run["checkpoint_change"], arm, WAYS["checkpoint_change"]).items():
        found[name] = values.mean(1)
    with np.errstate(divide="ignore"):
        changes = [name for name in found if name.startswith(tuple(WAYS.values())) and name.endswith(PLACES)]
        found |= {f"{name}_log": np.log(found[name]) for name in changes}
        found["removed_growth"] = 2 + np.log(
            found["removed_along_one"] / found["removed_along_one_part"]
        ) / np.log(PARTS)
    found["removed"] = found["removed_along_one"] + found["removed_along_values"]
    found["shift_decline"] = found["shift_early"] / found["shift_late"]
    deviation = np.sqrt(run["median_variance"][:, :, :, 0])  # (S, E, L), before normalization
    found |= {"deviation_first": deviation[:, 0].min(-1), "deviation_last": deviation[:, -1].min(-1)}
    return found
