"""What the probes saw of a training, summed up: over all of it, early, late, from the start of learning."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bnbook.probes import summaries
from bnbook.probes.over_steps import holds_from, over_training, share_of_training
from bnbook.studies.ladder.pairs import at_equal_loss
from bnbook.studies.ladder.windows import come_to, over_window, start_step
from bnbook.training.placed import PlacedArm
from bnbook.training.probed import ProbedArm

Arrays = dict[str, np.ndarray]


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


def compared(
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
