"""What practice adds to plain SGD: other optimizers, warm-up, clipped gradients, lengths put back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from bnbook.errors import BnbookError
from bnbook.training.arm import Arm, Part, hidden
from bnbook.training.engine import SGD, Batch, Seen
from bnbook.training.resumable import Arrays

OPTIMIZERS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}


@dataclass(frozen=True)
class Practice(Part):
    """How an arm's steps differ from those of plain SGD; its training ends at the first loss that is no number.

    With the gradient g: g ← g min(1, clip / ‖g‖), an optimizer's step, then w_j ← w_j ‖w_j(0)‖ / ‖w_j‖ for the
    weights of each hidden unit j, if lengths are kept. To batch norm's units w_j and c w_j, c > 0, are one function
    but for ε. Sources: Loshchilov and Hutter 2019 (AdamW), Goyal et al. 2017 (warm-up), Pascanu et al. 2013 (clipping).
    """

    optimizer: str = "sgd"  # of `OPTIMIZERS`, with torch's other defaults
    warm_up: int = 0  # steps over which the rate grows along a line, the first being 1/warm_up of it
    clip: float = 0.0  # the longest gradient, over all parameters; 0: any
    lengths_kept: bool = False  # each hidden unit's weights go back to their first length after every step

    label, place = "tuned_arm", "optimizer"

    def __post_init__(self) -> None:
        self.expect("optimizer", OPTIMIZERS)
        if self.warm_up < 0 or not self.clip >= 0:
            raise BnbookError(f"warm_up {self.warm_up}, clip {self.clip}; expected 0, for none, or more")

    def share(self, step: int) -> float:
        """Of the learning rate, at the update with this number, from 0: min(1, (step + 1) / warm_up)."""
        return min(1.0, (step + 1) / max(1, self.warm_up))

    def of(self, training: SGD) -> torch.optim.Optimizer:
        """The optimizer of a training that has its network, with what goes before and after each of its steps."""
        arm, model = training.arm, training.model
        own: dict[str, Any] = dict(lr=arm.learning_rate, weight_decay=arm.weight_decay)
        if self.optimizer == "sgd":
            own["momentum"] = arm.momentum
        made = OPTIMIZERS[self.optimizer](model.parameters(), **own)
        first = [(layer, lengths(layer)) for layer in hidden(model) if self.lengths_kept]

        def before(*_: Any) -> None:
            for group in made.param_groups:
                group["lr"] = arm.learning_rate * self.share(training.step)
            if self.clip:
                nn.utils.clip_grad_norm_(model.parameters(), self.clip)

        made.register_step_pre_hook(before)
        made.register_step_post_hook(lambda *_: put_back(first))
        return made

    def look(self, training: SGD, batch: Batch | None, seen: Seen) -> bool:
        """What follows such a loss would cost time and say nothing."""
        return training.step == 0 or bool(training.losses[training.step - 1].isfinite())

    def result(self, arm: Arm, seen: Seen, diverged_step: float) -> Arrays:
        return {}


def lengths(layer: nn.Module) -> torch.Tensor:
    """‖w_j‖ of each unit's weights, shaped as they broadcast: (units, 1, ...)."""
    weight = layer.weight.detach()
    return weight.flatten(1).norm(dim=1).view(-1, *[1] * (weight.dim() - 1))


@torch.no_grad()
def put_back(first: list[tuple[nn.Module, torch.Tensor]]) -> None:
    """w_j ← w_j ‖w_j(0)‖ / ‖w_j‖; first: layers with ‖w_j(0)‖."""
    for layer, length in first:
        layer.weight.mul_(length / lengths(layer))
