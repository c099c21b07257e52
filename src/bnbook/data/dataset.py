"""A data set in memory: bytes on the device, normalised when they are used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bnbook.data.identity import SPLITS, Arrays, DataIdentity, known_sets
from bnbook.errors import BnbookError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Dataset:
    """Images and labels of both splits in canonical order (`identity.describe`); m images a split.

    The tensors are shared: whoever wants to change one copies it first.
    """

    train_images: torch.Tensor  # uint8 (m, C, H, W)
    train_labels: torch.Tensor  # int64 (m,)
    test_images: torch.Tensor
    test_labels: torch.Tensor
    identity: DataIdentity
    mean: torch.Tensor  # (C,), of the training pixels on the scale 0 to 1
    std: torch.Tensor  # (C,), with divisor m H W
    classes: tuple[str, ...]
    shift: torch.Tensor = field(init=False, repr=False)  # (C, 1, 1) 255 mean
    scale: torch.Tensor = field(init=False, repr=False)  # (C, 1, 1) 1 / (255 std)

    def __post_init__(self) -> None:
        mean, std = (values.cpu().double().view(-1, 1, 1) for values in (self.mean, self.std))
        object.__setattr__(self, "shift", (255 * mean).float().to(self.device))
        object.__setattr__(self, "scale", (1 / (255 * std)).float().to(self.device))

    @property
    def device(self) -> torch.device:
        return self.train_images.device


def pixel_statistics(images: np.ndarray) -> dict[str, list[float]]:
    """Mean and standard deviation of each channel of uint8 images (m, C, H, W), on the scale 0 to 1.

    Both come from a count of the 256 values, so every platform gets the same numbers.
    """
    values = np.arange(256, dtype=np.float64) / 255
    mean, std = [], []
    for channel in range(images.shape[1]):
        counts = np.zeros(256, dtype=np.int64)
        for start in range(0, len(images), 5000):  # bincount widens its input eightfold
            counts += np.bincount(images[start : start + 5000, channel].ravel(), minlength=256)
        share = counts / counts.sum()
        mean.append(float((share * values).sum()))
        std.append(float(np.sqrt((share * (values - mean[-1]) ** 2).sum())))
    return {"mean": mean, "std": std}


def on_device(identity: DataIdentity, statistics: dict[str, Any], arrays: Arrays, device: Any) -> Dataset:
    """Move a decoded set to `device`; BnbookError where there is no such device."""
    import torch

    try:
        tensors = [torch.from_numpy(array).to(device) for array in arrays]
        mean, std = (
            torch.tensor(statistics[key], dtype=torch.float32, device=device) for key in ("mean", "std")
        )
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().split("\n")[0]
        raise BnbookError(
            f"cannot put {identity.name} on {device} ({reason}); expected a device that torch has "
            "and that has room; try cpu"
        ) from None
    return Dataset(*tensors, identity, mean, std, tuple(known_sets()[identity.name]["classes"]))


def normalise(images: torch.Tensor, dataset: Dataset) -> torch.Tensor:
    """x̂ = (x / 255 - mean) / std per channel: uint8 (B, C, H, W) to float32 (B, C, H, W) on the same device.

    Written as (x - 255 mean) · 1 / (255 std): no division, so a GPU rounds exactly as a CPU does.
    """
    return images.float().sub_(dataset.shift.to(images.device)).mul_(dataset.scale.to(images.device))


def fixed_sample(dataset: Dataset, count: int, split: str = "test") -> tuple[torch.Tensor, torch.Tensor]:
    """The same `count` images, uint8 (count, C, H, W), and labels for everyone: the first in canonical order.

    That order is by hash, so this is a random sample that no one has chosen, within which smaller ones lie.
    """
    if split not in SPLITS:
        raise BnbookError(f"unknown split {split!r}; expected train or test")
    images, labels = (getattr(dataset, f"{split}_{kind}") for kind in ("images", "labels"))
    if not 0 < count <= len(images):
        raise BnbookError(
            f"cannot take {count} images of {dataset.identity.name} ({split}); "
            f"expected 1 to {len(images)}; choose fewer"
        )
    return images[:count], labels[:count]
