"""The trainings of the VGG network that several chapters show, and the numbers and curves that they draw from
them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bnbook.chapters.shared import arithmetic
from bnbook.deep_linear import LEVELS
from bnbook.errors import BnbookError
from bnbook.probes import summaries
from bnbook.probes.activations import quantiles
from bnbook.probes.over_steps import holds_from, over_training, share_of_training
from bnbook.probes.places import PLACES
from bnbook.training.arm import Arm
from bnbook.training.curves import START_MARGIN, guessing, moving_mean, started, steps_to_reach
from bnbook.training.placed import PARTS, PlacedArm
from bnbook.training.probed import ProbedArm, probe_schedule

# ---- The rungs of the ladder: which widths, lengths and arms are trained, from how many seeds -------------

LAYERS = tuple(range(1, 11))  # all that VGG-A normalizes


@dataclass(frozen=True)
class Rung:
    """What one rung trains: each norm from the same seeds, with all instruments."""

    width: float  # share of VGG-A's channels
    seeds: int
    norms: tuple[str, ...] = ("none", "batch", "noisy")
    long: bool = False  # the paper's 15,000 steps in place of 2,000
    learning_rate: float = 0.1
    augment: bool = False  # crop and flip
    of: str = ""  # the rung that it completes, under whose name its results stand


#: In the order in which they are trained: the cheap ones first. Seeds as hours allow.
RUNGS: dict[str, Rung] = {
    "w1_16": Rung(1 / 16, 10),
    "w1_8": Rung(1 / 8, 5),
    "w1_4": Rung(1 / 4, 5),
    "w1_2": Rung(1 / 2, 4),
    "w1": Rung(1.0, 3, ("none", "batch")),
    "long": Rung(1 / 4, 5, long=True),
    "long_others": Rung(1 / 4, 5, ("noise", "l1", "l2", "linf"), long=True, of="long"),
    "long_fast": Rung(1 / 4, 5, ("none", "batch"), long=True, learning_rate=0.5),
    "long_cropped": Rung(1 / 4, 5, ("none", "batch"), long=True, augment=True),
    "full_first": Rung(1.0, 1, ("none", "batch"), long=True, of="full"),
    "w1_noisy": Rung(1.0, 3, ("noisy",), of="w1"),
    "full": Rung(1.0, 3, ("none", "batch"), long=True),
    "long_w1_8": Rung(1 / 8, 5, long=True),
    "long_w1_16": Rung(1 / 16, 5, long=True),
}
#: Those that judge what was first seen on the others, from seeds of their own.
FRESH = ("long_w1_8", "long_w1_16")


def find_rung(name: str) -> Rung:
    """The rung of that name; BnbookError lists the known."""
    if name not in RUNGS:
        raise BnbookError(f"no size {name!r} of the ladder; expected one of {', '.join(RUNGS)}")
    return RUNGS[name]


def rung_arms(rung: Rung, settings: Mapping[str, Any]) -> dict[str, PlacedArm]:
    """The rung's arms by their norm.

    settings: the chapter's `data`, `batch_size`, `evaluate_every`, `train_examples`, `test_examples`,
    `activation_examples`, `lengths`, `random_lengths` (in learning rates), `early_probes`, and for the two
    lengths `steps`, `probe_every`, `long_steps`, `long_probe_every`, `long_evaluate_every`; `shrink`
    multiplies every width, for a quick look.
    """
    length = "long_" if rung.long else ""
    steps = settings[f"{length}steps"]
    common = {
        name: settings[name]
        for name in ("data", "batch_size", "train_examples", "test_examples", "activation_examples")
    }
    return {
        norm: PlacedArm(
            norm=norm,
            **common,
            width=rung.width * settings["shrink"],
            steps=steps,
            learning_rate=rung.learning_rate,
            augment=rung.augment,
            evaluate_every=settings[f"{length}evaluate_every"],
            probe_steps=probe_schedule(steps, settings[f"{length}probe_every"], settings["early_probes"]),
            landscape=tuple(settings["lengths"]),
            random_directions=tuple(settings["random_lengths"]),
            covariate_shift=True,
            placed_layers=LAYERS,
            removed_gradient=True,
        )
        for norm in rung.norms
    }


def rung_seeds(name: str, first: int, fresh: int, most: int) -> range:
    """The seeds of every arm of a rung, `most` at most: those from `first` on, of one of `FRESH` from `fresh`."""
    start = fresh if name in FRESH else first
    return range(start, start + min(find_rung(name).seeds, most))


# ---- The trainings that several chapters show: those of the ladder, and short ones beside them ------------

Arms = dict[str, PlacedArm]


def of_ladder(norms: Iterable[str], width: float, settings: Mapping[str, Any]) -> Arms:
    """The ladder's arms at a width, with all instruments, by their norm; settings as `rung_arms` has them,
    and the learning rate.

    Where width and settings are a rung's, so are the trainings, and nothing is trained again.
    """
    rung = Rung(width, 1, tuple(norms), learning_rate=settings["learning_rate"])
    return rung_arms(rung, {"shrink": 1.0} | dict(settings))


def smoothed(arm: PlacedArm) -> PlacedArm:
    """The same with the moments and the landscape alone."""
    return replace(arm, random_directions=(), covariate_shift=False, removed_gradient=False)


def moments_only(arm: PlacedArm) -> PlacedArm:
    """The same with the moments at three places alone."""
    return replace(smoothed(arm), landscape=())


def at_rate(arm: PlacedArm, rate: float, steps: int) -> PlacedArm:
    """The first steps of an arm at another learning rate, probed along the gradient and for covariate shift:
    at the arm's own steps and, so that these first steps are seen to their end, at the last that can be."""
    return replace(
        arm,
        learning_rate=rate,
        steps=steps,
        evaluate_every=0,
        probe_steps=probe_schedule(steps, steps, (*arm.probe_steps, steps - 2)),
        random_directions=(),
        placed_layers=(),
        removed_gradient=False,
    )


