"""A training carried to its end, with a checkpoint every few minutes: none loses more than that."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from bookpress.errors import PressError
from bookpress.runs import checkpoints
from bookpress.runs.progress import note

#: Seconds between two checkpoints, and between two words on where the training stands.
EVERY, TOLD = 120.0, 0.5
#: (step, begins) -> whether anybody still waits for the training.
Tell = Callable[[int, bool], bool]


class Training(Protocol):
    """A training that goes step by step and can go on where another process stopped, to the last bit."""

    step: int  # made so far

    def advance(self) -> bool:
        """One step; False where there was none left to make."""

    def state(self) -> dict[str, Any]:
        """All that the further steps and the result rest on."""

    def load_state(self, state: dict[str, Any]) -> None:
        """Stand where that state was taken."""

    def result(self) -> dict[str, np.ndarray]:
        """What was measured."""


class Unwanted(Exception):
    """Nobody waits for this training any more; it stopped at a checkpoint."""


def drive(training: Training, keys: Sequence[str], tell: Tell) -> tuple[dict[str, np.ndarray], float]:
    """Go on from the checkpoint of these keys, if there is one, to the end; the result, and the seconds it
    took in all.

    Without keys there are no checkpoints. The checkpoint stays until the result is stored (`checkpoints.remove`).
    """
    found = checkpoints.load(keys) if keys else None
    if found is not None:
        training.load_state(found[0])
    before = 0.0 if found is None else found[1]
    begun = kept = time.monotonic()
    told = 0.0  # the first step is told at once
    tell(training.step, True)
    while training.advance():
        now = time.monotonic()
        if now - told >= TOLD:
            told = now
            if not tell(training.step, False):
                if keys:
                    checkpoints.save(keys, training.state(), before + now - begun)
                raise Unwanted
        if keys and now - kept >= EVERY:
            try:
                checkpoints.save(keys, training.state(), before + now - begun)
            except PressError as error:  # a full disk: the training itself can still end well
                note(f"no checkpoint: {error}")
            kept = time.monotonic()
    return training.result(), before + time.monotonic() - begun
