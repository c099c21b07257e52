"""Deep linear networks whose target matrix A is smaller or larger: the paper does not say its variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from bnbook.deep_linear.arm import LinearArm
from bnbook.deep_linear.descent import Descent
from bnbook.errors import BnbookError


@dataclass(frozen=True)
class TargetArm(LinearArm):
    """A linear arm that has to fit target_std · A x, with the same x, A_ij ~ N(0, 1) and first weights."""

    target_std: float = 10**-0.5  # A x of variance 1 in ten dimensions

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.target_std > 0:
            raise BnbookError(f"target_std {self.target_std!r}; expected a factor of A above 0, such as 0.3")


class TargetDescent(Descent):
    """The descent of its stack, on the scaled targets."""

    def __init__(
        self,
        members: Sequence[tuple[TargetArm, int]],
        device: str | torch.device = "cpu",
        threads: int | None = None,
    ) -> None:
        super().__init__(members, device, threads)
        self.problem = replace(self.problem, targets=members[0][0].target_std * self.problem.targets)


def start(
    members: Sequence[tuple[TargetArm, int]], dataset: None = None, threads: int | None = None
) -> TargetDescent:
    """The training of a stack, before its first step; its arrays are those of `descent.train_stack`."""
    return TargetDescent(members, threads=threads)
