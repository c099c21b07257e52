"""How far mean and variance of a unit move at the three places of a layer: by an update, between batches,
and from checkpoint to checkpoint."""

from __future__ import annotations

import numpy as np

from bnbook.probes.over_steps import over_training
from bnbook.probes.places import PLACES
from bnbook.studies.ladder.curves import moved
from bnbook.training.placed import PlacedArm

Arrays = dict[str, np.ndarray]
WAYS = ("update", "batch", "checkpoint")
MOMENTS = ("mean", "variance")
#: The places as readers know them, in the order of a forward pass.
WORDS = {
    "before_normalization": "in front of the normalization",
    "before_nonlinearity": "in front of the rectifier",
    "next_input": "at the next layer's input",
}


def changes(run: Arrays, arm: PlacedArm) -> Arrays:
    """Curves WAY_MOMENT_PLACE: by the update of a probed step over the same images and from its batch to the
    next one (S, P), between checkpoints (S, E - 1); mean over units and the convolutions 2, 5 and 8."""
    found: Arrays = {}
    for way in WAYS:
        found |= moved(run[f"{way}_change"], arm, way)
    return found


def of_arm(run: Arrays, arm: PlacedArm, logs: tuple[str, ...] = ()) -> Arrays:
    """WAY_MOMENT_PLACE (S,): the median over the training, between checkpoints the mean; logs: the
    ways whose natural logarithms are taken too, NAME_log."""
    found = {}
    for name, values in changes(run, arm).items():
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
