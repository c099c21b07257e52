"""One network at a time, to look at it closely: in its linear regime, a part of its layers, and after its
training."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, repeat

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.data import Dataset, normalise
from bnbook.data.batches import Batches
from bnbook.errors import BnbookError
from bnbook.small_networks.arm import PhaseArm
from bnbook.small_networks.descent import first_choice

#: The share of the way from the first outputs to the targets; what is left is small against where the network
#: bends.
CLOSENESS = 1e-3
LINEAR_STEPS = 30


def full_batch(arm: PhaseArm, seed: int, dataset: Dataset) -> tuple[Tensor, Tensor]:
    """Images (B, C, H, W) and labels (B,) that a training on one full batch of `arm.batch_size` has from this
    seed."""
    chosen = first_choice(dataset, seed, arm.batch_size)
    return normalise(dataset.train_images[chosen], dataset), dataset.train_labels[chosen]


def linear_growth(
    arm: PhaseArm,
    seed: int,
    dataset: Dataset,
    *,
    steps: int = LINEAR_STEPS,
    closeness: float = CLOSENESS,
    dtype: torch.dtype = torch.float32,
) -> float:
    """‖f_T - y'‖ / ‖f_0 - y'‖ after T steps on half the squared error to y' = f_0 + closeness (y - f_0), one
    full batch.

    As closeness goes to 0 the network becomes f_0 + J (θ - θ_0), and the residual evolves by I - η J J^T / B
    and momentum: it grows beyond all bounds for η > 2 (1 + μ) / λ_max (equation 7 of the mean-field paper),
    λ_max that of all parameters and outputs through the batch, and shrinks below. inf where the residual is
    no number any more.
    """
    model, images, wanted = _begin(arm, seed, dataset, dtype)
    with torch.no_grad():
        first = model(images)
        targets = first + closeness * (wanted - first)
    _descend(model, list(model.parameters()), repeat((images, targets), steps), arm)
    with torch.no_grad():
        left = float((model(images) - targets).norm() / (first - targets).norm())
    return left if math.isfinite(left) else math.inf


#: Which parameters `train_part` moves, of those in the order of the network: the readout's are the last two.
PARTS: dict[str, Callable[[list[Tensor]], list[Tensor]]] = {
    "all": lambda parameters: parameters,
    "hidden": lambda parameters: parameters[:-2],
    "hidden weights": lambda parameters: [p for p in parameters if p.ndim >= 2][:-1],
    "readout": lambda parameters: parameters[-2:],
}


def train_part(
    arm: PhaseArm, seed: int, dataset: Dataset, part: str, *, dtype: torch.dtype = torch.float32
) -> np.ndarray:
    """Loss of each step before its update, (T,), where one part of the network is trained, on one full batch.

    part: "all"; "hidden", all but the readout's weights and biases, so γ and β too; "hidden weights"; "readout",
    weights and biases. The rest stays as drawn. With batch norm the outputs do not change if a hidden weight matrix is
    multiplied by a number, so that its gradient is orthogonal to it and a step without momentum can only make it
    longer. BnbookError for another part, for a loss other than the squared error.
    """
    if part not in PARTS or arm.loss != "squared":
        raise BnbookError(
            f"part {part!r}, loss {arm.loss!r}; expected one of {', '.join(PARTS)}, and 'squared'"
        )
    model, images, targets = _begin(arm, seed, dataset, dtype)
    return _descend(model, PARTS[part](list(model.parameters())), repeat((images, targets), arm.steps), arm)


def train_model(
    arm: PhaseArm, seed: int, dataset: Dataset, *, dtype: torch.dtype = torch.float32
) -> tuple[nn.Module, np.ndarray]:
    """The trained network of a member, and its loss by step (T,): the training of `train_stack`, by torch's
    own layers.

    BnbookError for a loss other than the squared error, and for a choice of examples.
    """
    if arm.loss != "squared" or arm.examples:
        raise BnbookError(
            f"loss {arm.loss!r} on {arm.examples or 'all'} examples; expected 'squared' on all (examples=0)"
        )
    model, _, _ = _begin(arm, seed, dataset, dtype)
    batches = Batches(dataset, arm.batch_size, torch.Generator().manual_seed(1_000_003 + seed))
    wanted = (
        (images.to(dtype), F.one_hot(labels, len(dataset.classes)).to(dtype)) for images, labels in batches
    )
    return model, _descend(model, list(model.parameters()), islice(wanted, arm.steps), arm)


def _begin(
    arm: PhaseArm, seed: int, dataset: Dataset, dtype: torch.dtype
) -> tuple[nn.Module, Tensor, Tensor]:
    """The network as drawn from the seed, its batch and the one-hot targets."""
    model = arm.drawn(seed, dataset).to(dataset.device, dtype).train()
    images, labels = full_batch(arm, seed, dataset)
    return model, images.to(dtype), F.one_hot(labels, len(dataset.classes)).to(dtype)


def _descend(
    model: nn.Module, parameters: Sequence[Tensor], batches: Iterable[tuple[Tensor, Tensor]], arm: PhaseArm
) -> np.ndarray:
    """Gradient descent with momentum on half the squared error, in place; the loss of each step before its
    update."""
    velocity, losses = [torch.zeros_like(p) for p in parameters], []
    for images, targets in batches:
        loss = 0.5 * (model(images) - targets).square().sum() / len(images)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, v, g in zip(parameters, velocity, gradients):
                p.sub_(v.mul_(arm.momentum).add_(g), alpha=arm.learning_rate)
        losses.append(float(loss.detach()))
    return np.array(losses)
