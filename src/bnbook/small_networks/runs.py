"""Members of a phase diagram: what the store has is read, the rest is trained, on a CPU in several
processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch

from bnbook.data import load
from bnbook.runs.stacks import StackRuns
from bnbook.small_networks.arm import PhaseArm
from bnbook.small_networks.descent import Member, train_stack

#: Members that a process trains in turn, and members of one stack on a GPU.
TURN, STACK = 32, 64


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def _train(members: Sequence[Member], on_steps: Callable[[int], None] | None = None) -> dict[str, np.ndarray]:
    """On a GPU as one stack; on a CPU one by one: alone each is bit-identical whatever runs beside it, and a
    stack of four was 8 % faster a member when fully connected and 19 % slower when convolutional."""
    dataset = load(members[0][0].data, device="cuda" if torch.cuda.is_available() else "cpu")
    if torch.cuda.is_available():
        return train_stack(members, dataset, on_steps=on_steps)
    parts = []
    for place, member in enumerate(members, start=1):
        parts.append(train_stack([member], dataset))
        if on_steps:  # progress counts the steps of a stack, of which each member's are a share
            steps = member[0].steps
            on_steps(place * steps // len(members) - (place - 1) * steps // len(members))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@lru_cache
def _content(data: str, root: str | None) -> str:
    return load(data).identity.sha256


def _data(arm: PhaseArm) -> dict[str, str]:
    return {
        "data": _content(arm.data, os.environ.get("BNBOOK_DATA")),
        "device": "cpu" if _device() == "cpu" else "cuda",
    }


RUNS = StackRuns(
    module="bnbook.small_networks.runs",
    label="phase_arm",
    arm_type=PhaseArm,
    train=_train,
    code="bnbook.small_networks.descent:train_stack",
    size=lambda arm: TURN if _device() == "cpu" else STACK,
    data=_data,
    unkeyed=("data",),
    device=_device,
)


def train_members(
    members: Sequence[Member], workers: int | None = None
) -> dict[Member, dict[str, np.ndarray]]:
    """Train every member, or take it from the store; (arm, seed) -> the arrays of `train_stack` for one
    member."""
    return RUNS.train_members(members, workers)
