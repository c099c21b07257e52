"""Deep classifiers trained from several first values of batch norm's γ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from bnbook import models
from bnbook.data import Dataset
from bnbook.errors import BnbookError
from bnbook.training.arm import Arm
from bnbook.training.engine import SGD
from bnbook.training.resumable import Arrays, arrays_of_one
from bnbook.training.settings import Settings

NETWORKS = {"vgg16": models.vgg16, "resnet": models.resnet}
COMMON = (
    "learning_rate",
    "steps",
    "data",
    "batch_size",
    "momentum",
    "weight_decay",
    "evaluate_every",
    "train_examples",
    "test_examples",
)


@dataclass(frozen=True)
class ScaleArm(Settings):
    """Settings of one training; the defaults are those of the mean-field paper, section 6.5, where it says
    them."""

    network: str = "vgg16"  # or "resnet", PreAct-ResNet18
    gamma: float = 1.0  # first γ of every batch norm
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0005
    batch_size: int = 128  # not said
    width: float = 1.0
    steps: int = 2_000
    data: str = "cifar10-auto"
    evaluate_every: int = 100
    train_examples: int = 2_000
    test_examples: int = 2_000

    def __post_init__(self) -> None:
        self.expect("network", NETWORKS)
        if not self.gamma > 0:
            raise BnbookError(f"first γ of {self.gamma!r}; expected a number above 0")
        self.common()  # checks the rest

    def common(self) -> Arm:
        """What the training has in common with every other; the network is not the arm's."""
        return Arm(norm="batch", **{name: getattr(self, name) for name in COMMON})

    def model(self, dataset: Dataset) -> nn.Module:
        """The untrained network, drawn from torch's random state; γ draws nothing, so all γ start from the
        same weights."""
        channels, size = dataset.train_images.shape[1:3]
        make = NETWORKS[self.network]
        return make(
            width=self.width,
            norm="batch",
            classes=len(dataset.classes),
            channels=channels,
            image_size=size,
            gamma=self.gamma,
        ).to(memory_format=torch.channels_last)


def start(
    members: Sequence[tuple[ScaleArm, int]], dataset: Dataset | None = None, threads: int | None = None
) -> SGD:
    """The training of one member, before its first step."""
    ((arm, seed),) = members
    return SGD(arm.common(), seed, dataset, threads=threads, build=arm.model)


def train(arm: ScaleArm, seed: int, dataset: Dataset | None = None) -> Arrays:
    """Train from a first γ as `bnbook.training.engine.train` does, with its arrays; the same seed means the
    same batches."""
    return arrays_of_one(start([(arm, seed)], dataset))
