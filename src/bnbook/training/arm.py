"""An arm: everything that decides a training run but its seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from bnbook import models
from bnbook.data import Dataset
from bnbook.errors import BnbookError
from bnbook.training.settings import Settings

ARCHITECTURES = ("vgg",)


@dataclass(frozen=True)
class Arm(Settings):
    """Settings of one training; the defaults are those of Santurkar et al. 2018, appendix A.1."""

    norm: str = "none"
    learning_rate: float = 0.1
    steps: int = 15_000
    data: str = "cifar10-auto"
    architecture: str = "vgg"
    width: float = 1.0
    options: tuple[tuple[str, Any], ...] = ()  # further keyword arguments of the architecture
    batch_size: int = 128
    momentum: float = 0.0
    weight_decay: float = 0.0
    augment: bool = False  # crop and flip
    evaluate_every: int = 500  # steps; 0: no evaluation, only the loss and accuracy of each batch
    train_examples: int = 2_000  # fixed training examples evaluated at that cadence; 0: all
    test_examples: int = 0  # likewise of the test set
    activation_layers: tuple[int, ...] = ()  # nonlinearities whose inputs are measured at that cadence
    activation_units: int = 4  # units of each such layer whose histograms are kept
    activation_examples: int = 512

    def __post_init__(self) -> None:
        self.expect("architecture", ARCHITECTURES)
        if self.steps < 1 or self.batch_size < 2 or self.evaluate_every < 0:
            raise BnbookError("an arm needs steps >= 1, batch_size >= 2 and evaluate_every >= 0")
        if not self.learning_rate > 0:
            raise BnbookError(f"learning rate {self.learning_rate!r}; expected a number above 0")

    def checkpoints(self) -> list[int]:
        """Numbers of steps after which the arm is evaluated: 0, every `evaluate_every`, and the end."""
        if not self.evaluate_every:
            return []
        return sorted({*range(0, self.steps, self.evaluate_every), self.steps})


def build_model(arm: Arm, dataset: Dataset) -> nn.Module:
    """The arm's untrained network for the data set's classes and image shape, drawn from torch's random
    state.

    Normalizers draw nothing, so arms that differ only there start from the same weights at the same seed.
    """
    channels, height = dataset.train_images.shape[1:3]
    network = models.vgg(
        width=arm.width,
        norm=arm.norm,
        classes=len(dataset.classes),
        channels=channels,
        image_size=height,
        **dict(arm.options),
    )
    # a third faster on CPUs; with batch norm it rounds 5 to 9 times worse
    return network.to(memory_format=torch.channels_last)
