"""The kinds of training: which arm trains with what, how many at once, and what a result of it is called."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from bookpress.errors import BnbookError
from bookpress.fingerprint import code_of, digest
from bookpress.fingerprint.sources import Sources

#: Arm -> the function that starts its training. What a result rests on is found by reading this table, so it
#: is made of texts: nothing here is imported before it trains.
TRAINS = {
    "bnbook.training.arm:Arm": "bnbook.training.engine:start",
    "bnbook.training.probed:ProbedArm": "bnbook.training.probed:start",
    "bnbook.training.placed:PlacedArm": "bnbook.training.placed:start",
    "bnbook.training.first_gamma:ScaleArm": "bnbook.training.first_gamma:start",
    "bnbook.small_networks.arm:PhaseArm": "bnbook.small_networks.descent:start",
    "bnbook.deep_linear.arm:LinearArm": "bnbook.deep_linear.descent:start",
    "bnbook.deep_linear.target:TargetArm": "bnbook.deep_linear.target:start",
}
#: The function that makes the data set of those that take one.
LOADS = "bnbook.data:load"
#: What an arm is called in the store.
LABELS = {
    "Arm": "arm",
    "ProbedArm": "arm",
    "PlacedArm": "arm",
    "ScaleArm": "scale_arm",
    "PhaseArm": "phase_arm",
    "LinearArm": "linear_arm",
    "TargetArm": "target_arm",
}
#: Arms of matrices of ten rows.
LINEAR = ("LinearArm", "TargetArm")
#: Threads of one training. Two trainings of one thread each beat one of two threads by 15 to 30 % at these
#: sizes. And another count of threads would be another result: with batch norm a rounding grows to some per
#: cent in 20 steps.
THREADS = 1
#: What of an identity is the same for all trainings of one kind on one data set.
EDITION = ("data", "code", "torch")

Member = tuple[Any, int]  # an arm and a seed


def kind_of(arm: Any) -> str:
    """The arm's name in TRAINS."""
    name = f"{type(arm).__module__}:{type(arm).__qualname__}"
    if name not in TRAINS:
        raise BnbookError(f"nothing trains {name}; expected one of {', '.join(TRAINS)}")
    return name


def find(name: str) -> Any:
    """The object that "module:name" names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def device_of(arm: Any, device: str) -> str:
    """Where an arm trains: matrices of ten rows stay on the CPU."""
    return "cpu" if type(arm).__name__ in LINEAR else device


def stack_size(arm: Any, device: str) -> int:
    """Members of one stack at most.

    Deep linear: more share the cost of a call, fewer stay in the cache; ℓ1 and ℓ∞ go back to the examples.
    Small networks on a CPU go one by one: alone each is bit-identical whatever runs beside it, and a stack of
    four was 8 % faster a member when fully connected and 19 % slower when convolutional.
    """
    if type(arm).__name__ in LINEAR:
        return 20 if arm.norm in ("l1", "linf") else 100
    return 64 if type(arm).__name__ == "PhaseArm" and not device.startswith("cpu") else 1


def stacks(members: Sequence[Member], device: str, workers: int) -> list[list[Member]]:
    """Members that can train together, in stacks of near-equal size that keep all workers busy; the slowest
    first, so that no worker is left alone with a long one at the end.

    Neighbours stay together: an arm's seeds often diverge together, and a stack of which nothing is left
    costs nothing.
    """
    groups: dict[Any, list[Member]] = {}
    for member in members:
        arm = member[0]
        groups.setdefault(arm.stack_key() if hasattr(arm, "stack_key") else arm, []).append(member)
    found = []
    for shape, group in groups.items():
        size = stack_size(shape, device_of(shape, device))
        count = -(-len(group) // size)
        if size > 1 and len(group) > 4 * workers:
            count = min(len(group), -(-count // workers) * workers)
        edges = [round(part * len(group) / count) for part in range(count + 1)]
        found += [(group[a:b], size) for a, b in zip(edges, edges[1:])]
    found.sort(key=lambda each: -len(each[0]) / each[1] * each[0][0][0].steps)
    return [stack for stack, _ in found]


def edition(kind: str, data: str | None, sources: Sources | None = None) -> dict[str, Any]:
    """What a training rests on besides its settings; each must be the same on every machine that takes part.

    A data set counts by its content (`data`, its SHA-256), not by the arm's name for it ("cifar10-auto").
    """
    import torch  # takes a second, and who only looks at evidence does not need it

    code = code_of(kind, TRAINS[kind], last=(LOADS,) if data else (), sources=sources)
    return {"data": data, "code": code, "torch": str(torch.__version__)}


def about(arm: Any, seed: int) -> dict[str, Any]:
    """Arm and seed, as the store's file says them."""
    return {LABELS[type(arm).__name__]: arm.settings(), "seed": int(seed)}


def identity(arm: Any, seed: int, edition: dict[str, Any], device: str) -> dict[str, Any]:
    """All that a result rests on."""
    return about(arm, seed) | edition | {"device": device_of(arm, device).split(":")[0], "threads": THREADS}


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


def start(members: Sequence[Member], dataset: Any) -> Any:
    """The training of a stack, before its first step (`bookpress.runs.driving.Training`)."""
    return find(TRAINS[kind_of(members[0][0])])(members, dataset, threads=THREADS)
