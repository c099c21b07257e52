"""One stack of trainings, pure: (arm, seeds) in, arrays out, in whatever process it runs.

Imports nothing heavy by itself: a scheduler, which only passes tasks on, imports this module too.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bookpress.book import book
from bookpress.errors import PressError

if TYPE_CHECKING:
    from bookpress.runs.checkpoints import Tell
    from bookpress.stamp import Code

#: A training uses torch's own random state, which a process has once: two threads of one worker take turns.
_ALONE = threading.Lock()


def train(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Train a stack {"book", "kind", "members": [[settings, seed], ...], "keys", "edition", "device"}.

    -> {"arrays": of all members (S, ...), "seconds": of each, "device": its name, "checkpoint": whether one
    is left}. PressError where code, torch or data are not those of the caller.
    """
    importlib.import_module(task["book"])  # registers it, in a worker for the first time
    from bookpress.runs import checkpoints, kinds

    imported = kinds.imported()

    with _ALONE:
        arm_type = kinds.find(task["kind"])
        members = [(arm_type.from_settings(settings), seed) for settings, seed in task["members"]]
        arm = members[0][0]
        dataset = _dataset(arm.data, task["device"]) if hasattr(arm, "data") else None
        rests_on = task["kind"], dataset and dataset.identity.sha256
        touched = imported.touched()
        _compare(task["edition"], here := _edition(*rests_on))
        if touched and _edition(*rests_on, imported)["code"] != here["code"]:
            raise PressError(
                "the code of this training was edited since this process imported it; expected the code that "
                "its result is stored under; start Python (the notebook's kernel, the worker) anew"
            )
        with _torch_as_it_starts():
            training = kinds.start(members, dataset)
            with book().trainings.numerics(training.device, kinds.THREADS):  # once, not at every step
                arrays, seconds = checkpoints.drive(training, task["keys"], tell)
        return {
            "arrays": arrays,
            "seconds": seconds / len(members),
            "device": device_name(task["device"]),
            "checkpoint": bool(task["keys"]) and checkpoints.path_of(task["keys"]).exists(),
        }


_events: list[Any] = []  # of a process of the pool: the queue by which its caller hears of the steps


def begin(events: Any) -> None:
    """In a process of the pool: what it prints is nobody's output."""
    _events.append(events)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def in_pool(task: dict[str, Any], run: int) -> dict[str, Any]:
    """`train` in a process of the pool."""

    def tell(step: int, begins: bool) -> bool:
        _events[0].put((run, step, begins))
        return True

    return train(task, tell)


def on_worker(task: dict[str, Any], topic: str, run: int) -> dict[str, Any]:
    """`train` on a Dask worker, whose caller hears of the steps under `topic`."""
    from distributed import get_worker

    os.environ.pop("BNBOOK_RESULTS", None)  # the results file is the caller's to write
    worker = get_worker()
    name = worker.get_current_task()

    def tell(step: int, begins: bool) -> bool:
        worker.log_event(topic, {"run": run, "step": step, "begins": begins})
        state = worker.state.tasks.get(name)
        # Any other state: the caller is gone, or wants it no more.
        return state is not None and state.state == "executing"

    try:
        return train(task, tell)
    except PressError as error:
        raise PressError(f"{error} (worker {worker.address})") from None


def device_name(device: str) -> str:
    """For example `NVIDIA H100`; the device as it is called where this machine has none."""
    import torch

    return torch.cuda.get_device_name(device) if device != "cpu" and torch.cuda.is_available() else device


@contextmanager
def _torch_as_it_starts() -> Iterator[None]:
    """Without what a notebook has set for all of its torch: it would change numbers, and no key names it."""
    import torch

    mkldnn, dtype = torch.backends.mkldnn, torch.get_default_dtype()
    precision, enabled = torch.get_float32_matmul_precision(), mkldnn.enabled
    try:
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
        mkldnn.enabled = True
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_float32_matmul_precision(precision)
        mkldnn.enabled = enabled


@lru_cache(maxsize=2)
def _dataset(name: str, device: str) -> Any:
    return book().data.load(name, device=device)


def _edition(kind: str, data: str | None, own: Code | None = None) -> dict[str, Any]:
    """Read again where Python, before 3.11.8 and 3.12.2, trips over a parser in another thread (its issue
    106905)."""
    from bookpress.runs import kinds

    for _ in range(9):
        try:
            return kinds.edition(kind, data, own)
        except SystemError:
            continue
    return kinds.edition(kind, data, own)


def _compare(wanted: dict[str, Any], here: dict[str, Any]) -> None:
    for name, value in wanted.items():
        if here[name] != value:
            raise PressError(
                f"another edition of the {name} ({str(here[name])[:12]}) than the caller's "
                f"({str(value)[:12]}); expected the same for all trainings; bring this worker up to date, or "
                "run again if you changed it meanwhile"
            )
