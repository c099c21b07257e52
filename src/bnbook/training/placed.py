"""A probed training that is also looked at in every place of its layers, and whose curves are small enough to
keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.data import Dataset, fixed_sample, normalise
from bnbook.errors import BnbookError
from bnbook.probes import places, removed_gradient
from bnbook.training.engine import SGD, Batch
from bnbook.training.probed import Instruments, ProbedArm
from bnbook.training.resumable import Arrays, Resumable, arrays_of_one

#: Examples of a batch over those of its parts on which the removed gradient is measured once more.
PARTS = 4


@dataclass(frozen=True)
class PlacedArm(ProbedArm):
    """A probed arm that keeps how far moments moved, averaged over units, in place of the moments."""

    placed_layers: tuple[int, ...] = ()  # layers of which the moments at all three places are taken
    removed_gradient: bool = False  # the shares of the gradient that batch norm takes away, or would

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.removed_gradient and self.batch_size < 2 * PARTS:
            raise BnbookError(
                f"batch size {self.batch_size}; expected {2 * PARTS} or more, for the gradient that batch "
                f"norm takes is also measured on {PARTS} parts of a batch"
            )


def start(
    members: Sequence[tuple[PlacedArm, int]],
    dataset: Dataset | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> SGD:
    """The training of one member with its instruments, before its first step."""
    ((arm, seed),) = members
    return SGD(
        arm, seed, dataset, device, threads, observers=[partial(Instruments, arm, seed), partial(Places, arm)]
    )


def train_placed(
    arm: PlacedArm,
    seed: int,
    dataset: Dataset | None = None,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> Arrays:
    """Train as `engine.train` does, bit for bit; its arrays, those of `probed.train_probed`, and these.

    P probed steps, E evaluations, L placed layers, N normalizers; the places are those of `probes.places`,
    the last axis holds the change of the mean and of the variance, averaged over units:

    - update_change (P, L, 3, 2): by the update of the step, over the same fixed images
    - batch_change (P, L, 3, 2): from the mini-batch of the step to the next, as the layers meet them
    - checkpoint_change (E - 1, L, 3, 2): from one evaluation to the next, over the same fixed images
    - median_variance (E, L, 3): of the middle unit, at the evaluations
    - removed_K (P, N): the shares of `probes.removed_gradient`, K one of its names, of the step's mini-batch
    - removed_K_part (P, N): the mean of the same over the four quarters of that batch, each by itself

    NaN from a divergence on. Source: Santurkar et al. 2018, section 2, Figures 7 (v1: 8) and 1, Theorem 4.1.
    """
    return arrays_of_one(start([(arm, seed)], dataset, device, threads))


class Places(Resumable):
    """Looks before the updates `arm.probe_steps`, before the next ones, and at the evaluations."""

    kept = ("rows", "before", "checkpoints", "last")

    def __init__(self, arm: PlacedArm, dataset: Dataset) -> None:
        self.arm, self.stops = arm, set(arm.checkpoints())
        if arm.placed_layers:
            images, _ = fixed_sample(dataset, arm.activation_examples, "train")
            self.fixed = normalise(images, dataset).to(memory_format=torch.channels_last)
        self.rows: dict[int, dict[str, Tensor]] = {}
        self.before: dict[str, places.Moments] = {}  # the update that is being made
        self.checkpoints: dict[int, dict[str, Tensor]] = {}
        self.last: dict[str, places.Moments] = {}  # at the last evaluation

    def look(self, training: SGD, batch: Batch | None) -> bool:
        step, model, arm = training.step, training.model, self.arm
        if arm.placed_layers and batch is not None and step - 1 in arm.probe_steps:
            after = self._moments(model, batch)
            row = {name: places.change(self.before[name], after[name]) for name in after}
            self.rows[step - 1] = self.rows.get(step - 1, {}) | row
        if batch is not None and step in arm.probe_steps:
            self.rows[step] = self._removed(model, batch) if arm.removed_gradient else {}
            self.before = self._moments(model, batch) if arm.placed_layers else {}
        if arm.placed_layers and step in self.stops:
            self._at_checkpoint(step, places.measure(model, self.fixed, arm.placed_layers))
        return True

    def _moments(self, model: nn.Module, batch: Batch) -> dict[str, places.Moments]:
        looked_at = {"update_change": self.fixed, "batch_change": batch[0]}
        return {name: places.measure(model, x, self.arm.placed_layers) for name, x in looked_at.items()}

    def _at_checkpoint(self, step: int, now: places.Moments) -> None:
        row = {"median_variance": places.median_variance(now).cpu()}
        if self.last:
            row["checkpoint_change"] = places.change(self.last["fixed"], now)
        self.checkpoints[step], self.last = row, {"fixed": now}

    def _removed(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        whole = removed_gradient.measure(model, F.cross_entropy, batch)
        size = len(batch[1]) // PARTS
        quarters = [tuple(each[k * size : (k + 1) * size] for each in batch) for k in range(PARTS)]
        parts = [removed_gradient.measure(model, F.cross_entropy, quarter) for quarter in quarters]
        row = {}
        for name in ("along_one", "along_values", "unit_one", "unit_values", "norm"):
            row[f"removed_{name}"] = getattr(whole, name)
            row[f"removed_{name}_part"] = torch.stack([getattr(part, name) for part in parts]).mean(0)
        return {name: value.cpu() for name, value in row.items()}

    def result(self, diverged_step: float) -> Arrays:
        """All rows stacked at their full length, NaN where the training had diverged or stopped before."""
        arm, checkpoints = self.arm, self.arm.checkpoints()
        moved = (len(arm.placed_layers), len(places.PLACES), 2)
        probed = dict.fromkeys(("update_change", "batch_change"), moved) if arm.placed_layers else {}
        probed |= {name: value.shape for row in self.rows.values() for name, value in row.items()}
        watched = {"checkpoint_change": moved, "median_variance": moved[:2]} if self.checkpoints else {}
        found = _stacked(self.rows, arm.probe_steps, diverged_step, probed)
        found |= _stacked(self.checkpoints, checkpoints, diverged_step, watched)
        if self.checkpoints:
            found["checkpoint_change"] = found["checkpoint_change"][1:]  # before the first there is nothing
        return found


def _stacked(
    rows: dict[int, dict[str, Tensor]],
    steps: Sequence[int],
    diverged_step: float,
    shapes: dict[str, tuple[int, ...]],
) -> Arrays:
    """name -> (steps, ...), NaN where a row or its name is missing."""
    found = {name: np.full((len(steps), *shape), np.nan) for name, shape in shapes.items()}
    for place, step in enumerate(steps):
        for name, value in rows.get(step, {}).items():
            if not step >= diverged_step:
                found[name][place] = value.double().numpy()
    return found
