"""Trainings that can stop between two steps and go on elsewhere, to the last bit."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bnbook.training.numerics import numerics

Arrays = dict[str, np.ndarray]


class Resumable:
    """Something of which only the attributes named in `kept` change while it works."""

    kept: tuple[str, ...] = ()

    def state(self) -> dict[str, Any]:
        """A copy of them as tensors, numbers, lists and dicts: `torch.load(weights_only=True)` reads it."""
        return {name: _copied(getattr(self, name)) for name in self.kept}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from there; this object was made as that one was."""
        for name in self.kept:
            setattr(self, name, _put_back(getattr(self, name), state[name]))


class Training(Resumable, ABC):
    """A training of S members. What runs between two of its steps neither changes it nor is changed by it."""

    step = 0  # updates made
    over = False

    def __init__(self, steps: int, device: torch.device, threads: int | None = None) -> None:
        self.steps, self.device, self.threads = steps, device, threads

    def advance(self) -> bool:
        """Make one more step, on `threads` threads, if one is left; whether another is."""
        if not self.over:
            with numerics(self.device, self.threads):
                self.make_step()
        return not self.over

    def to_the_end(self) -> Arrays:
        with numerics(self.device, self.threads):
            while self.advance():
                pass
        return self.result()

    @abstractmethod
    def make_step(self) -> None:
        """One update, and what is measured with it; sets `over` where nothing is left to do."""

    @abstractmethod
    def result(self) -> Arrays:
        """What was measured, every array with a leading axis of S members; once the training is over."""


def arrays_of_one(training: Training) -> Arrays:
    """The result of a training of one member, without the axis of members."""
    return {name: values[0] for name, values in training.to_the_end().items()}


def _copied(value: Any) -> Any:
    if hasattr(value, "load_state"):
        return value.state()
    if isinstance(value, (nn.Module, torch.optim.Optimizer)):
        return copy.deepcopy(value.state_dict())
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, Tensor):
        return value.detach().clone()
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, (list, tuple)) else value


def _put_back(now: Any, saved: Any) -> Any:
    """`now` as it was when it was saved; on the device where it is now."""
    if hasattr(now, "load_state"):
        now.load_state(saved)
        return now
    if isinstance(now, (nn.Module, torch.optim.Optimizer)):
        now.load_state_dict(copy.deepcopy(saved))
        return now
    if isinstance(now, torch.Generator):
        return now.set_state(saved)
    if isinstance(now, Tensor):
        return saved.to(now.device, copy=True)
    if is_dataclass(now):
        return replace(now, **{name: _put_back(getattr(now, name), each) for name, each in saved.items()})
    if isinstance(now, list) and len(now) == len(saved):
        return [_put_back(*pair) for pair in zip(now, saved)]
    return copy.deepcopy(saved)
