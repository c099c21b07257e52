"""SGD, measured: from (arm, seed) to arrays, in steps between which it can stop and be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.data import Dataset, fixed_sample, load, normalise
from bnbook.data.batches import Batches
from bnbook.errors import BnbookError
from bnbook.probes import activations
from bnbook.training.arm import Arm, build_model
from bnbook.training.numerics import numerics, pick_device
from bnbook.training.resumable import Arrays, Training, arrays_of_one

Batch = tuple[Tensor, Tensor]
Row = dict[str, Tensor]


@dataclass
class Seen:
    """What an instrument has seen of a training, which keeps it."""

    rows: dict[int, Row] = field(default_factory=dict)  # by the number of the step
    last: dict[str, Any] = field(default_factory=dict)  # what the next look is compared with


class Instrument(Protocol):
    """A frozen dataclass that looks at a training, and leaves it as it is."""

    def look(self, training: SGD, batch: Batch | None, seen: Seen) -> bool:
        """After `training.step` updates, before the one on this batch, None at the end; False ends it."""

    def result(self, arm: Arm, seen: Seen, diverged_step: float) -> Arrays:
        """What was seen; NaN from a divergence on (NaN: none)."""


def stacked(rows: Mapping[int, Row], steps: Sequence[int], like: Row) -> Arrays:
    """Name -> (steps, ...), NaN where there is no row or the name is not in it; like: a value of each name."""
    found = {}
    for name, value in like.items():
        value = value.numpy()
        found[name] = np.full((len(steps), *value.shape), np.nan, dtype=value.dtype)
        for place, step in enumerate(steps):
            if name in rows.get(step, {}):
                found[name][place] = rows[step][name].numpy()
    return found


class SGD(Training):
    """One network from one seed: SGD on the cross-entropy, θ ← θ - a ∇L(θ), with momentum if the arm says so.

    The same seed means the same first weights and the same batches. What the network draws, its weights and
    its noise, comes from a random state of its own: the caller's stays as it is.
    """

    kept = (
        "step",
        "over",
        "random",
        "model",
        "optimizer",
        "batches",
        "losses",
        "hits",
        "directions",
        "seen",
        "broken_at",
    )

    def __init__(
        self,
        arm: Arm,
        seed: int,
        dataset: Dataset | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        where = pick_device(device) if device or dataset is None else dataset.device
        super().__init__(arm.steps, where, threads)
        self.arm, self.random, self.stops = arm, {}, set(arm.checkpoints())
        self.dataset = load(arm.data, device=where) if dataset is None else dataset
        with numerics(where, threads), self._own_random_state():
            torch.manual_seed(seed)
            self.model = build_model(arm, self.dataset).to(where).train()
            # Another seed than the weights': the same would make permutation and weights from the same random
            # numbers.
            generator = torch.Generator().manual_seed(1_000_003 + seed)
            self.batches = Batches(self.dataset, arm.batch_size, generator, augment=arm.augment)
        self.directions = torch.Generator().manual_seed(2_000_003 + seed)  # in which instruments look
        self.instruments: list[Instrument] = [Evaluation()]
        self.instruments += [] if arm.kind is arm else [arm.kind]
        self.seen = [Seen() for _ in self.instruments]
        plain = dict(lr=arm.learning_rate, momentum=arm.momentum, weight_decay=arm.weight_decay)
        own = arm.optimizer and arm.optimizer.of(self)
        self.optimizer = own or torch.optim.SGD(self.model.parameters(), **plain)
        # Written on the device: reading a loss at each step would make a GPU wait for the host.
        self.losses, self.hits = torch.full((2, arm.steps), torch.nan, device=where)
        self.broken_at = np.nan  # the step at which an instrument ended the training

    @cached_property
    def fixed(self) -> Tensor:
        """The training examples at which instruments look."""
        images, _ = fixed_sample(self.dataset, self.arm.activation_examples, "train")
        return normalise(images, self.dataset).to(memory_format=torch.channels_last)

    def make_step(self) -> None:
        with self._own_random_state():
            batch = None
            if self.step < self.steps:
                inputs, targets = next(self.batches)
                batch = inputs.to(memory_format=torch.channels_last), targets
            pairs = zip(self.instruments, self.seen, strict=True)
            if not all(instrument.look(self, batch, seen) for instrument, seen in pairs):
                self.broken_at = float(self.step)
            self.over = batch is None or not np.isnan(self.broken_at)
            if not self.over:
                self._update(*batch)
                self.step += 1

    def _update(self, inputs: Tensor, targets: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        outputs = self.model(inputs)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        self.optimizer.step()
        self.losses[self.step] = loss.detach()
        self.hits[self.step] = (outputs.detach().argmax(1) == targets).sum()

    def result(self) -> Arrays:
        """The arrays of `train`, each with a leading axis of one member."""
        losses, accuracy = self.losses.cpu().numpy().copy(), self.hits.cpu().numpy() / self.arm.batch_size
        broken = np.flatnonzero(~np.isfinite(losses))
        last = float(broken[0]) if len(broken) else self.broken_at
        if not np.isnan(last):
            losses[int(last) :] = accuracy[int(last) :] = np.nan
        found = {"loss": losses, "accuracy": accuracy}
        for instrument, seen in zip(self.instruments, self.seen, strict=True):
            found |= instrument.result(self.arm, seen, last)
        found |= {"diverged": np.float64(not np.isnan(last)), "diverged_step": np.float64(last)}
        return {name: np.asarray(values)[None] for name, values in found.items()}

    @contextmanager
    def _own_random_state(self) -> Iterator[None]:
        cuda = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda):
            if self.random:
                torch.set_rng_state(self.random["cpu"])
                for device in cuda:
                    torch.cuda.set_rng_state(self.random["cuda"], device)
            yield
            self.random = {"cpu": torch.get_rng_state()}
            for device in cuda:
                self.random["cuda"] = torch.cuda.get_rng_state(device)


def start(
    members: Sequence[tuple[Arm, int]],
    dataset: Dataset | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> SGD:
    """The training of one member, an arm and a seed, before its first step."""
    ((arm, seed),) = members
    return SGD(arm, seed, dataset, device, threads)


def train(
    arm: Arm,
    seed: int,
    dataset: Dataset | None = None,
    *,
    device: str | None = None,
    threads: int | None = None,
) -> Arrays:
    """Train `arm` from `seed` by SGD on the cross-entropy, θ ← θ - a ∇L(θ), and return what was measured.

    Arms with the same seed start from the same weights and see the same batches. T steps, E evaluations, L
    layers:

    - loss, accuracy (T,): of each batch before its update, in training mode; NaN from a divergence on
    - step (E,), train_loss, train_accuracy, test_loss, test_accuracy (E,): on fixed examples, population
      statistics
    - diverged (): 1 if a loss was not finite, and the run stopped there; diverged_step (): that step, else
      NaN
    - histogram (E, L, units, bins), mean_l, variance_l (E, width of layer l): inputs of nonlinearity l over
      fixed training examples, batch statistics (`bnbook.probes.activations.measure`)

    and what the arm's instruments say that they have. Source: Santurkar et al. 2018, appendix A.1.
    """
    return arrays_of_one(SGD(arm, seed, dataset, device, threads))


#: Examples in a forward pass of an evaluation; more do not help and cost memory.
CHUNK = 500


@dataclass(frozen=True)
class Evaluation:
    """Looks at the model at the arm's checkpoints, and ends a training that has diverged."""

    def look(self, training: SGD, batch: Batch | None, seen: Seen) -> bool:
        if training.step not in training.stops:
            return True
        arm, dataset, model = training.arm, training.dataset, training.model
        row = seen.rows[training.step] = {}
        for name, count in (("train", arm.train_examples), ("test", arm.test_examples)):
            count = count or len(getattr(dataset, f"{name}_labels"))
            loss, accuracy = evaluate(model, *fixed_sample(dataset, count, name), dataset)
            row |= {f"{name}_loss": torch.tensor(loss), f"{name}_accuracy": torch.tensor(accuracy)}
        if layers := arm.activation_layers:
            found = activations.measure(model, training.fixed, layers, range(arm.activation_units))
            row["histogram"] = found.histogram.float().cpu()
            for layer, mean, variance in zip(layers, found.mean, found.variance, strict=True):
                row |= {f"mean_{layer}": mean.cpu(), f"variance_{layer}": variance.cpu()}
        return bool(torch.isfinite(training.losses[: training.step]).all() and row["train_loss"].isfinite())

    def result(self, arm: Arm, seen: Seen, diverged_step: float) -> Arrays:
        """All arrays at their full length (E, ...)."""
        if not seen.rows:
            return {}
        checkpoints = np.asarray(arm.checkpoints(), dtype=np.int64)
        good = {step: row for step, row in seen.rows.items() if row["train_loss"].isfinite()}
        rows = {step: row for step, row in good.items() if not step > diverged_step}
        return {"step": checkpoints} | stacked(rows, arm.checkpoints(), next(iter(seen.rows.values())))


@torch.no_grad()
def evaluate(
    model: nn.Module, images: Tensor, labels: Tensor, dataset: Dataset
) -> tuple[np.float64, np.float64]:
    """Mean cross-entropy and accuracy on uint8 images (m, C, H, W) with the population statistics (eval
    mode)."""
    if not len(images):
        raise BnbookError("nothing to evaluate on; expected at least one example")
    mode = model.training
    model.eval()
    loss = torch.zeros((), dtype=torch.float64, device=images.device)
    hits = torch.zeros((), dtype=torch.float64, device=images.device)
    for part, targets in zip(images.split(CHUNK), labels.split(CHUNK), strict=True):
        outputs = model(normalise(part, dataset).to(memory_format=torch.channels_last))
        loss += F.cross_entropy(outputs, targets, reduction="sum").double()
        hits += (outputs.argmax(1) == targets).sum()
    model.train(mode)
    return np.float64(loss.item() / len(images)), np.float64(hits.item() / len(images))
