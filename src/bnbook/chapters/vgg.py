"""The trainings of the VGG network that several chapters show, and the numbers and curves that they draw from
them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from bnbook.chapters.shared import arithmetic
from bnbook.curves import START_MARGIN, guessing, moving_mean, started
from bnbook.deep_linear import LEVELS
from bnbook.errors import BnbookError
from bnbook.probes import summaries
from bnbook.probes.activations import quantiles
from bnbook.probes.places import PLACES
from bnbook.training.arm import Arm
from bnbook.training.practice import Practice
from bnbook.training.probes import Probes, probe_schedule
from bookpress.results import Results

# ---- The rungs of the ladder: which widths, lengths and arms are trained, from how many seeds -------------

LAYERS = tuple(range(1, 11))  # all that VGG-A normalizes
EXAMPLES = ("data", "batch_size", "train_examples", "test_examples")
PAIR, FIGURE = ("none", "batch"), (0.1, 0.5)  # two networks, and the rates of the paper's figure on training
HE = (("init", "meanfield"), ("sigma_b2", 0.0), ("sigma_w2", 2.0))  # weights of variance 2 / fan-in


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


def rung_arms(rung: Rung, settings: Mapping[str, Any]) -> dict[str, Arm]:
    """The rung's arms by their norm.

    settings: the chapter's `data`, `batch_size`, `evaluate_every`, `train_examples`, `test_examples`,
    `activation_examples`, `lengths`, `random_lengths` (in learning rates), `early_probes`, and for the two
    lengths `steps`, `probe_every`, `long_steps`, `long_probe_every`, `long_evaluate_every`; `shrink`
    multiplies every width, for a quick look.
    """
    length = "long_" if rung.long else ""
    steps = settings[f"{length}steps"]
    instruments = Probes(
        probe_steps=probe_schedule(steps, settings[f"{length}probe_every"], settings["early_probes"]),
        landscape=tuple(settings["lengths"]),
        random_directions=tuple(settings["random_lengths"]),
        covariate_shift=True,
        placed_layers=LAYERS,
        removed_gradient=True,
    )
    whole = Arm(
        **{name: settings[name] for name in (*EXAMPLES, "activation_examples")},
        width=rung.width * settings["shrink"],
        steps=steps,
        learning_rate=rung.learning_rate,
        augment=rung.augment,
        evaluate_every=settings[f"{length}evaluate_every"],
        instruments=instruments,
    )
    return {norm: replace(whole, norm=norm) for norm in rung.norms}


def rung_seeds(name: str, first: int, fresh: int, most: int) -> range:
    """The seeds of every arm of a rung, `most` at most: those from `first` on, of one of `FRESH` from `fresh`."""
    start = fresh if name in FRESH else first
    return range(start, start + min(find_rung(name).seeds, most))


# ---- The trainings that several chapters show: those of the ladder, and short ones beside them ------------


def of_ladder(norms: Iterable[str], width: float, settings: Mapping[str, Any]) -> dict[str, Arm]:
    """The ladder's arms at a width, with all instruments, by their norm; settings as `rung_arms` has them,
    and the learning rate.

    Where width and settings are a rung's, so are the trainings, and nothing is trained again.
    """
    rung = Rung(width, 1, tuple(norms), learning_rate=settings["learning_rate"])
    return rung_arms(rung, {"shrink": 1.0} | dict(settings))


def plain_arm(results: Results) -> Arm:
    """The ladder's plain network of a run, for the steps of its checkpoints and probes."""
    settings = results.header["parameters"]
    return of_ladder(("none",), settings["width"], settings)["none"]


def tag(value: float, of: str = "lr") -> str:
    """0.1 -> "lr0_1", as result names have it."""
    return f"{of}{value:g}".replace(".", "_")


def watched_by(arm: Arm, **changes: Any) -> Arm:
    """The same with changes of its instruments."""
    return replace(arm, instruments=replace(arm.instruments, **changes))


def smoothed(arm: Arm) -> Arm:
    """The same with the moments and the landscape alone."""
    return watched_by(arm, random_directions=(), covariate_shift=False, removed_gradient=False)


def at_rate(arm: Arm, rate: float, steps: int) -> Arm:
    """The first steps of an arm at another learning rate, probed along the gradient and for covariate shift:
    at the arm's own steps and, so that these first steps are seen to their end, at the last that can be."""
    looks = probe_schedule(steps, steps, (*arm.instruments.probe_steps, steps - 2))
    lean = dict(probe_steps=looks, random_directions=(), placed_layers=(), removed_gradient=False)
    instruments = replace(arm.instruments, **lean)
    return replace(arm, learning_rate=rate, steps=steps, evaluate_every=0, instruments=instruments)


def unprobed(norm: str, width: float, settings: Mapping[str, Any], **changes: Any) -> Arm:
    """A training without instruments; changes: of its settings."""
    own = {name: settings[name] for name in (*EXAMPLES, "steps", "evaluate_every", "learning_rate")}
    return Arm(norm=norm, width=width, **own | changes)


def tuned(settings: Mapping[str, Any], **changes: Any) -> Arm:
    """One whose rate is chosen for it; changes: what it is and has, those of its `Practice` among them."""
    own = {name: settings[name] for name in (*EXAMPLES, "steps", "evaluate_every", "width")} | changes
    practice = {each.name: own.pop(each.name) for each in fields(Practice) if each.name in own}
    return Arm(**own, optimizer=Practice(**practice))


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
PLACED = (2, 5, 8)  # convolutions whose moments are averaged, as in the other chapters
STARTS = 300  # steps by which a training has started or has not


def learning(run: Arrays, arm: Arm, classes: int) -> Arrays:
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


# ---- Comparisons of two arms of a rung, seed by seed: at equal steps, and where both have come equally far ----

LOSS_LEVELS = 9  # losses at which two arms are compared


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


def edges(run: Arrays, arm: Arm) -> Arrays:
    """Natural logarithm of the smallest and the largest loss within the paper's reach, low, high (S, P)."""
    low, high = summaries.PAPER_REACH
    losses = run["landscape_loss"][..., [low <= length <= high for length in arm.instruments.landscape]]
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"low": np.log(losses.min(-1)), "high": np.log(losses.max(-1))}


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


def moment_changes(run: Arrays, arm: Arm) -> Arrays:
    """Curves WAY_MOMENT_PLACE: by the update of a probed step over the same images and from its batch to the
    next one (S, P), between checkpoints (S, E - 1); mean over units and the convolutions 2, 5 and 8."""
    rows = [arm.instruments.placed_layers.index(layer) for layer in PLACED]
    changes = {way: run[f"{way}_change"][:, :, rows].mean(2) for way in MOVES}  # (S, T, places, 2)
    return {
        f"{way}_{moment}_{place}": change[:, :, k, m]
        for way, change in changes.items()
        for k, place in enumerate(PLACES)
        for m, moment in enumerate(MOMENTS)
    }


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
