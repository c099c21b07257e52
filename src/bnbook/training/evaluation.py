"""What a training has learnt so far: loss and accuracy on fixed examples, and what its layers see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bnbook.data import Dataset, fixed_sample, normalise
from bnbook.errors import BnbookError
from bnbook.probes import activations
from bnbook.training.arm import Arm
from bnbook.training.resumable import Arrays, Resumable

if TYPE_CHECKING:
    from bnbook.training.engine import SGD

#: Examples in a forward pass of an evaluation; more do not help and cost memory.
CHUNK = 500


class Evaluation(Resumable):
    """Looks at the model at the arm's checkpoints, and ends a training that has diverged."""

    kept = ("rows",)

    def __init__(self, arm: Arm, dataset: Dataset) -> None:
        self.arm, self.dataset = arm, dataset
        train, test = (len(labels) for labels in (dataset.train_labels, dataset.test_labels))
        self.parts = {
            "train": fixed_sample(dataset, arm.train_examples or train, "train"),
            "test": fixed_sample(dataset, arm.test_examples or test, "test"),
        }
        if arm.activation_layers:
            images, _ = fixed_sample(dataset, arm.activation_examples, "train")
            self.probe = normalise(images, dataset).to(memory_format=torch.channels_last)
        self.stops = set(arm.checkpoints())
        self.rows: list[dict[str, Tensor]] = []

    def look(self, training: SGD, batch: object) -> bool:
        if training.step not in self.stops:
            return True
        row: dict[str, Tensor] = {}
        for name, (images, labels) in self.parts.items():
            loss, accuracy = evaluate(training.model, images, labels, self.dataset)
            row |= {f"{name}_loss": torch.tensor(loss), f"{name}_accuracy": torch.tensor(accuracy)}
        if self.arm.activation_layers:
            row |= self._activations(training.model)
        self.rows.append(row)
        return bool(torch.isfinite(training.losses[: training.step]).all() and row["train_loss"].isfinite())

    def _activations(self, model: nn.Module) -> dict[str, Tensor]:
        layers, units = self.arm.activation_layers, range(self.arm.activation_units)
        seen = activations.measure(model, self.probe, layers, units)
        row = {"histogram": seen.histogram.float().cpu()}
        for layer, mean, variance in zip(layers, seen.mean, seen.variance, strict=True):
            row |= {f"mean_{layer}": mean.cpu(), f"variance_{layer}": variance.cpu()}
        return row

    def result(self, diverged_step: float) -> Arrays:
        """All arrays at their full length (E, ...)."""
        if not self.rows:
            return {}
        checkpoints = np.asarray(self.arm.checkpoints(), dtype=np.int64)
        found = {"step": checkpoints}
        bad = ~np.isfinite([float(row["train_loss"]) for row in self.rows])
        for name, example in self.rows[0].items():
            example = example.numpy()
            table = np.full((len(checkpoints), *example.shape), np.nan, dtype=example.dtype)
            table[: len(self.rows)] = [row[name].numpy() for row in self.rows]
            table[checkpoints > diverged_step] = np.nan
            table[: len(self.rows)][bad] = np.nan
            found[name] = table
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
