"""Trainings that stopped in the middle: one file each beside the results store, whole or absent, without
pickle's code."""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from bookpress import paths
from bookpress.runs import store
from bookpress.runs.progress import note

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
    except (ValueError, KeyError, TypeError):
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
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if left.issuperset(members):
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
