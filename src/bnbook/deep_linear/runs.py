"""Deep linear networks by the hundred: what the store has is read, the rest is trained in stacks, several at
once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bnbook.deep_linear.arm import LinearArm
from bnbook.deep_linear.descent import train_stack
from bnbook.runs.stacks import StackRuns

#: Members of one stack. More share the cost of a call, fewer stay in the cache; ℓ1 and ℓ∞ go back to the
#: examples.
STACK = {"none": 100, "batch": 100, "l2": 100, "l1": 20, "linf": 20}
RUNS = StackRuns(
    module="bnbook.deep_linear.runs",
    label="linear_arm",
    arm_type=LinearArm,
    train=train_stack,
    code="bnbook.deep_linear.descent:train_stack",
    size=lambda arm: STACK[arm.norm],
)


def train_all(
    arms: Sequence[LinearArm], seeds: Iterable[int], workers: int | None = None
) -> dict[LinearArm, dict[str, np.ndarray]]:
    """Train every arm from every seed, or take it from the store; arm -> the arrays of `train_stack`, (S,
    ...).

    See `bnbook.runs.stacks.StackRuns.train_all`.
    """
    return RUNS.train_all(arms, seeds, workers)
