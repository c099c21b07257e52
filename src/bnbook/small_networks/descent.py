"""Gradient descent with momentum on a stack of members, each at its own learning rate, each until it
explodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bnbook.data import Dataset, fixed_sample, normalise
from bnbook.errors import BnbookError
from bnbook.small_networks.arm import PhaseArm
from bnbook.small_networks.stack import Statistics, stack_models
from bnbook.training.resumable import Arrays, Training
from bnbook.training.stack import cross_entropy

Member = tuple[PhaseArm, int]  # settings and seed
#: A member whose loss exceeds this many times its first one has exploded: it is frozen there and reported.
EXPLOSION = 1e6
STATISTICS_EXAMPLES = 2_000  # training images whose statistics a test uses


class Descent(Training):
    """A stack of members between two steps: parameters, velocities, losses so far, and who is left."""

    kept = ("step", "over", "stack", "velocity", "batches", "alive", "losses", "lived", "first")

    def __init__(
        self,
        members: Sequence[Member],
        dataset: Dataset,
        dtype: torch.dtype = torch.float32,
        unfolded: bool | None = None,
        threads: int | None = None,
    ) -> None:
        shared = {arm.stack_key() for arm, _ in members}
        if len(shared) != 1:
            raise BnbookError(
                f"{len(shared)} kinds of members in one stack; expected members that differ in γ, rate and "
                "seed"
            )
        (self.arm,), where = shared, dataset.device
        super().__init__(self.arm.steps, where, threads)
        self.dataset, self.dtype = dataset, dtype
        self.stack = stack_models([arm.drawn(seed, dataset).to(where, dtype) for arm, seed in members])
        self.stack.unfolded = where.type != "cpu" if unfolded is None else unfolded
        self.rates = torch.tensor([one.learning_rate for one, _ in members], dtype=dtype, device=where)
        self.velocity = [torch.zeros_like(p) for p in self.stack.parameters]
        self.batches = MemberBatches([seed for _, seed in members], self.arm, dataset, dtype)
        self.alive = torch.ones(len(members), dtype=torch.bool, device=where)
        self.losses = torch.full((len(members), self.steps), torch.nan, dtype=dtype, device=where)
        self.lived = torch.zeros(len(members), dtype=torch.int64, device=where)
        self.first = torch.zeros_like(self.rates)

    def make_step(self) -> None:
        images, targets = next(self.batches)
        leaves = [p.requires_grad_() for p in self.stack.parameters]
        loss = member_loss(self.stack(images)[0], targets, self.arm.loss)  # (S,)
        gradients = torch.autograd.grad(loss.sum(), leaves)
        loss = loss.detach()
        self.first = self.first if self.step else loss
        self.alive = self.alive & torch.isfinite(loss) & (loss <= EXPLOSION * self.first)
        self.losses[:, self.step] = torch.where(self.alive, loss, torch.nan)
        self.lived += self.alive
        reads = self.device.type == "cpu"  # reading a value is free there, and a masked update is not
        if reads and not self.alive.any():
            self.over = True
            return
        some = None if reads and self.alive.all() else self.alive
        _update(leaves, self.velocity, gradients, self.rates, self.arm.momentum, some)
        self.step += 1
        self.over = self.step == self.steps

    def result(self) -> Arrays:
        """The arrays of `train_stack`."""
        lived = self.lived.double()
        found = {
            "loss": self.losses,
            "exploded_step": torch.where(lived < self.steps, lived, torch.inf),
            **dict.fromkeys(("test_loss", "test_accuracy"), torch.full_like(lived, torch.nan)),
        }
        if self.arm.test_examples:
            found |= {name: torch.where(self.alive, seen, torch.nan) for name, seen in self._tested().items()}
        return {name: value.double().cpu().numpy() for name, value in found.items()}

    @torch.no_grad()
    def _tested(self) -> dict[str, Tensor]:
        def answers(split: str, count: int, statistics: Statistics | None = None) -> tuple:
            images, labels = fixed_sample(self.dataset, count, split)
            images = normalise(images, self.dataset).to(self.dtype).expand(len(self.alive), *images.shape)
            return *self.stack(images, statistics), labels.expand(len(self.alive), -1)

        statistics = None
        if self.arm.norm == "batch":
            statistics = answers("train", min(STATISTICS_EXAMPLES, len(self.dataset.train_labels)))[1]
        outputs, _, targets = answers("test", self.arm.test_examples, statistics)
        accuracy = (outputs.argmax(-1) == targets).double().mean(1)
        return {"test_loss": member_loss(outputs, targets, self.arm.loss).double(), "test_accuracy": accuracy}


def start(members: Sequence[Member], dataset: Dataset, threads: int | None = None) -> Descent:
    """The training of a stack, before its first step."""
    return Descent(members, dataset, threads=threads)


def train_stack(
    members: Sequence[Member],
    dataset: Dataset,
    *,
    dtype: torch.dtype = torch.float32,
    unfolded: bool | None = None,
) -> Arrays:
    """Train members that differ in γ, learning rate and seed; arrays with a leading axis of S members.

    θ_{t+1} = θ_t - η ∇L(θ_t) + μ (θ_t - θ_{t-1}) (equation 1 of the mean-field paper), L the mean over a
    mini-batch of half the squared error to the one-hot target or of the cross-entropy, statistics those of
    the batch. The same seed means the same first weights and the same batches, whatever γ and η.

    - loss (S, T): of each batch before its update; NaN from an explosion on
    - exploded_step (S,): the first step whose loss was not finite or above EXPLOSION times the first, inf if
      none
    - test_loss, test_accuracy (S,): after the last step, with population statistics; NaN where exploded or
      not asked for

    unfolded: convolutions as products of unfolded images; None: on a GPU. A member that explodes is frozen;
    the others go on as if alone. On a GPU nothing inside a step waits for the device; on a CPU the training
    ends where no member is left.
    """
    return Descent(members, dataset, dtype, unfolded).to_the_end()


def _update(
    parameters: Sequence[Tensor],
    velocity: Sequence[Tensor],
    gradients: Sequence[Tensor],
    rates: Tensor,
    momentum: float,
    alive: Tensor | None,
) -> None:
    """v <- μ v + g, θ <- θ - η v, in place; alive: the members (S,) whose θ may change, None for all."""
    for p, v, g in zip(parameters, velocity, gradients):
        p.requires_grad_(False)
        shape = (-1, *[1] * (p.ndim - 1))
        torch.add(g, v, alpha=momentum, out=v)
        if alive is None:
            p.addcmul_(v, rates.view(shape), value=-1)
        else:
            p.copy_(torch.where(alive.view(shape), p - rates.view(shape) * v, p))


def member_loss(outputs: Tensor, targets: Tensor, kind: str) -> Tensor:
    """(S, B, classes), (S, B) -> (S,): mean over the batch of half the squared error, or of the
    cross-entropy."""
    if kind == "squared":
        wanted = F.one_hot(targets, outputs.shape[-1]).to(outputs)
        return 0.5 * (outputs - wanted).square().sum(-1).mean(1)
    return cross_entropy(outputs, targets)


def first_choice(dataset: Dataset, seed: int, count: int) -> Tensor:
    """Which training images a member of this seed has where it does not have all, (count,)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randperm(len(dataset.train_labels), generator=generator)[:count]


