"""Plain SGD, measured: one function from (arm, seed) to arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.data import Dataset, fixed_sample, load, normalise
from bnbook.data.batches import infinite_batches
from bnbook.errors import BnbookError
from bnbook.probes import activations
from bnbook.training.arm import Arm, build_model

#: Examples in a forward pass of an evaluation; more do not help and cost memory.
CHUNK = 500
#: Steps between two calls of `on_steps`.
TICK = 20


def pick_device(device: str | None = None) -> torch.device:
    """The named device; by default the GPU where there is one."""
    return torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def train(
    arm: Arm,
    seed: int,
    dataset: Dataset | None = None,
    *,
    device: str | None = None,
    threads: int | None = None,
    on_steps: Callable[[int], None] | None = None,
) -> dict[str, np.ndarray]:
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

    `on_steps(n)` hears of every n further steps. Source: Santurkar et al. 2018, appendix A.1.
    """
    where = pick_device(device) if device or dataset is None else dataset.device
    dataset = load(arm.data, device=where) if dataset is None else dataset
    cuda = [where] if where.type == "cuda" else []
    with numerics(where, threads), torch.random.fork_rng(devices=cuda):
        torch.manual_seed(seed)
        model = build_model(arm, dataset).to(where).train()
        # Another seed than the weights': the same would make permutation and weights from the same random
        # numbers.
        batches = infinite_batches(
            dataset, arm.batch_size, torch.Generator().manual_seed(1_000_003 + seed), augment=arm.augment
        )
        return _run(arm, model, batches, _Observer(arm, dataset, where), on_steps)


@contextmanager
def numerics(device: torch.device, threads: int | None = None) -> Iterator[None]:
    """Full float32 and repeatable kernels on a GPU, `threads` threads on a CPU; everything put back at the
    end."""
    before = torch.get_num_threads()
    tf32 = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    benchmark = torch.backends.cudnn.benchmark
    deterministic = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    try:
        if threads:
            torch.set_num_threads(threads)
        if device.type == "cuda":
            os.environ.setdefault(
                "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
            )  # cuBLAS repeats itself only with this
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            torch.backends.cudnn.benchmark = False
            torch.use_deterministic_algorithms(True, warn_only=True)
        yield
    finally:
        torch.set_num_threads(before)
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = benchmark
        torch.use_deterministic_algorithms(deterministic[0], warn_only=deterministic[1])


def _run(
    arm: Arm,
    model: nn.Module,
    batches: Iterator[tuple[Tensor, Tensor]],
    observer: _Observer,
    on_steps: Callable[[int], None] | None,
) -> dict[str, np.ndarray]:
    optimizer = torch.optim.SGD(
        model.parameters(), lr=arm.learning_rate, momentum=arm.momentum, weight_decay=arm.weight_decay
    )
    # Written on the device: reading a loss at each step would make a GPU wait for the host.
    losses = torch.full((arm.steps,), torch.nan, device=observer.device)
    hits = torch.full((arm.steps,), torch.nan, device=observer.device)
    stops = set(arm.checkpoints())
    for step in range(arm.steps):
        if step in stops and not observer.look(model, step, losses):
            break
        inputs, targets = next(batches)
        optimizer.zero_grad(set_to_none=True)
        outputs = model(inputs.to(memory_format=torch.channels_last))
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        losses[step] = loss.detach()
        hits[step] = (outputs.detach().argmax(1) == targets).sum()
        if on_steps and (step + 1) % TICK == 0:
            on_steps(TICK)
    else:
        if arm.steps in stops:
            observer.look(model, arm.steps, losses)
    return observer.result(losses.cpu().numpy(), hits.cpu().numpy() / arm.batch_size)


class _Observer:
    """Looks at the model at the checkpoints and keeps what it saw; leaves the run itself untouched."""

    def __init__(self, arm: Arm, dataset: Dataset, device: torch.device) -> None:
        self.arm, self.dataset, self.device = arm, dataset, device
        train, test = (len(labels) for labels in (dataset.train_labels, dataset.test_labels))
        self.parts = {
            "train": fixed_sample(dataset, arm.train_examples or train, "train"),
            "test": fixed_sample(dataset, arm.test_examples or test, "test"),
        }
        if arm.activation_layers:
            images, _ = fixed_sample(dataset, arm.activation_examples, "train")
            self.probe = normalise(images, dataset).to(memory_format=torch.channels_last)
        self.rows: list[dict[str, np.ndarray]] = []
        self.broken_at = np.nan

    def look(self, model: nn.Module, step: int, losses: Tensor) -> bool:
        """Evaluate after `step` updates; False once the run has diverged."""
        row: dict[str, np.ndarray] = {}
        for name, (images, labels) in self.parts.items():
            row[f"{name}_loss"], row[f"{name}_accuracy"] = evaluate(model, images, labels, self.dataset)
        if self.arm.activation_layers:
            row |= self._activations(model)
        self.rows.append(row)
        if not (torch.isfinite(losses[:step]).all() and np.isfinite(row["train_loss"])):
            self.broken_at = float(step)
        return bool(np.isnan(self.broken_at))

    def _activations(self, model: nn.Module) -> dict[str, np.ndarray]:
        layers, units = self.arm.activation_layers, range(self.arm.activation_units)
        seen = activations.measure(model, self.probe, layers, units)
        row = {"histogram": seen.histogram.float().cpu().numpy()}
        for layer, mean, variance in zip(layers, seen.mean, seen.variance, strict=True):
            row |= {f"mean_{layer}": mean.cpu().numpy(), f"variance_{layer}": variance.cpu().numpy()}
        return row

    def result(self, losses: np.ndarray, accuracy: np.ndarray) -> dict[str, np.ndarray]:
        """All arrays at their full length, NaN from a divergence on."""
        broken = np.flatnonzero(~np.isfinite(losses))
        last = float(broken[0]) if len(broken) else self.broken_at
        found = {"loss": losses, "accuracy": accuracy}
        checkpoints = np.asarray(self.arm.checkpoints(), dtype=np.int64)
        if not np.isnan(last):
            losses[int(last) :] = accuracy[int(last) :] = np.nan
        if self.rows:
            found["step"] = checkpoints
            for name, example in self.rows[0].items():
                table = np.full(
                    (len(checkpoints), *np.shape(example)), np.nan, dtype=np.asarray(example).dtype
                )
                table[: len(self.rows)] = [row[name] for row in self.rows]
                table[checkpoints > last] = np.nan
                bad = ~np.isfinite(np.asarray([row["train_loss"] for row in self.rows]))
                table[: len(self.rows)][bad] = np.nan
                found[name] = table
        found["diverged"], found["diverged_step"] = np.float64(not np.isnan(last)), np.float64(last)
        return found


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
