"""What looks on at a training besides its evaluations: along the gradient, at the covariate shift, at each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.probes import covariate_shift, landscape, places, removed_gradient
from bnbook.training.arm import Arm, Part
from bnbook.training.engine import SGD, Batch, Row, Seen, stacked
from bnbook.training.resumable import Arrays

#: Examples of a batch over those of its parts on which the removed gradient is measured once more.
PARTS = 4


@dataclass(frozen=True)
class Probes(Part):
    """What is measured at which of an arm's steps; the probes change nothing of the training.

    P probed steps, A step lengths, R of them along a random direction, E evaluations, L placed layers, N layers or
    normalizers; all but what is named otherwise on the mini-batch of the step, with its statistics and its noise,
    right before its update; NaN from a divergence on:

    - probe_step (P,); start_loss, start_norm (P,): loss and gradient norm where the training stands
    - landscape_loss, landscape_distance, landscape_norm (P, A): `probes.landscape.along_gradient`
    - random_loss, random_distance, random_norm (P, R): `probes.landscape.along_direction`, equally long
    - shift_distance, shift_cosine, shift_norm (P, N): `probes.covariate_shift.measure`
    - removed_K (P, N): the shares of `probes.removed_gradient`, K one of its names
    - removed_K_part (P, N): the mean of the same over the four quarters of that batch, each by itself
    - update_change (P, L, 3, 2): at the places of `probes.places` the change of mean and variance, averaged over
      units, by the update of the step, over the same fixed images
    - batch_change (P, L, 3, 2): from the mini-batch of the step to the next, as the layers meet them
    - checkpoint_change (E - 1, L, 3, 2): from one evaluation to the next, over the same fixed images
    - median_variance (E, L, 3): of the middle unit, at the evaluations

    Source: Santurkar et al. 2018, sections 2 and 3, appendix A.2.2, Figures 7 (v1: 8) and 1, Theorem 4.1.
    """

    probe_steps: tuple[int, ...] = ()  # before the updates with these numbers (0: the first)
    landscape: tuple[float, ...] = ()  # step lengths along the gradient, in multiples of the learning rate
    random_directions: tuple[float, ...] = ()  # the same lengths along one random direction a probed step
    covariate_shift: bool = False  # change of each layer's gradient by the update of the layers before it
    moment_layers: tuple[()] = field(default=(), init=False)  # none: what stored trainings say that had some
    placed_layers: tuple[int, ...] = ()  # layers of which the moments at all three places are taken
    removed_gradient: bool = False  # the shares of the gradient that batch norm takes away, or would

    label, place = "arm", "instruments"

    def __post_init__(self) -> None:
        # 1 and 1.0 are one length, and one entry of the store
        for name in ("landscape", "random_directions"):
            object.__setattr__(self, name, tuple(float(length) for length in getattr(self, name)))
        if any(not length > 0 for length in (*self.landscape, *self.random_directions)):
            raise BnbookError("a probe's step length is not above 0; expected multiples of the learning rate")

    def check(self, arm: Arm) -> None:
        wrong = [step for step in self.probe_steps if not 0 <= step <= arm.steps - 2]
        if wrong:
            raise BnbookError(
                f"probe step {wrong[0]} of a training of {arm.steps} steps; expected 0 to {arm.steps - 2}, "
                "for the moments after an update are taken before the next"
            )
        if self.removed_gradient and arm.batch_size < 2 * PARTS:
            raise BnbookError(
                f"batch size {arm.batch_size}; expected {2 * PARTS} or more, for the gradient that batch "
                f"norm takes is also measured on {PARTS} parts of a batch"
            )

    def look(self, training: SGD, batch: Batch | None, seen: Seen) -> bool:
        step, placed = training.step, bool(self.placed_layers)
        if placed and batch is not None and step - 1 in self.probe_steps:
            after = self._moments(training, batch)
            seen.rows[step - 1] |= {name: places.change(seen.last[name], after[name]) for name in after}
        if batch is not None and step in self.probe_steps:
            seen.rows[step] = self._before(training, batch)
            seen.last |= self._moments(training, batch) if placed else {}
        if placed and step in training.stops:
            now = self._at(training.model, training.fixed)
            row = seen.rows.setdefault(step, {})
            row["median_variance"] = places.median_variance(now).double()
            if "checkpoint" in seen.last:
                row["checkpoint_change"] = places.change(seen.last["checkpoint"], now)
            seen.last["checkpoint"] = now
        return True

    def _before(self, training: SGD, batch: Batch) -> Row:
        model, rate, row = training.model, training.arm.learning_rate, {}
        for name, lengths in (("landscape", self.landscape), ("random", self.random_directions)):
            if not lengths:
                continue
            steps = rate * torch.tensor(lengths, dtype=torch.float64)
            if name == "landscape":
                seen = landscape.along_gradient(model, F.cross_entropy, batch, steps)
                row |= {"start_loss": seen.start_loss, "start_norm": seen.start_norm}
            else:
                own = training.directions
                seen = landscape.along_direction(model, F.cross_entropy, batch, steps, generator=own)
            row |= {
                f"{name}_loss": seen.loss,
                f"{name}_distance": seen.gradient_distance,
                f"{name}_norm": seen.gradient_norm,
            }
        if self.covariate_shift:
            shift = covariate_shift.measure(model, F.cross_entropy, batch, rate)
            row |= {f"shift_{name}": getattr(shift, name) for name in ("distance", "cosine", "norm")}
        row |= self._removed(model, batch) if self.removed_gradient else {}
        return {name: value.detach().double().cpu() for name, value in row.items()}

    def _removed(self, model: nn.Module, batch: Batch) -> Row:
        whole = removed_gradient.measure(model, F.cross_entropy, batch)
        size = len(batch[1]) // PARTS
        quarters = [tuple(each[k * size : (k + 1) * size] for each in batch) for k in range(PARTS)]
        parts = [removed_gradient.measure(model, F.cross_entropy, quarter) for quarter in quarters]
        row = {}
        for name in ("along_one", "along_values", "unit_one", "unit_values", "norm"):
            row[f"removed_{name}"] = getattr(whole, name)
            row[f"removed_{name}_part"] = torch.stack([getattr(part, name) for part in parts]).mean(0)
        return row

    def _moments(self, training: SGD, batch: Batch) -> dict[str, places.Moments]:
        looked_at = {"update_change": training.fixed, "batch_change": batch[0]}
        return {name: self._at(training.model, x) for name, x in looked_at.items()}

    def _at(self, model: nn.Module, x: Tensor) -> places.Moments:
        return [[each.cpu() for each in layer] for layer in places.measure(model, x, self.placed_layers)]

    def result(self, arm: Arm, seen: Seen, diverged_step: float) -> Arrays:
        """All rows stacked at their full length, NaN where the training had diverged or stopped before."""
        moved = torch.empty(len(self.placed_layers), len(places.PLACES), 2, dtype=torch.float64)
        like = dict.fromkeys(("update_change", "batch_change") if self.placed_layers else (), moved)
        like |= {name: value for row in seen.rows.values() for name, value in row.items()}
        watched = {"median_variance": moved[..., 0], "checkpoint_change": moved}
        watched = watched if "checkpoint" in seen.last else {}
        probed = {name: value for name, value in like.items() if name not in watched}
        rows = {step: row for step, row in seen.rows.items() if not step >= diverged_step}
        found = {"probe_step": np.asarray(self.probe_steps, dtype=np.int64)}
        found |= stacked(rows, self.probe_steps, probed) | stacked(rows, arm.checkpoints(), watched)
        if watched:
            found["checkpoint_change"] = found["checkpoint_change"][1:]  # before the first there is nothing
        return found


def probe_schedule(steps: int, every: int, early: Sequence[int] = ()) -> tuple[int, ...]:
    """The steps to probe in a training of `steps` updates: 0, each `every`-th, and the `early` ones (->
    (P,))."""
    return tuple(sorted(step for step in {0, *early, *range(0, steps, every)} if step <= steps - 2))
