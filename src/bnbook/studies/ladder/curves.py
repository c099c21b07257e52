"""Numbers of one arm of the ladder: name -> one value per seed, (S,), or one for each length or part, (S, k)."""

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
NEAR = 0.05  # learning rates along the gradient: the shortest length, at which no gradient is spent yet
PARTS_OF_PATH = 30  # equal parts of a training of which the mean batch accuracy is kept
STARTS = 300  # steps by which a training has started or has not
UNASKED = ("diverged", "not_started", "seconds")  # of what other chapters ask about learning
#: What is asked of the arms that are compared by little; of the others all numbers are.
ASKED = {
    "noisy": (
        "training_speed",
        "end_accuracy",
        "accuracy_path",
        "batch_mean_next_input",
        "batch_variance_next_input",
        "checkpoint_mean_before_nonlinearity",
        "checkpoint_variance_before_nonlinearity",
    ),
    "noise": ("end_accuracy",),
    "l1": ("training_speed",),
    "l2": ("training_speed",),
    "linf": ("training_speed",),
}
#: Curves that are also summed up over a part of the training.
WINDOWED = {
    "loss_range": ("early", "late", "started"),
    "gradient_change": ("early",),
    "smoothness": ("early",),
}
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


def path(accuracy: np.ndarray) -> np.ndarray:
    """Mean over each of `PARTS_OF_PATH` near-equal parts of a training, (S, T) -> (S, parts)."""
    parts = np.array_split(accuracy, min(PARTS_OF_PATH, accuracy.shape[-1]), axis=-1)
    return np.stack([each.mean(-1) for each in parts], axis=-1)


def slopes(run: Arrays, arm: PlacedArm) -> np.ndarray:
    """‖∇L(θ) - ∇L(θ_a)‖ / (a ‖∇L(θ)‖) at each length a along the gradient, (S, P, A).

    It is 1/a, whatever the network, where the gradient at θ_a is small beside that at θ. An overflow on the
    way counts as infinite; NaN where the training had diverged. The effective β is its maximum over the
    paper's reach (Santurkar et al. 2018, section 3.2).
    """
    far = np.asarray(arm.landscape) * arm.learning_rate * run["start_norm"][..., None]
    alive = np.isfinite(run["start_loss"])[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = run["landscape_distance"] / far
    return np.where(np.isfinite(slope), slope, np.where(alive, np.inf, np.nan))


def by_distance(run: Arrays, arm: PlacedArm) -> Arrays:
    """The slope against the distance, and what the effective β owes to the shortest step of its reach.

    slopes (S, A): medians over the training; near_slope (S,): that at `NEAR`; shortest_share (S,): share of
    the steps at which β is the slope at the shortest step; of_pin (S,): β in units of 1/a there, 1 where β
    says no more than that a move of that length spends the gradient.
    """
    slope, lengths, probe_step = slopes(run, arm), np.asarray(arm.landscape), run["probe_step"][0]
    middles = [over_training(slope[..., k], probe_step) for k in range(len(lengths))]
    within = (lengths >= summaries.PAPER_REACH[0]) & (lengths <= summaries.PAPER_REACH[1])
    inside, shortest = slope[..., within], lengths[within][0] * arm.learning_rate
    alive = np.isfinite(run["start_loss"])
    first = np.where(alive, inside[..., 0] >= inside.max(-1), np.nan)
    return {
        "slopes": np.stack(middles, axis=-1),
        "near_slope": middles[arm.landscape.index(NEAR)],
        "shortest_share": over_training(first, probe_step, mean=True),
        "of_pin": shortest * over_training(inside.max(-1), probe_step),
    }


def seen(run: Arrays, arm: PlacedArm) -> Arrays:
    """Every curve over the probed steps, (S, P)."""
    there = summaries.landscape(run, arm.landscape, arm.learning_rate)
    found = {name: there[name] for name in (*WINDOWED, "gradient_norm", "beyond")}
    shift, ahead = summaries.covariate_shift(run), summaries.predictiveness(run, arm.landscape)
    found |= {name: shift[name] for name in ("shift", "cosine")}
    for length in AHEAD:
        at = arm.landscape.index(length)
        found |= {f"{name}_x{length}": ahead[name][..., at] for name in ("error", "cosine")}
        lower = run["landscape_loss"][..., at] < run["start_loss"]
        found[f"descends_x{length}"] = np.where(np.isfinite(run["start_loss"]), lower, np.nan)
    for name in ("along_one", "along_values"):
        found[f"removed_{name}"] = run[f"removed_{name}"].mean(-1)
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


def first_and_last(change: np.ndarray, probe_step: np.ndarray) -> Arrays:
    """How far one update moves what the next layer receives, behind the first and the last layer looked at:
    medians over the training of (S, P, L, places, 2) -> update_mean_first and its like, (S,) each."""
    received = change[:, :, :, PLACES.index("next_input")]
    return {
        f"update_{moment}_{word}": over_training(received[:, :, layer, m], probe_step)
        for word, layer in (("first", 0), ("last", -1))
        for m, moment in enumerate(("mean", "variance"))
    }


def numbers(run: Arrays, arm: PlacedArm, classes: int) -> Arrays:
    """The numbers of an arm, (S,) each but slopes and path: all of them, or what is `ASKED` of it.

    A curve over the probed steps gives its median over the training (of cosines and shares the mean), under
    its own name; those of `WINDOWED` under NAME_early that of the first tenth of the steps, under NAME_late
    of the second half, under NAME_started of a tenth of the steps from the start of learning on, each step
    alike; shift_decline is that of the shift, early over late. Changes of moments between batches, and of
    what the next layer receives between checkpoints, and near_slope also give their natural logarithm, NAME_log.
    update_mean_first, update_mean_last and those of the variance are of the single layers. slopes and what goes
    with them: `by_distance`; accuracy_path: `path` of the batch accuracy.
    removed_growth: the exponent with which what is removed along the one grows with the batch.
    """
    found, curves, probe_step = learning(run, arm, classes), seen(run, arm), run["probe_step"][0]
    tenth, start = 0.1 * arm.steps, found["start_step"]
    windows = {"early": (0.0, tenth), "late": (0.5 * arm.steps, arm.steps), "started": (start, start + tenth)}
    for name, values in curves.items():
        mean = name.startswith(("cosine", "descends", "removed"))
        found[name] = over_training(values, probe_step, mean=mean)
        for part in WINDOWED.get(name, ()):
            found[f"{name}_{part}"] = over_window(values, probe_step, *windows[part])
    found |= by_distance(run, arm)
    found["accuracy_path"] = path(guessing(run["accuracy"], classes))
    shifts = (over_window(curves["shift"], probe_step, *windows[part]) for part in ("early", "late"))
    found["shift_decline"] = np.divide(*shifts)
    for name, values in moved(run["checkpoint_change"], arm, WAYS["checkpoint_change"]).items():
        found[name] = values.mean(1)
    found |= first_and_last(run["update_change"], probe_step)
    part = over_training(run["removed_along_one_part"].mean(-1), probe_step, mean=True)
    with np.errstate(divide="ignore"):
        changes = [name for name in found if name.startswith("batch_")]
        changes += [name for name in found if name.startswith("checkpoint_") and name.endswith("next_input")]
        found |= {f"{name}_log": np.log(found[name]) for name in (*changes, "near_slope")}
        found["removed_growth"] = 2 + np.log(found["removed_along_one"] / part) / np.log(PARTS)
    return {name: found[name] for name in ASKED.get(arm.norm, found) if name not in UNASKED}
