"""What decides the training of one member of a phase diagram, but its seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from bnbook import models
from bnbook.data import Dataset
from bnbook.errors import BnbookError
from bnbook.training.settings import Settings

NETWORKS = ("fc", "conv")
LOSSES = ("squared", "cross_entropy")


@dataclass(frozen=True)
class PhaseArm(Settings):
    """Settings of one training; the defaults are those of the mean-field paper, section 4, where it says
    them."""

    network: str = "fc"  # "fc": L = 4, 1000 hidden units; "conv": filter 3, stride 2, channels 30, 60, 90
    norm: str = "batch"  # "none" or "batch"
    gamma: float = 1.0  # first γ of every batch norm
    learning_rate: float = 0.01
    momentum: float = 0.9
    loss: str = (
        "squared"  # half the squared error, whose curvature the theory computes; the paper does not say
    )
    batch_size: int = 128  # not said
    steps: int = 200
    data: str = "mnist"
    sigma_w2: float = 2.0
    sigma_b2: float = 0.5
    hidden: tuple[int, ...] = (1000, 1000, 1000)  # units or channels of the hidden layers
    examples: int = (
        0  # train on the first so many images of a fixed order; 0: all. As many as batch_size: full batches
    )
    test_examples: int = 0  # evaluated after the last step; 0: none

    label, free = "phase_arm", dict(learning_rate=1.0, gamma=1.0)

    def stack_size(self, device: str) -> int:
        """On a CPU they go one by one: alone each is bit-identical whatever runs beside it, and a stack of four was
        8 % faster a member when fully connected and 19 % slower when convolutional."""
        return 1 if device.startswith("cpu") else 64

    def __post_init__(self) -> None:
        for name, known in (("network", NETWORKS), ("norm", ("none", "batch")), ("loss", LOSSES)):
            self.expect(name, known)
        if not (self.learning_rate > 0 and self.gamma > 0 and 0 <= self.momentum < 1):
            raise BnbookError(
                f"learning rate {self.learning_rate!r}, gamma {self.gamma!r}, momentum {self.momentum!r}; "
                "expected the "
                "first two above 0 and the third from 0 to below 1"
            )
        if self.examples and self.examples < self.batch_size:
            raise BnbookError(
                f"{self.examples} examples for batches of {self.batch_size}; expected as many or more, or "
                "0 (all)"
            )
        if self.steps < 1 or self.batch_size < 2 or not self.hidden:
            raise BnbookError(
                "a member without steps, a batch or hidden layers; expected steps >= 1, batch_size >= 2, "
                "hidden layers"
            )

    def model(self, image: tuple[int, int, int], classes: int = 10) -> nn.Sequential:
        """The member's network, drawn from torch's random state (equations 12, 16 and 27): the stack's slow
        twin."""
        common = dict(
            norm=self.norm, init="meanfield", sigma_w2=self.sigma_w2, sigma_b2=self.sigma_b2, gamma=self.gamma
        )
        if self.network == "fc":
            channels, height, width = image
            return models.mlp((channels * height * width, *self.hidden, classes), **common)
        return models.cnn(image, self.hidden, outputs=classes, **common)

    def drawn(self, seed: int, dataset: Dataset) -> nn.Sequential:
        """The network for a data set, drawn from a seed; torch's random state stays as it is."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return self.model(tuple(dataset.train_images.shape[1:]), len(dataset.classes))
