"""Training batches: a fresh permutation an epoch, optional crop and flip, all from one generator."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bnbook.data.dataset import Dataset, normalise
from bnbook.errors import BnbookError

PAD = 4


def epoch_batches(
    dataset: Dataset, batch_size: int, generator: torch.Generator, augment: bool = False
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """One pass over the training set: normalised float32 inputs (B, C, H, W) and int64 targets (B,).

    The last batch is dropped where it is not full. `generator` lives on the CPU and is read only when an
    epoch starts, so every device sees the same batches and the same crops.
    """
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
    return _batches(dataset, batch_size, generator, augment)


def infinite_batches(
    dataset: Dataset, batch_size: int, generator: torch.Generator, augment: bool = False
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Epoch after epoch of `epoch_batches`, without an end."""
    first = epoch_batches(
        dataset, batch_size, generator, augment
    )  # bad arguments are an error now, not later
    return _chain(first, dataset, batch_size, generator, augment)


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


def _batches(
    dataset: Dataset, batch_size: int, generator: torch.Generator, augment: bool
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    count = len(dataset.train_labels)
    order = torch.randperm(count, generator=generator).to(dataset.device)
    if augment:
        corners, flips = (drawn.to(dataset.device) for drawn in draw_augmentation(count, generator))
    for start in range(0, count - batch_size + 1, batch_size):
        chosen = order[start : start + batch_size]
        inputs = normalise(dataset.train_images[chosen], dataset)
        if augment:
            inputs = crop_and_flip(
                inputs, corners[start : start + batch_size], flips[start : start + batch_size]
            )
        yield inputs, dataset.train_labels[chosen]


def _chain(
    batches: Iterator[tuple[torch.Tensor, torch.Tensor]],
    dataset: Dataset,
    batch_size: int,
    generator: torch.Generator,
    augment: bool,
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    while True:
        yield from batches
        batches = _batches(dataset, batch_size, generator, augment)
