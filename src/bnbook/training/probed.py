"""A training with instruments: the same run as `bnbook.training.engine.train`, looked at on the way."""

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
from bnbook.probes import activations, covariate_shift, landscape
from bnbook.training.arm import Arm
from bnbook.training.engine import SGD, Batch
from bnbook.training.resumable import Arrays, Resumable, arrays_of_one


@dataclass(frozen=True)
class ProbedArm(Arm):
    """An arm, and what is measured at which of its steps; the probes change nothing of the training."""

    probe_steps: tuple[int, ...] = ()  # before the updates with these numbers (0: the first)
    landscape: tuple[float, ...] = ()  # step lengths along the gradient, in multiples of the learning rate
    random_directions: tuple[float, ...] = ()  # the same lengths along one random direction a probed step
    covariate_shift: bool = False  # change of each layer's gradient by the update of the layers before it
    moment_layers: tuple[
        int, ...
    ] = ()  # nonlinearities whose inputs' moments are taken before and after the update

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (
            "landscape",
            "random_directions",
        ):  # 1 and 1.0 are one length, and one entry of the store
            object.__setattr__(self, name, tuple(float(length) for length in getattr(self, name)))
        wrong = [step for step in self.probe_steps if not 0 <= step <= self.steps - 2]
        if wrong:
            raise BnbookError(
                f"probe step {wrong[0]} of a training of {self.steps} steps; expected 0 to {self.steps - 2}, "
                "for the moments after an update are taken before the next"
            )
        if any(not length > 0 for length in (*self.landscape, *self.random_directions)):
            raise BnbookError("a probe's step length is not above 0; expected multiples of the learning rate")


def probe_schedule(steps: int, every: int, early: Sequence[int] = ()) -> tuple[int, ...]:
    """The steps to probe in a training of `steps` updates: 0, each `every`-th, and the `early` ones (->
    (P,))."""
    return tuple(sorted(step for step in {0, *early, *range(0, steps, every)} if step <= steps - 2))


def start(
    members: Sequence[tuple[ProbedArm, int]],
    dataset: Dataset | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> SGD:
    """The training of one member with its instruments, before its first step."""
    ((arm, seed),) = members
    return SGD(arm, seed, dataset, device, threads, observers=[partial(Instruments, arm, seed)])


def train_probed(
    arm: ProbedArm,
    seed: int,
    dataset: Dataset | None = None,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> Arrays:
    """Train as `engine.train` does, bit for bit, and return its arrays and those of the instruments.

    P probed steps, A step lengths, R of them along a random direction, L layers, K one of the
    `moment_layers`; all on the mini-batch of the step, with its statistics and its noise, right before its
    update:

    - probe_step (P,); start_loss, start_norm (P,): loss and gradient norm where the training stands
    - landscape_loss, landscape_distance, landscape_norm (P, A): `probes.landscape.along_gradient`
    - random_loss, random_distance, random_norm (P, R): `probes.landscape.along_direction`, equally long
    - shift_distance, shift_cosine, shift_norm (P, L): `probes.covariate_shift.measure`
    - moment_mean_K, moment_variance_K (P, 2, units): of fixed examples, before and after the update
    - batch_mean_K, batch_variance_K (P, 2, units): of the mini-batches of this step and of the next

    NaN from a divergence on. Source: Santurkar et al. 2018, sections 2 and 3, appendix A.2.2.
    """
    return arrays_of_one(start([(arm, seed)], dataset, device, threads))


class Instruments(Resumable):
    """Looks right before the updates `arm.probe_steps`, and at the moments once more after them."""

    kept = ("generator", "rows")

    def __init__(self, arm: ProbedArm, seed: int, dataset: Dataset) -> None:
        self.arm = arm
        self.generator = torch.Generator().manual_seed(2_000_003 + seed)  # of the random directions
        if arm.moment_layers:
            images, _ = fixed_sample(dataset, arm.activation_examples, "train")
            self.fixed = normalise(images, dataset).to(memory_format=torch.channels_last)
        self.rows: dict[int, dict[str, Tensor]] = {}

    def look(self, training: SGD, batch: Batch | None) -> bool:
        step, model = training.step, training.model
        if batch is not None and step - 1 in self.arm.probe_steps:
            row = self.rows[step - 1]
            row |= {
                name: torch.cat([row[name], after]) for name, after in self._moments(model, batch).items()
            }
        if batch is not None and step in self.arm.probe_steps:
            self.rows[step] = self._before(model, batch) | self._moments(model, batch)
        return True

    def _before(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        arm, row = self.arm, {}
        for name, lengths in (("landscape", arm.landscape), ("random", arm.random_directions)):
            if not lengths:
                continue
            steps = arm.learning_rate * torch.tensor(lengths, dtype=torch.float64)
            if name == "landscape":
                seen = landscape.along_gradient(model, F.cross_entropy, batch, steps)
                row |= {"start_loss": seen.start_loss, "start_norm": seen.start_norm}
            else:
                seen = landscape.along_direction(
                    model, F.cross_entropy, batch, steps, generator=self.generator
                )
            row |= {
                f"{name}_loss": seen.loss,
                f"{name}_distance": seen.gradient_distance,
                f"{name}_norm": seen.gradient_norm,
            }
        if arm.covariate_shift:
            shift = covariate_shift.measure(model, F.cross_entropy, batch, arm.learning_rate)
            row |= {f"shift_{name}": getattr(shift, name) for name in ("distance", "cosine", "norm")}
        return {name: value.detach().double().cpu() for name, value in row.items()}

    def _moments(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Means and variances, (1, units) each."""
        row, layers = {}, self.arm.moment_layers
        for name, examples in (("moment", self.fixed), ("batch", batch[0])) if layers else ():
            seen = activations.measure(model, examples, layers)
            for layer, mean, variance in zip(layers, seen.mean, seen.variance, strict=True):
                row |= {f"{name}_mean_{layer}": mean[None], f"{name}_variance_{layer}": variance[None]}
        return {name: value.detach().double().cpu() for name, value in row.items()}

    def result(self, diverged_step: float) -> Arrays:
        """All rows stacked (P, ...), NaN where the training had diverged or stopped before."""
        steps = self.arm.probe_steps
        found: Arrays = {"probe_step": np.asarray(steps, dtype=np.int64)}
        for name, example in self.rows[steps[0]].items() if self.rows else ():
            table = found[name] = np.full((len(steps), *example.shape), np.nan)
            for place, step in enumerate(steps):
                row = self.rows.get(step, {})
                # the run may stop between two updates, when only the moments before are there
                if not step >= diverged_step and name in row and row[name].shape == example.shape:
                    table[place] = row[name].numpy()
        return found
