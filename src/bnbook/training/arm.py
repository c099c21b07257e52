"""An arm: everything that decides a training run but its seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn
from torch.nn.utils import parametrize

from bnbook import models
from bnbook.data import Dataset
from bnbook.errors import BnbookError
from bnbook.normalizers.per_example import RmsNorm
from bnbook.normalizers.standardized import Affine, WeightStandardization
from bnbook.training.settings import Settings

if TYPE_CHECKING:
    from bnbook.training.practice import Practice
    from bnbook.training.probes import Probes

NETWORKS = {"vgg": models.vgg, "vgg16": models.vgg16, "resnet": models.resnet}
#: Layers of these trainings alone, beside the normalizers that have a name.
FACTORIES = {
    "rms": RmsNorm,
    "standardized": Affine,
    "standardized_centred": partial(Affine, centred=True),
    "centred": partial(Affine, centred=True),  # the weights as they are
}
STANDARDIZED = ("standardized", "standardized_centred")


@dataclass(frozen=True)
class Arm(Settings):
    """Settings of one training; the defaults are those of Santurkar et al. 2018, appendix A.1."""

    norm: str = "none"
    learning_rate: float = 0.1
    steps: int = 15_000
    data: str = "cifar10-auto"
    architecture: str = "vgg"  # of `NETWORKS`
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
    instruments: Probes | None = None  # what else looks on
    optimizer: Practice | None = None  # in place of plain SGD

    label = "arm"

    def __post_init__(self) -> None:
        self.expect("architecture", NETWORKS)
        if self.steps < 1 or self.batch_size < 2 or self.evaluate_every < 0:
            raise BnbookError("an arm needs steps >= 1, batch_size >= 2 and evaluate_every >= 0")
        if not self.learning_rate > 0:
            raise BnbookError(f"learning rate {self.learning_rate!r}; expected a number above 0")
        if self.instruments and self.optimizer:
            raise BnbookError("an arm with instruments and an optimizer of its own; expected one of the two")
        if self.kind is not self:
            self.kind.check(self)

    @property
    def kind(self) -> Settings:
        return self.instruments or self.optimizer or self

    def settings(self) -> dict[str, Any]:
        """In one row with those of its part."""
        own, part = super().settings(), {} if self.kind is self else self.kind.settings()
        return {name: own[name] for name in own if name not in ("instruments", "optimizer")} | part

    def checkpoints(self) -> list[int]:
        """Numbers of steps after which the arm is evaluated: 0, every `evaluate_every`, and the end."""
        if not self.evaluate_every:
            return []
        return sorted({*range(0, self.steps, self.evaluate_every), self.steps})


class Part(Settings):
    """Base of what an arm can have: a frozen dataclass that looks at a training or has a hand in it.

    An arm with it is a kind of training of its own: a stored one rests on the arm, the part and what they lead to.
    """

    place: ClassVar[str]  # the arm's setting that it is

    def check(self, arm: Arm) -> None:
        """BnbookError where the two do not go together."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Arm:
        """The arm that has it."""
        known = {field.name: field.init for field in fields(cls)}
        own = super().from_settings({name: settings[name] for name, given in known.items() if given})
        rest = {name: value for name, value in settings.items() if name not in known}
        return replace(Arm.from_settings(rest), **{cls.place: own})


def build_model(arm: Arm, dataset: Dataset) -> nn.Module:
    """The arm's untrained network for the data set's classes and image shape, drawn from torch's random
    state.

    Normalizers draw nothing, so arms that differ only there start from the same weights at the same seed.
    """
    channels, height = dataset.train_images.shape[1:3]
    network = NETWORKS[arm.architecture](
        width=arm.width,
        norm=FACTORIES.get(arm.norm, arm.norm),
        classes=len(dataset.classes),
        channels=channels,
        image_size=height,
        **dict(arm.options),
    )
    for layer in hidden(network) if arm.norm in STANDARDIZED else ():
        parametrize.register_parametrization(layer, "weight", WeightStandardization())
    # a third faster on CPUs; with batch norm it rounds 5 to 9 times worse
    return network.to(memory_format=torch.channels_last)


def hidden(network: nn.Module) -> list[nn.Module]:
    """The layers with weights in front of a rectifier, in order: all but the readout."""
    return [layer for layer in network.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))][:-1]
