"""A training with what practice adds to plain SGD: other optimizers, warm-up, clipped gradients, lengths put back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.utils import parametrize

from bnbook import models
from bnbook.data import Dataset
from bnbook.errors import BnbookError
from bnbook.normalizers.per_example import RmsNorm
from bnbook.normalizers.standardized import Affine, WeightStandardization
from bnbook.training.arm import Arm
from bnbook.training.engine import SGD, Batch
from bnbook.training.resumable import Arrays, Resumable, arrays_of_one

OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
#: Layers of this kind of training alone, beside the normalizers that have a name.
FACTORIES = {
    "rms": RmsNorm,
    "standardized": Affine,
    "standardized_centred": partial(Affine, centred=True),
    "centred": partial(Affine, centred=True),  # the weights as they are
}
STANDARDIZED = ("standardized", "standardized_centred")


@dataclass(frozen=True)
class TunedArm(Arm):
    """An arm of VGG-A, and how its steps differ from those of plain SGD."""

    optimizer: str = "sgd"  # of `OPTIMIZERS`, with torch's other defaults
    warm_up: int = 0  # steps over which the rate grows along a line, the first being 1/warm_up of it
    clip: float = 0.0  # the longest gradient, over all parameters; 0: any
    lengths_kept: bool = False  # each hidden unit's weights go back to their first length after every step

    def __post_init__(self) -> None:
        super().__post_init__()
        self.expect("optimizer", OPTIMIZERS)
        if self.warm_up < 0 or not self.clip >= 0:
            raise BnbookError(f"warm_up {self.warm_up}, clip {self.clip}; expected 0, for none, or more")

    def rate(self, step: int) -> float:
        """The learning rate of the update with this number, from 0: η min(1, (step + 1) / warm_up)."""
        return self.learning_rate * min(1.0, (step + 1) / max(1, self.warm_up))

    def model(self, dataset: Dataset) -> nn.Module:
        """The untrained network, drawn from torch's random state; no layer draws, so that all arms of one kind of
        first weights begin with the same ones."""
        channels, size = dataset.train_images.shape[1:3]
        network = models.vgg(
            width=self.width,
            norm=FACTORIES.get(self.norm, self.norm),
            classes=len(dataset.classes),
            channels=channels,
            image_size=size,
            **dict(self.options),
        )
        for layer in hidden(network) if self.norm in STANDARDIZED else ():
            parametrize.register_parametrization(layer, "weight", WeightStandardization())
        return network.to(memory_format=torch.channels_last)


def hidden(network: nn.Module) -> list[nn.Module]:
    """The layers with weights in front of a rectifier, in order: all but the readout."""
    return [layer for layer in network.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))][:-1]


def lengths(layer: nn.Module) -> torch.Tensor:
    """‖w_j‖ of each unit's weights, shaped as they broadcast: (units, 1, ...)."""
    weight = layer.weight.detach()
    return weight.flatten(1).norm(dim=1).view(-1, *[1] * (weight.dim() - 1))


class Tuned(SGD):
    """One network from one seed, by the arm's optimizer at the arm's rates; it ends where a loss is no number.

    With the gradient g: g ← g min(1, clip / ‖g‖), an optimizer's step, then w_j ← w_j ‖w_j(0)‖ / ‖w_j‖ for the
    weights of each hidden unit j, if lengths are kept. To batch norm's units w_j and c w_j, c > 0, are one function
    but for ε. Sources: Loshchilov and Hutter 2019 (AdamW), Goyal et al. 2017 (warm-up), Pascanu et al. 2013 (clipping).
    """

    def __init__(
        self,
        arm: TunedArm,
        seed: int,
        dataset: Dataset | None = None,
        device: str | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(arm, seed, dataset, device, threads, arm.model, [Diverged])
        own: dict[str, Any] = dict(lr=arm.learning_rate, weight_decay=arm.weight_decay)
        if arm.optimizer == "sgd":
            own["momentum"] = arm.momentum
        self.optimizer = OPTIMIZERS[arm.optimizer](self.model.parameters(), **own)
        self.optimizer.register_step_pre_hook(self._before_step)
        self.optimizer.register_step_post_hook(self._after_step)
        self.first = [(layer, lengths(layer)) for layer in hidden(self.model) if arm.lengths_kept]

    def _before_step(self, *_: Any) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.arm.rate(self.step)
        if self.arm.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.arm.clip)

    def _after_step(self, *_: Any) -> None:
        with torch.no_grad():
            for layer, first in self.first:
                layer.weight.mul_(first / lengths(layer))


class Diverged(Resumable):
    """Ends a training at the first loss that is no number: what follows would cost time and say nothing."""

    def __init__(self, dataset: Dataset) -> None:
        pass

    def look(self, training: SGD, batch: Batch | None) -> bool:
        return training.step == 0 or bool(training.losses[training.step - 1].isfinite())

    def result(self, diverged_step: float) -> Arrays:
        return {}


def start(
    members: Sequence[tuple[TunedArm, int]], dataset: Dataset | None = None, threads: int | None = None
) -> Tuned:
    """The training of one member, before its first step."""
    ((arm, seed),) = members
    return Tuned(arm, seed, dataset, threads=threads)


def train_tuned(arm: TunedArm, seed: int, dataset: Dataset | None = None) -> Arrays:
    """Train as the arm says, with the arrays of `engine.train`; the same seed means the same batches."""
    return arrays_of_one(start([(arm, seed)], dataset))
