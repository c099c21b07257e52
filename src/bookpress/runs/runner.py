"""Many trainings: what the store has is read, the rest is trained, here or on a cluster, and stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any

import numpy as np
import torch

from bookpress import results
from bookpress.book import book
from bookpress.cores import cores
from bookpress.errors import PressError
from bookpress.runs import checkpoints, kinds, pool, store
from bookpress.runs.kinds import Member
from bookpress.runs.progress import Progress

Arrays = dict[str, np.ndarray]
IMPORTED = kinds.imported()


def train_all(
    arms: Mapping[Any, Any] | Iterable[Any],
    seeds: Iterable[int],
    workers: int | None = None,
    device: str | None = None,
    *,
    kept: bool = False,
) -> dict[Any, Arrays]:
    """Train every arm from every seed, or take it from the store; the name of an arm, or where it has none the arm
    itself -> the arrays of its training, (S, ...).

    `seconds` (S,) is added: what each training took when it was made, a member of a stack its share.
    `workers` train at once, by default (None or 0) one a core, on a GPU one; 1 trains in this process, more
    in processes of their own; where BNBOOK_SCHEDULER names a Dask cluster (tcp://...), that one trains.
    A chapter's run that was interrupted or killed goes on where it was; a session by hand reads the store and
    adds nothing to it. Trainings that are `kept` are published
    with the chapter, so that nobody has to make them again. PressError for bad input, for a training
    that killed its workers, for a lost cluster.
    """
    named = dict(arms) if isinstance(arms, Mapping) else {arm: arm for arm in arms}
    arms, seeds = list(dict.fromkeys(named.values())), list(seeds)
    if not seeds:
        raise PressError("no seeds to train from; expected at least one")
    found = train_members([(arm, seed) for arm in arms for seed in seeds], workers, device, kept=kept)
    return {
        key: {name: np.stack([found[arm, seed][name] for seed in seeds]) for name in found[arm, seeds[0]]}
        for key, arm in named.items()
    }


def train_members(
    members: Sequence[Member], workers: int | None = None, device: str | None = None, *, kept: bool = False
) -> dict[Member, Arrays]:
    """The same for single members, (arm, seed) -> the arrays of one."""
    if workers is not None and workers < 0:
        raise PressError(f"{workers} workers; expected 1 or more, or 0 for one a core")
    where = _device(device)
    here = {kinds.device_of(arm, where) for arm, _ in members}
    results.record_device(kinds.device_name(max(here, default="cpu")), kinds.THREADS)
    wanted = _identities(members, where)
    keys = {member: store.key(identity) for member, identity in wanted.items()}
    found = {key: store.read(key, kinds.about(*member)) for member, key in keys.items()}
    missing = {key: member for member, key in keys.items() if found[key] is None}
    stacks = _stacks(missing, where, workers or cores())
    if stacks:

        def keep(index: int, result: dict[str, Any]) -> None:
            for place, key in enumerate(stacks[index]):
                own = {name: values[place] for name, values in result["arrays"].items()}
                if store.is_written():
                    store.write(key, own, seconds=result["seconds"], about=wanted[missing[key]])
                found[key] = own | {"seconds": np.float64(result["seconds"])}
            if store.is_written():
                checkpoints.remove(stacks[index])
            if result["device"] != "cpu":  # by its full name, which only the worker may know
                results.record_device(result["device"], kinds.THREADS)

        tasks = [_task([missing[key] for key in stack], stack, wanted, where) for stack in stacks]
        _train(tasks, workers, keep)
    for key, run in found.items():
        results.record_training(run["seconds"], reused=key not in missing, kept=key if kept else "")
    return {member: found[key] for member, key in keys.items()}


def _identities(members: Sequence[Member], where: str) -> dict[Member, dict[str, Any]]:
    """All that each result rests on; notes the data sets in the results."""
    IMPORTED.touched()

    @cache
    def edition(kind: str, name: str | None) -> dict[str, Any]:
        identity = book().data.prepare(name) if name else None
        if identity:
            results.record_data(identity)
        return kinds.edition(kind, identity and identity.sha256)

    editions = (edition(kinds.kind_of(arm), getattr(arm, "data", None)) for arm, _ in members)
    return {each: kinds.identity(*each, own, where) for each, own in zip(members, editions)}


def _stacks(missing: dict[str, Member], where: str, workers: int) -> list[list[str]]:
    """Keys that train together: first the stacks that stopped in the middle."""
    begun = checkpoints.stacks_of(set(missing)) if store.is_written() else []
    taken = set(chain(*begun))
    rest = {member: key for key, member in missing.items() if key not in taken}
    return begun + [[rest[member] for member in stack] for stack in kinds.stacks(list(rest), where, workers)]


def _task(
    stack: list[Member], keys: list[str], wanted: dict[Member, dict[str, Any]], where: str
) -> dict[str, Any]:
    """Plain values only: whatever edition a worker has, it can read them."""
    arm, seed = stack[0]
    return {
        "book": f"{book().package}.book",
        "kind": kinds.kind_of(arm),
        "members": [[arm.settings(), int(seed)] for arm, seed in stack],
        "keys": keys if store.is_written() else [],  # those of checkpoints
        "edition": {part: wanted[arm, seed][part] for part in kinds.EDITION},
        "device": kinds.device_of(arm, where),
        "steps": arm.steps,
    }


def _train(
    tasks: list[dict[str, Any]], workers: int | None, keep: Callable[[int, dict[str, Any]], None]
) -> None:
    """Train all tasks and hand over each result as soon as it is there."""
    progress = Progress([each["steps"] for each in tasks])
    at_once = cores() if all(each["device"] == "cpu" for each in tasks) else 1
    workers = min(workers or at_once, len(tasks))

    def done(index: int, result: dict[str, Any]) -> None:
        keep(index, result)
        progress.finish(index)

    try:
        if address := pool.scheduler():
            progress.starting(f"asking {address} for workers")
            pool.train_there(tasks, progress.tell, done)
        elif workers == 1:
            for index, each in enumerate(tasks):
                done(index, kinds.train(each, partial(progress.tell, index)))
        else:
            progress.starting(f"starting {workers} workers")
            pool.train(tasks, workers, progress.tell, done)
    finally:
        progress.close()


def _device(named: str | None) -> str:
    """The named device, BNBOOK_DEVICE, else the GPU where there is one."""
    return named or os.environ.get("BNBOOK_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")
