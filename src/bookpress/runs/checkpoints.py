"""A training carried to its end, with a checkpoint every few minutes: none loses more than that.

A checkpoint is one file beside the results store, whole or absent, without pickle's code.
"""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from bookpress import paths
from bookpress.errors import PressError
from bookpress.runs import store
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

    Without keys there are no checkpoints. The checkpoint stays until the result is stored (`remove`).
    """
    found = load(keys) if keys else None
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
                    save(keys, training.state(), before + now - begun)
                raise Unwanted
        if keys and now - kept >= EVERY:
            try:
                save(keys, training.state(), before + now - begun)
            except PressError as error:  # a full disk: the training itself can still end well
                note(f"no checkpoint: {error}")
            kept = time.monotonic()
    return training.result(), before + time.monotonic() - begun


# ---- The files: state and seconds of a stack that stopped in the middle ---------------------------------------------

SUFFIX = ".checkpoint"
#: Seconds after which a checkpoint that nobody went on with is swept away, and what a killed write left
#: behind.
FORGOTTEN, ABANDONED = 30 * 86400.0, 3600.0


def save(keys: Sequence[str], state: dict[str, Any], seconds: float) -> None:
    """Keep the state of the stack that makes the results `keys`, and the seconds that it took so far.

    The file: a line of JSON with those and the SHA-256 of what follows; the state as torch saves it.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    head = {"sha256": hashlib.sha256(content).hexdigest(), "keys": list(keys), "seconds": seconds}
    _sweep()
    store.write_bytes(path_of(keys), json.dumps(head).encode() + b"\n" + content)


def load(keys: Sequence[str]) -> tuple[dict[str, Any], float] | None:
    """The state and the seconds of `save`; None where there is no checkpoint or it is not whole; PressError
    where it cannot be read now."""
    if (content := store.read_bytes(path_of(keys))) is None:
        return None
    try:
        line, _, content = content.partition(b"\n")
        head = json.loads(line)
        if head["keys"] == list(keys) and head["sha256"] == hashlib.sha256(content).hexdigest():
            state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
            return state, float(head["seconds"])
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    note(f"{path_of(keys).name} in the results store is damaged; its training begins anew")
    return None


def remove(keys: Sequence[str]) -> None:
    path_of(keys).unlink(missing_ok=True)


def stacks_of(keys: set[str]) -> list[list[str]]:
    """The stacks of which a checkpoint is here and all of whose results are among these; none of them
    twice."""
    left, found = set(keys), []
    for path in sorted(paths.store_folder().glob(f"*{SUFFIX}")):
        try:
            with path.open("rb") as file:
                members = json.loads(file.readline())["keys"]
            here = left.issuperset(members)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        if here:
            found.append(members)
            left -= set(members)
    return found


def path_of(keys: Sequence[str]) -> Path:
    """Named by the result; a stack of several by all of theirs."""
    name = keys[0] if len(keys) == 1 else hashlib.sha256("".join(keys).encode()).hexdigest()
    return store.path_of(name, SUFFIX)


def _sweep() -> None:
    for pattern, age in ((f"*{SUFFIX}", FORGOTTEN), (".*.part", ABANDONED)):
        for path in paths.store_folder().glob(pattern):
            try:
                if time.time() - path.stat().st_mtime > age:
                    path.unlink()
            except OSError:  # another process was faster
                continue
