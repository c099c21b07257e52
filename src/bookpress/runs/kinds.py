"""The kinds of training: which arm trains with what, how many at once, and what a result of it is called."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bookpress.book import book
from bookpress.errors import PressError
from bookpress.stamp import Code, code_of, digest, forget

#: Threads of one training. Two trainings of one thread each beat one of two threads by 15 to 30 % at these
#: sizes. And another count of threads would be another result: with batch norm a rounding grows to some per
#: cent in 20 steps.
THREADS = 1
#: What of an identity is the same for all trainings of one kind on one data set.
EDITION = ("data", "code", "torch")

Member = tuple[Any, int]  # an arm and a seed


def kind_of(arm: Any) -> str:
    """The arm's name in the book's TRAINS."""
    name = f"{type(arm).__module__}:{type(arm).__qualname__}"
    trains = book().trainings.TRAINS
    if name not in trains:
        raise PressError(f"nothing trains {name}; expected one of {', '.join(trains)}")
    return name


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
    trainings, groups = book().trainings, {}
    for member in members:
        arm = member[0]
        groups.setdefault(arm.stack_key() if hasattr(arm, "stack_key") else arm, []).append(member)
    found = []
    for shape, group in groups.items():
        size = trainings.stack_size(shape, trainings.device_of(shape, device))
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
    return {book().trainings.LABELS[type(arm).__name__]: settings, "seed": int(seed)}


def identity(arm: Any, seed: int, edition: dict[str, Any], device: str) -> dict[str, Any]:
    """All that a result rests on."""
    return (
        about(arm, seed)
        | edition
        | {"device": book().trainings.device_of(arm, device).split(":")[0], "threads": THREADS}
    )


def key(identity: dict[str, Any]) -> str:
    """SHA-256 of arm, seed, data, code, torch's version, device type and thread count."""
    return digest(nameless(identity))


def nameless(identity: dict[str, Any]) -> dict[str, Any]:
    """Without the arm's name for its data set."""
    return {
        part: {name: each for name, each in value.items() if name != "data"}
        if isinstance(value, dict)
        else value
        for part, value in identity.items()
    }


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