def unprobed(norm: str, width: float, settings: Mapping[str, Any], **changes: Any) -> Arm:
    """A training without instruments; changes: of its settings."""
    names = ["data", "batch_size", "steps", "learning_rate"]
    names += ["evaluate_every", "train_examples", "test_examples"]
    return Arm(norm=norm, width=width, **{name: settings[name] for name in names} | changes)


def watched(
    norm: str, width: float, settings: Mapping[str, Any], layers: Iterable[int], **changes: Any
) -> Arm:
    """One without instruments, whose distributions at these layers are kept at its checkpoints."""
    kept = {"activation_layers": tuple(layers), "activation_examples": settings["activation_examples"]}
    return unprobed(norm, width, settings, **kept | changes)


# ---- Middles over a part of a training, in which each step weighs the same, however often it was probed ----

#: Batches over which a loss is averaged before it says how far a training has come.
SMOOTHED = 50
#: No single loss counts for more: a larger one would take the digits of all later sums with it.
SPIKE = 1e6


def over_window(
    values: np.ndarray,
    probe_step: np.ndarray,
    low: np.ndarray | float,
    high: np.ndarray | float,
    mean: bool = False,
) -> np.ndarray:
    """Median (or mean) of (S, P) over the steps from `low` to `high` ((S,) or one number each) -> (S,).

    A probe stands for the steps up to half way to its neighbours, as far as they lie in the window. NaN steps
    (after a divergence) are left out; NaN where nothing is left.
    """
    steps = np.asarray(probe_step, dtype=float)
    values = np.asarray(values, dtype=float)
    edges = np.concatenate([steps[:1], (steps[1:] + steps[:-1]) / 2, steps[-1:]])
    lows, highs = (np.broadcast_to(np.asarray(each, dtype=float), len(values)) for each in (low, high))
    found = np.full(len(values), np.nan)
    for place, (row, first, last) in enumerate(zip(values, lows, highs, strict=True)):
        weights = np.minimum(edges[1:], last) - np.maximum(edges[:-1], first)
        kept = ~np.isnan(row) & (weights > 0)
        if not kept.any():
            continue
        row, weights = row[kept], weights[kept]
        if mean:
            found[place] = (row * weights).sum() / weights.sum()
        else:
            order = np.argsort(row)
            reached = np.cumsum(weights[order]) / weights.sum()
            found[place] = row[order][np.searchsorted(reached, 0.5 - 1e-12)]
    return found