class MemberBatches:
    """Mini-batches of each member's own order, a fresh permutation an epoch; equal seeds see equal
    batches."""

    def __init__(self, seeds: Sequence[int], arm: PhaseArm, dataset: Dataset, dtype: torch.dtype) -> None:
        self.size, self.dataset, self.dtype = arm.batch_size, dataset, dtype
        self.count = arm.examples or len(dataset.train_labels)
        if max(self.size, self.count) > len(dataset.train_labels):
            raise BnbookError(
                f"batch size {self.size} and {self.count} examples do not fit the "
                f"{len(dataset.train_labels)} training "
                "images; expected fewer"
            )
        self.seeds, every = seeds, torch.arange(self.count)
        self.generators = {seed: torch.Generator().manual_seed(1_000_003 + seed) for seed in seeds}
        self.kept = {
            s: first_choice(dataset, s, self.count) if arm.examples else every for s in self.generators
        }
        self._begin_epoch()

    def __next__(self) -> tuple[Tensor, Tensor]:
        """Images (S, B, C, H, W) and labels (S, B)."""
        if self.at + self.size > self.count:
            self._begin_epoch()
        chosen = self.orders[:, self.at : self.at + self.size]
        self.at += self.size
        images = normalise(self.dataset.train_images[chosen.flatten()], self.dataset).to(self.dtype)
        return images.view(*chosen.shape, *images.shape[1:]), self.dataset.train_labels[chosen]

    def state(self) -> dict[str, Any]:
        """As `bnbook.data.batches.Batches` has it, for every seed."""
        return {"generators": self.epoch, "at": self.at}

    def load_state(self, state: dict[str, Any]) -> None:
        for seed, generator in self.generators.items():
            generator.set_state(state["generators"][seed])
        self._begin_epoch()
        self.at = state["at"]

    def _begin_epoch(self) -> None:
        self.epoch = {seed: generator.get_state() for seed, generator in self.generators.items()}
        orders = {
            seed: self.kept[seed][torch.randperm(self.count, generator=generator)]
            for seed, generator in self.generators.items()
        }
        self.orders, self.at = torch.stack([orders[seed] for seed in self.seeds]).to(self.dataset.device), 0
