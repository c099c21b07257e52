"""Training batches: a fresh permutation an epoch, optional crop and flip, all from one generator."""

from __future__ import annotations

from typing import Any

import torch

from bnbook.data.dataset import Dataset, normalise
from bnbook.errors import BnbookError

PAD = 4


class Batches:
    """Epoch after epoch of normalised float32 inputs (B, C, H, W) and int64 targets (B,), without an end.

    An epoch is one pass over the training set in an order of its own; its last batch is dropped where it is
    not full. `generator` lives on the CPU and is read only when an epoch starts, so every device sees the
    same batches and the same crops. It is these batches' own: to go on elsewhere is to draw an epoch again.
    """

    def __init__(
        self, dataset: Dataset, batch_size: int, generator: torch.Generator, augment: bool = False
    ) -> None:
        count = len(dataset.train_labels)
        if not 0 < batch_size <= count:
            raise BnbookError(
                f"batch size {batch_size} does not fit the {count} training images of "
                f"{dataset.identity.name}; expected 1 to {count}; choose a smaller one"
            )
        if generator.device.type != "cpu":
            raise BnbookError(
                f"the batches need a generator on the cpu, got one on {generator.device.type}; "
                "use torch.Generator()"
            )
        self.dataset, self.size, self.generator, self.augment = dataset, batch_size, generator, augment
        self._begin_epoch()

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self.at + self.size > len(self.order):
            self._begin_epoch()
        here = slice(self.at, self.at + self.size)
        self.at += self.size
        chosen = self.order[here]
        inputs = normalise(self.dataset.train_images[chosen], self.dataset)
        if self.augment:
            inputs = crop_and_flip(inputs, self.corners[here], self.flips[here])
        return inputs, self.dataset.train_labels[chosen]

    def state(self) -> dict[str, Any]:
        """Where they are: the generator at the beginning of the epoch, and how many examples are gone."""
        return {"generator": self.epoch, "at": self.at}

    def load_state(self, state: dict[str, Any]) -> None:
        self.generator.set_state(state["generator"])
        self._begin_epoch()
        self.at = state["at"]

    def _begin_epoch(self) -> None:
        self.epoch, self.at = self.generator.get_state(), 0
        count, device = len(self.dataset.train_labels), self.dataset.device
        self.order = torch.randperm(count, generator=self.generator).to(device)
        if self.augment:
            drawn = draw_augmentation(count, self.generator)
            self.corners, self.flips = (each.to(device) for each in drawn)


def draw_augmentation(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Where the crop of each image starts, 0 to 2 PAD (count, 2), and whether the image flips (count,)."""
    corners = torch.randint(0, 2 * PAD + 1, (count, 2), generator=generator)
    flips = torch.randint(0, 2, (count,), generator=generator).bool()
    return corners, flips


def crop_and_flip(inputs: torch.Tensor, corners: torch.Tensor, flips: torch.Tensor) -> torch.Tensor:
    """Pad (B, C, H, W) by PAD zeros a side, cut H x W at each of `corners` (B, 2), mirror where `flips` (B,).

    The inputs are normalised, so the zeros are the mean colour. No loop over examples: every crop is a view,
    and one indexing picks one view an example.
    """
    height, width = inputs.shape[2:]
    padded = torch.nn.functional.pad(inputs, (PAD, PAD, PAD, PAD))
    views = padded.unfold(2, height, 1).unfold(3, width, 1)  # (B, C, 2 PAD + 1, 2 PAD + 1, H, W)
    example = torch.arange(len(inputs), device=inputs.device)
    cropped = views[example, :, corners[:, 0], corners[:, 1]]
    return torch.where(flips.view(-1, 1, 1, 1), cropped.flip(3), cropped)
