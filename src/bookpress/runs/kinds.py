"""The kinds of training: which arm trains with what, how many at once, what a result of it is called; and one stack of
them, pure: (arm, seeds) in, arrays out, in whatever process it runs.

Imports nothing heavy by itself: a scheduler, which only passes tasks on, imports this module too.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bookpress.book import book
from bookpress.errors import PressError
from bookpress.stamp import Code, code_of, forget

if TYPE_CHECKING:
    from bookpress.runs.checkpoints import Tell

#: Threads of one training. Two trainings of one thread each beat one of two threads by 15 to 30 % at these
#: sizes. And another count of threads would be another result: with batch norm a rounding grows to some per
#: cent in 20 steps.
THREADS = 1
#: What of an identity is the same for all trainings of one kind on one data set.
EDITION = ("data", "code", "torch")

Member = tuple[Any, int]  # an arm and a seed


def kind_of(arm: Any) -> str:
    """The arm's name in the book's TRAINS."""
    kind = type(getattr(arm, "kind", arm))
    name = f"{kind.__module__}:{kind.__qualname__}"
    trains = book().trainings.TRAINS
    if name not in trains:
        raise PressError(f"nothing trains {name}; expected one of {', '.join(trains)}")
    return name


def device_of(arm: Any, device: str) -> str:
    """Where an arm trains."""
    return "cpu" if getattr(arm, "on_cpu", False) else device


def find(name: str) -> Any:
    """The object that "module:name" names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def stacks(members: Sequence[Member], device: str, workers: int) -> list[list[Member]]:
    """Members that can train together, in stacks of near-equal size that keep all workers busy; the slowest
    first, so that no worker is left alone with a long one at the end.

    Neighbours stay together: an arm's seeds often diverge together, and a stack of which nothing is left
    costs nothing.
    """
    groups = {}
    for member in members:
        arm = member[0]
        groups.setdefault(arm.stack_key() if hasattr(arm, "stack_key") else arm, []).append(member)
    found = []
    for shape, group in groups.items():
        size = shape.stack_size(device_of(shape, device))
        count = -(-len(group) // size)
        if size > 1 and len(group) > 4 * workers:
            count = min(len(group), -(-count // workers) * workers)
        edges = [round(part * len(group) / count) for part in range(count + 1)]
        found += [(group[a:b], size) for a, b in zip(edges, edges[1:])]
    found.sort(key=lambda each: -len(each[0]) / each[1] * each[0][0][0].steps)
    return [stack for stack, _ in found]


def edition(kind: str, data: str | None, own: Code | None = None) -> dict[str, Any]:
    """What a training rests on besides its settings; each must be the same on every machine that takes part.

    A data set counts by its content (`data`, its SHA-256), not by the arm's name for it ("cifar10-auto").
    """
    import torch  # takes a second, and who only looks at evidence does not need it

    table = book().trainings
    code = code_of([kind, table.TRAINS[kind], *([table.LOADS] if data else [])], own)
    return {"data": data, "code": table.ALIASES.get(code[:16], code), "torch": str(torch.__version__)}


def about(arm: Any, seed: int) -> dict[str, Any]:
    """Arm and seed, as the store's file says them; PressError for a setting that no file can say."""
    settings = arm.settings()
    for name, value in settings.items():
        if callable(value):
            called = getattr(value, "__name__", value)
            raise PressError(
                f"{name} is {called} itself; expected the name that it is registered under, for a training is stored by "
                "what its arm says"
            )
    return {arm.kind.label: settings, "seed": int(seed)}


def identity(arm: Any, seed: int, edition: dict[str, Any], device: str) -> dict[str, Any]:
    """All that a result rests on."""
    return about(arm, seed) | edition | {"device": device_of(arm, device).split(":")[0], "threads": THREADS}


class Imported(Code):
    """The package's code as this process imported it: its files as they were when this was made. The store's keys
    name what lies on disk, by now another perhaps."""

    def __init__(self) -> None:
        super().__init__()
        read = super().read
        found = (path for root in self.folders.values() for path in root.rglob("*.py"))
        self.held = {path: (_state(path), read(path)) for path in found}

    def read(self, path: Path) -> str:
        return self.held[path][1] if path in self.held else super().read(path)

    def touched(self) -> bool:
        """Whether any of them may be another now; what was read of them is then forgotten."""
        found = any(_state(path) != state for path, (state, _) in self.held.items())
        if found:
            forget()
        return found


def _state(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


imported = cache(Imported)


def start(members: Sequence[Member], dataset: Any) -> Any:
    """The training of a stack, before its first step (`bookpress.runs.checkpoints.Training`)."""
    return find(book().trainings.TRAINS[kind_of(members[0][0])])(members, dataset, threads=THREADS)


# ---- One stack, as a worker trains it ----------------------------------------------------------------------------------

#: A training uses torch's own random state, which a process has once: two threads of one worker take turns.
_ALONE = threading.Lock()


def train(task: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Train a stack {"book", "kind", "members": [[settings, seed], ...], "keys", "edition", "device"}.

    -> {"arrays": of all members (S, ...), "seconds": of each, "device": its name, "checkpoint": whether one
    is left}. PressError where code, torch or data are not those of the caller.
    """
    importlib.import_module(task["book"])  # registers it, in a worker for the first time
    from bookpress.runs import checkpoints

    now = imported()
    with _ALONE:
        arm_type = find(task["kind"])
        members = [(arm_type.from_settings(settings), seed) for settings, seed in task["members"]]
        arm = members[0][0]
        dataset = _dataset(arm.data, task["device"]) if hasattr(arm, "data") else None
        rests_on = task["kind"], dataset and dataset.identity.sha256
        touched = now.touched()
        _compare(task["edition"], here := _edition(*rests_on))
        if touched and _edition(*rests_on, now)["code"] != here["code"]:
            raise PressError(
                "the code of this training was edited since this process imported it; expected the code that "
                "its result is stored under; start Python (the notebook's kernel, the worker) anew"
            )
        with _torch_as_it_starts():
            training = start(members, dataset)
            with book().trainings.numerics(training.device, THREADS):  # once, not at every step
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
    for _ in range(9):
        with suppress(SystemError):
            return edition(kind, data, own)
    return edition(kind, data, own)


def _compare(wanted: dict[str, Any], here: dict[str, Any]) -> None:
    for name, value in wanted.items():
        if here[name] != value:
            own, callers = str(here[name])[:12], str(value)[:12]
            raise PressError(
                f"another edition of the {name} ({own}) than the caller's ({callers}); expected the same for all "
                "trainings; bring this worker up to date, or run again if you changed it meanwhile"
            )