def progress(loss: np.ndarray) -> np.ndarray:
    """The lowest mean loss of `SMOOTHED` batches so far, (S, T) -> (S, T); NaN from a divergence on."""
    window = max(1, min(SMOOTHED, loss.shape[-1] // 4))
    return np.minimum.accumulate(moving_mean(loss, window), axis=-1)


def come_to(loss: np.ndarray) -> np.ndarray:
    """The same of about `SMOOTHED` batches around each step; at the start of fewer, as many on each side,
    at the end of the last full window; NaN from half of them before a divergence on.

    What a network shows at a loss is looked up by this one: a mean of the batches *before* names a loss when
    the network lies below it already, and the faster it learns, the further.
    """
    loss = np.minimum(np.asarray(loss, dtype=float), SPIKE)
    steps = np.arange(loss.shape[-1])
    full = min(SMOOTHED, len(steps) // 4) // 2
    centre = np.minimum(steps, len(steps) - 1 - full)
    half = np.minimum(full, centre)
    total = np.concatenate([np.zeros((*loss.shape[:-1], 1)), np.cumsum(loss, axis=-1)], axis=-1)
    mean = (total[..., centre + half + 1] - total[..., centre - half]) / (2 * half + 1)
    return np.minimum.accumulate(mean, axis=-1)


def start_step(loss: np.ndarray, classes: int) -> np.ndarray:
    """Updates until the progress lies `START_MARGIN` below ln(classes), (S, T) -> (S,); T where it never
    does. A network that learns fast is seen to start some ten updates late."""
    under = progress(loss) < (1 - START_MARGIN) * np.log(classes)
    return np.where(under.any(-1), under.argmax(-1) + 1.0, loss.shape[-1])


# ---- Numbers of one arm of the ladder: name -> one value per seed, (S,), or one for each length or part, (S, k) ----

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


# ---- Comparisons of two arms of a rung, seed by seed: at equal steps, and where both have come equally far ----

LOSS_LEVELS = 9  # losses at which two arms are compared
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

    come: how far each has come, (S, T), see `come_to`. The losses lie evenly between the start of
    learning and the end of the arm that ends higher. A curve is read between its probes along a straight
    line. NaN where an arm has not started.
    """
    found = tuple(np.full((len(values), LOSS_LEVELS), np.nan) for values in curves)
    high = (1 - START_MARGIN) * np.log(classes)
    for seed in range(len(curves[0])):
        low = max(float(np.nanmin(each[seed])) for each in come)
        if not low < high:
            continue
        for values, each, row in zip(curves, come, found):
            at = [int(np.argmax(each[seed] <= level)) for level in np.linspace(high, low, LOSS_LEVELS)]
            row[seed] = np.interp(at, probe_step, values[seed])
    return found


# ---- What the probes saw of a training, summed up: over all of it, early, late, from the start of learning ----


def landscape(run: Arrays, arm: ProbedArm) -> Arrays:
    """Curves (S, P) along the gradient and, where the arm looked, along a random direction; start_loss.

    loss_change: the largest |L - L(θ)| within the paper's reach along the gradient, as random_loss_change is
    along the random direction.
    """
    found = summaries.landscape(run, arm.landscape, arm.learning_rate) | {"start_loss": run["start_loss"]}
    low, high = summaries.PAPER_REACH
    within = [low <= length <= high for length in arm.landscape]
    away = np.abs(run["landscape_loss"][..., within] - run["start_loss"][..., None])
    found["loss_change"] = away.max(-1)
    if arm.random_directions:
        found |= summaries.random_direction(run, arm.random_directions, arm.learning_rate)
    return found


def edges(run: Arrays, arm: ProbedArm) -> Arrays:
    """Natural logarithm of the smallest and the largest loss within the paper's reach, low, high (S, P)."""
    low, high = summaries.PAPER_REACH
    losses = run["landscape_loss"][..., [low <= length <= high for length in arm.landscape]]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"low": np.log(losses.min(-1)), "high": np.log(losses.max(-1))}


def middles(curves: Mapping[str, np.ndarray], run: Arrays, arm: PlacedArm, classes: int) -> Arrays:
    """NAME -> the median of a curve over the training, (S,), of cosines the mean; NAME_early that of the
    first tenth of the steps, NAME_late of the second half, NAME_started of a tenth of the steps from the
    start of learning on. Each step weighs the same, however often it was probed."""
    steps, begun = run["probe_step"][0], start_step(run["loss"], classes)
    tenth = 0.1 * arm.steps
    windows = {"early": (0.0, tenth), "late": (0.5 * arm.steps, arm.steps), "started": (begun, begun + tenth)}
    found = {}
    for name, values in curves.items():
        mean = name.startswith("cosine")
        found[name] = over_training(values, steps, mean=mean)
        for part, (low, high) in windows.items():
            found[f"{name}_{part}"] = over_window(values, steps, low, high, mean)
    return found


def first_steps(curve: np.ndarray, run: Arrays, steps: int, mean: bool = False) -> np.ndarray:
    """Median (or mean) of a curve over the first so many steps, (S, P) -> (S,)."""
    return over_window(curve, run["probe_step"][0], 0.0, steps, mean)


def curves_compared(
    one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray], names: tuple[str, ...], plain: Arrays
) -> Arrays:
    """share.NAME, from.NAME: the share of the steps at which a measure of the plain network is the larger,
    and the probed step from which on it is (∞: not at the last), while it lives; plain: its arrays."""
    alive, steps = np.isfinite(plain["start_loss"]), plain["probe_step"][0]
    found = {}
    for name in names:
        larger = one[name] > other[name]
        found[f"share.{name}"] = share_of_training(larger, alive, steps)
        found[f"from.{name}"] = holds_from(larger | ~alive, steps)
    return found


def at_equal_progress(
    curves: tuple[np.ndarray, np.ndarray], runs: tuple[Arrays, Arrays], classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Medians of two curves (S, P) over the losses that both trainings pass, each where it first reaches
    them; (S,) twice, NaN where a training never started."""
    come = come_to(runs[0]["loss"]), come_to(runs[1]["loss"])
    values = at_equal_loss(curves, come, runs[0]["probe_step"][0], classes)
    return np.median(values[0], axis=1), np.median(values[1], axis=1)


# ---- How far mean and variance of a unit move at the three places of a layer: by an update, between -------
# batches, and from checkpoint to checkpoint

MOVES = ("update", "batch", "checkpoint")
MOMENTS = ("mean", "variance")
#: The places as readers know them, in the order of a forward pass.
WORDS = {
    "before_normalization": "in front of the normalization",
    "before_nonlinearity": "in front of the rectifier",
    "next_input": "at the next layer's input",
}


def moment_changes(run: Arrays, arm: PlacedArm) -> Arrays:
    """Curves WAY_MOMENT_PLACE: by the update of a probed step over the same images and from its batch to the
    next one (S, P), between checkpoints (S, E - 1); mean over units and the convolutions 2, 5 and 8."""
    found: Arrays = {}
    for way in MOVES:
        found |= moved(run[f"{way}_change"], arm, way)
    return found


def moment_numbers(run: Arrays, arm: PlacedArm, logs: tuple[str, ...] = ()) -> Arrays:
    """WAY_MOMENT_PLACE (S,): the median over the training, between checkpoints the mean; logs: the
    ways whose natural logarithms are taken too, NAME_log."""
    found = {}
    for name, values in moment_changes(run, arm).items():
        by_checkpoint = name.startswith("checkpoint")
        found[name] = values.mean(1) if by_checkpoint else over_training(values, run["probe_step"][0])
        if name.startswith(logs):
            with np.errstate(divide="ignore"):
                found[f"{name}_log"] = np.log(found[name])
    return found


def usual_variance(run: Arrays, arm: PlacedArm, layers: tuple[int, ...]) -> np.ndarray:
    """Variance of the middle unit of what leaves these convolutions, at the checkpoints, (S, E, layers)."""
    rows = [arm.placed_layers.index(layer) for layer in layers]
    return run["median_variance"][:, :, rows, PLACES.index("before_normalization")]


# ---- Curves of accuracy over a training, and fans of the distributions at its checkpoints -----------------

DRAWN = 60  # points of a curve of batch accuracy


def batch_steps(steps: int, drawn: int = DRAWN) -> np.ndarray:
    """The numbers of updates at which a curve of batch accuracy is drawn."""
    window = max(1, steps // drawn)
    return np.arange(window, steps + 1, window)


def batch_accuracy(run: Arrays, classes: int, drawn: int = DRAWN) -> np.ndarray:
    """Mean accuracy, in per cent, of the batches up to each of `batch_steps`, with its band, (1, 3, X)."""
    steps = run["accuracy"].shape[1]
    window = max(1, steps // drawn)
    means = moving_mean(guessing(run["accuracy"], classes), window)
    return arithmetic(100 * means[:, window - 1 :: window])


def test_accuracy(run: Arrays, classes: int) -> np.ndarray:
    """Test accuracy in per cent at the checkpoints, with its band, (1, 3, E)."""
    return arithmetic(100 * guessing(run["test_accuracy"], classes))


def fan(run: Arrays, layers: int, unit: int = 0) -> np.ndarray:
    """Quantiles of what one unit of each watched layer hands to its rectifier, first seed: (1, E, layers,
    7)."""
    rows = [quantiles(run["histogram"][0, :, row, unit], LEVELS) for row in range(layers)]
    return np.stack(rows, axis=1)[None]
