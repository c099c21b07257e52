"""A training with instruments: the same run as `bnbook.training.engine.train`, looked at on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.data import Dataset, fixed_sample, load, normalise
from bnbook.data.batches import infinite_batches
from bnbook.errors import BnbookError
from bnbook.probes import activations, covariate_shift, landscape
from bnbook.training.arm import Arm, build_model
from bnbook.training.engine import _Observer, _run, numerics, pick_device

Arrays = dict[str, np.ndarray]


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


def train_probed(
    arm: ProbedArm,
    seed: int,
    dataset: Dataset | None = None,
    *,
    device: str | None = None,
    threads: int | None = None,
    on_steps: Callable[[int], None] | None = None,
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
    where = pick_device(device) if device or dataset is None else dataset.device
    dataset = load(arm.data, device=where) if dataset is None else dataset
    cuda = [where] if where.type == "cuda" else []
    with numerics(where, threads), torch.random.fork_rng(devices=cuda):
        torch.manual_seed(seed)
        model = build_model(arm, dataset).to(where).train()
        batches = infinite_batches(
            dataset, arm.batch_size, torch.Generator().manual_seed(1_000_003 + seed), augment=arm.augment
        )
        instruments = _Instruments(arm, seed, model, dataset)
        observer = _Observer(arm, dataset, where)
        found = _run(arm, model, instruments.watch(batches), observer, on_steps)
    return found | instruments.result(found["diverged_step"])


class _Instruments:
    """Stands between the batches and the training, and looks whenever a batch passes."""

    def __init__(self, arm: ProbedArm, seed: int, model: nn.Module, dataset: Dataset) -> None:
        self.arm, self.model = arm, model
        self.generator = torch.Generator().manual_seed(2_000_003 + seed)  # of the random directions
        if arm.moment_layers:
            images, _ = fixed_sample(dataset, arm.activation_examples, "train")
            self.fixed = normalise(images, dataset).to(memory_format=torch.channels_last)
        self.rows: dict[int, Arrays] = {}

    def watch(self, batches: Iterator[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
        """Pass the batches on; the training asks for one right before each update."""
        wanted = set(self.arm.probe_steps)
        for step, (images, targets) in enumerate(batches):
            inputs = images.to(memory_format=torch.channels_last)
            if step - 1 in wanted:
                self._add(step - 1, self._moments(inputs))
            if step in wanted:
                self._add(step, self._before(inputs, targets))
            yield inputs, targets

    def _before(self, inputs: Tensor, targets: Tensor) -> Arrays:
        arm, row, batch = self.arm, {}, (inputs, targets)
        for name, lengths in (("landscape", arm.landscape), ("random", arm.random_directions)):
            if not lengths:
                continue
            steps = arm.learning_rate * torch.tensor(lengths, dtype=torch.float64)
            if name == "landscape":
                seen = landscape.along_gradient(self.model, F.cross_entropy, batch, steps)
                row |= {"start_loss": _array(seen.start_loss), "start_norm": _array(seen.start_norm)}
            else:
                seen = landscape.along_direction(
                    self.model, F.cross_entropy, batch, steps, generator=self.generator
                )
            row |= {
                f"{name}_loss": _array(seen.loss),
                f"{name}_distance": _array(seen.gradient_distance),
                f"{name}_norm": _array(seen.gradient_norm),
            }
        if arm.covariate_shift:
            shift = covariate_shift.measure(self.model, F.cross_entropy, batch, arm.learning_rate)
            row |= {f"shift_{name}": _array(getattr(shift, name)) for name in ("distance", "cosine", "norm")}
        return row | self._moments(inputs)

    def _moments(self, inputs: Tensor) -> Arrays:
        row: Arrays = {}
        layers = self.arm.moment_layers
        for name, examples in (("moment", self.fixed), ("batch", inputs)) if layers else ():
            seen = activations.measure(self.model, examples, layers)
            for layer, mean, variance in zip(layers, seen.mean, seen.variance, strict=True):
                row |= {
                    f"{name}_mean_{layer}": _array(mean)[None],
                    f"{name}_variance_{layer}": _array(variance)[None],
                }
        return row

    def _add(self, step: int, row: Arrays) -> None:
        """The moments come twice, before the update and after it."""
        kept = self.rows.get(step, {})
        self.rows[step] = kept | {k: np.concatenate([kept[k], v]) if k in kept else v for k, v in row.items()}

    def result(self, diverged_step: np.ndarray) -> Arrays:
        """All rows stacked (P, ...), NaN where the training had diverged or stopped before."""
        steps = np.asarray(self.arm.probe_steps, dtype=np.int64)
        found: Arrays = {"probe_step": steps}
        whole = [step for step in steps.tolist() if step in self.rows and not step >= float(diverged_step)]
        for name in self.rows[int(steps[0])] if self.rows else ():
            shape = self.rows[int(steps[0])][name].shape
            table = np.full((len(steps), *shape), np.nan)
            for place, step in enumerate(steps.tolist()):
                if (
                    step in whole and self.rows[step][name].shape == shape
                ):  # the run may stop between two updates
                    table[place] = self.rows[step][name]
            found[name] = table
        return found


def _array(value: Tensor) -> np.ndarray:
    return value.detach().double().cpu().numpy()
