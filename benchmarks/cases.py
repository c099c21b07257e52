"""The comparisons: probe against bare passes, training against a bare loop, noisy against batch norm."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from benchmarks.timing import Ratio, compare
from torch import Tensor, nn

from bnbook import models
from bnbook.data import load
from bnbook.data.batches import infinite_batches
from bnbook.normalizers import make_normalizer
from bnbook.probes import covariate_shift, landscape
from bnbook.training.arm import Arm, build_model
from bnbook.training.engine import numerics, pick_device, train
from bnbook.training.probed import ProbedArm, probe_schedule, train_probed

DATA = "textures-standin"  # images of CIFAR-10's shape: the pixels do not matter to the clock
LENGTHS = (0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 8.0, 16.0)


def network(norm: object, width: float, batch: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A VGG in training mode and a batch for it."""
    where = pick_device()
    torch.manual_seed(0)
    model = models.vgg(width=width, norm=norm).to(where, memory_format=torch.channels_last).train()
    images = torch.randn(batch, 3, 32, 32, device=where).to(memory_format=torch.channels_last)
    return model, images, torch.randint(0, 10, (batch,), device=where)


def passes(model: nn.Module, images: Tensor, targets: Tensor, count: int = 1) -> None:
    """`count` bare forward-and-backward passes."""
    parameters = list(model.parameters())
    for _ in range(count):
        torch.autograd.grad(F.cross_entropy(model(images), targets), parameters)


def probe(width: float, batch: int, rounds: int) -> Iterator[Ratio]:
    """A probe at A step sizes against A bare passes; and the covariate shift of L layers against L."""
    for norm in ("none", "batch", "noisy"):
        model, images, targets = network(norm, width, batch)
        steps = [0.1 * length for length in LENGTHS]
        yield compare(
            f"landscape probe, {norm}: A = {len(steps)} sizes / A bare passes",
            lambda: landscape.along_gradient(model, F.cross_entropy, (images, targets), steps),
            lambda: passes(model, images, targets, len(steps)), rounds=rounds, bar=1.15,
        )  # fmt: skip
    model, images, targets = network("batch", width, batch)
    yield compare(
        "covariate shift, batch: 11 layers / 11 bare passes",
        lambda: covariate_shift.measure(model, F.cross_entropy, (images, targets), 0.1),
        lambda: passes(model, images, targets, 11), rounds=rounds,
    )  # fmt: skip


def overhead(width: float, batch: int, rounds: int, steps: int = 20) -> Iterator[Ratio]:
    """The book's training against the same steps as anybody would write them: same model, batches and SGD."""
    dataset = load(DATA, device=pick_device())
    for norm in ("none", "batch"):
        arm = Arm(norm=norm, data=DATA, width=width, batch_size=batch, steps=steps, evaluate_every=0)
        yield compare(
            f"training, {norm}: {steps} steps / a bare loop", lambda: train(arm, 0, dataset),
            lambda: bare_loop(arm, dataset), rounds=rounds, bar=1.03,
        )  # fmt: skip


def bare_loop(arm: Arm, dataset: object) -> Tensor:
    """The same training without anything around it; the losses (T,)."""
    with numerics(dataset.device):
        torch.manual_seed(0)
        model = build_model(arm, dataset).to(dataset.device).train()
        batches = infinite_batches(dataset, arm.batch_size, torch.Generator().manual_seed(1_000_003))
        optimizer = torch.optim.SGD(model.parameters(), lr=arm.learning_rate)
        losses = []
        for _ in range(arm.steps):
            inputs, targets = next(batches)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs.to(memory_format=torch.channels_last)), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)


def probed(width: float, batch: int, rounds: int, steps: int = 200, every: int = 100) -> Iterator[Ratio]:
    """A training with all instruments at every k-th step against the same training without them."""
    dataset = load(DATA, device=pick_device())
    common = dict(norm="batch", data=DATA, width=width, batch_size=batch, steps=steps, evaluate_every=0)
    arm = ProbedArm(
        **common, probe_steps=probe_schedule(steps, every), landscape=LENGTHS, random_directions=(0.5, 2.0, 4.0),
        covariate_shift=True, moment_layers=(2, 5, 8),
    )  # fmt: skip
    yield compare(
        f"training, batch, probed every {every} steps / plain", lambda: train_probed(arm, 0, dataset),
        lambda: train(Arm(**common), 0, dataset), rounds=rounds, bar=1.3,
    )  # fmt: skip


def noisy(width: float, batch: int, rounds: int) -> Iterator[Ratio]:
    """A step with noisy batch norm against one with batch norm, every number freshly drawn; and the obvious code."""
    plain = network("batch", width, batch)
    bar = 2.0 if width <= 0.25 else 1.5
    for name, norm, limit in (("noisy", "noisy", bar), ("the obvious code", ObviousNoisyBatchNorm, None)):
        model = network(norm, width, batch)
        yield compare(
            f"step with noisy batch norm, {name} / with batch norm", lambda: passes(*model), lambda: passes(*plain),
            rounds=2 * rounds, bar=limit,
        )  # fmt: skip


class ObviousNoisyBatchNorm(nn.Module):
    """Algorithm 1 of Santurkar et al. 2018 as one would type it, to compare with."""

    def __init__(self, features: int, dim: int) -> None:
        super().__init__()
        self.norm = make_normalizer("batch", features, dim)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        shape = (1, -1) + (1,) * (y.dim() - 2)
        mu = torch.empty(y.shape[1], device=y.device).uniform_(-0.5, 0.5).view(shape)
        sigma = torch.empty(y.shape[1], device=y.device).uniform_(1.0, 1.25).view(shape)
        m = mu - 0.1 + 0.2 * torch.rand(y.shape, device=y.device)
        s = sigma + 0.1 * torch.randn(y.shape, device=y.device)
        return s * y + m


CASES = {"probe": probe, "overhead": overhead, "probed": probed, "noisy": noisy}
