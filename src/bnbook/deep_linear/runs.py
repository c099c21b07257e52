"""Deep linear networks by the hundred: what the store has is read, the rest is trained in stacks, several at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bnbook
from bnbook import results
from bnbook.deep_linear.arm import LinearArm
from bnbook.deep_linear.descent import Member, train_stack
from bnbook.errors import BnbookError
from bnbook.pipeline.fingerprint import digest, package_fingerprint
from bnbook.training import store
from bnbook.training.progress import Progress

#: Members of one stack. More share the cost of a call, fewer stay in the cache; ℓ1 and ℓ∞ go back to the examples.
STACK = {"none": 100, "batch": 100, "l2": 100, "l1": 20, "linf": 20}
#: Threads of one stack; two processes of one thread each beat one of two.
THREADS = 1


def train_all(
    arms: Sequence[LinearArm], seeds: Iterable[int], workers: int | None = None
) -> dict[LinearArm, dict[str, np.ndarray]]:
    """Train every arm from every seed, or take it from the store; arm -> the arrays of `train_stack`, (S, ...).

    `seconds` (S,) is added: a member's share of the time that its stack took. `workers` processes train at once, by
    default (None or 0) one a core; 1 trains in this process. Stacks that are finished when a run is killed stay.
    """
    arms, seeds = list(dict.fromkeys(arms)), list(seeds)
    results.record_device("cpu", THREADS)
    keys = {(arm, seed): key(arm, seed) for arm in arms for seed in seeds}
    found = {member: store.read(name) for member, name in keys.items()}
    missing = [member for member in keys if found[member] is None]
    stacks = _stacks(missing, workers or _cores())
    if stacks:
        progress = Progress(len(stacks), sum(stack[0][0].steps for stack in stacks))
        try:
            if min(workers or _cores(), len(stacks)) == 1:
                for stack in stacks:
                    train_into_store(stack, progress.advance)
                    progress.finish_run()
            else:
                _in_processes(stacks, workers or _cores(), progress)
        finally:
            progress.close()
        found |= {member: store.read(keys[member]) for member in missing}
    trained = set(missing)
    for member, run in found.items():
        results.record_training(run["seconds"], reused=member not in trained)
    return {
        arm: {name: np.stack([found[arm, seed][name] for seed in seeds]) for name in found[arm, seeds[0]]}
        for arm in arms
    }


def key(arm: LinearArm, seed: int) -> str:
    """SHA-256 of the settings, the seed, the code that trains and torch's version."""
    return digest({"linear_arm": arm.settings(), "seed": seed, "code": _code(), "torch": torch.__version__})


def train_into_store(stack: Sequence[Member], on_steps: Any = None) -> None:
    """Train one stack and store its members one by one."""
    begun = time.perf_counter()
    with _one_thread():
        arrays = train_stack(stack, on_steps=on_steps)
    seconds = (time.perf_counter() - begun) / len(stack)
    for index, (arm, seed) in enumerate(stack):
        own = {name: value[index] for name, value in arrays.items()}
        store.write(key(arm, seed), own, seconds=seconds, about={"linear_arm": arm.settings(), "seed": seed})


def _stacks(members: list[Member], workers: int) -> list[list[Member]]:
    """Members that can train together, in stacks of near-equal size that keep all workers busy; the slowest first.

    Neighbours stay together: an arm's seeds often diverge together, and a stack of which nothing is left costs nothing.
    """
    groups: dict[LinearArm, list[Member]] = {}
    for member in members:
        groups.setdefault(member[0].stack_key(), []).append(member)
    stacks = []
    for shape, group in groups.items():
        count = -(-len(group) // STACK[shape.norm])
        count = min(len(group), -(-count // workers) * workers) if len(group) > 4 * workers else count
        edges = [round(part * len(group) / count) for part in range(count + 1)]
        stacks += [group[a:b] for a, b in zip(edges, edges[1:])]
    return sorted(stacks, key=lambda stack: -len(stack) / STACK[stack[0][0].norm] * stack[0][0].steps)


def _in_processes(stacks: list[list[Member]], workers: int, progress: Progress) -> None:
    running: set[subprocess.Popen] = set()
    with ThreadPoolExecutor(min(workers, len(stacks))) as pool:
        tasks = [pool.submit(_in_process, stack, progress, running) for stack in stacks]
        try:
            for task in tasks:
                task.result()
        except BaseException:  # also Ctrl-C: nobody waits for the others any more
            for task in tasks:
                task.cancel()
            for process in list(running):
                process.kill()
            raise


def _in_process(stack: list[Member], progress: Progress, running: set[subprocess.Popen]) -> None:
    """One stack in a process of its own, which ends with this one, for its input closes then."""
    package = str(Path(bnbook.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    variables = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": str(THREADS)}
    variables.pop("BNBOOK_RESULTS", None)  # the results file is this process's to write
    with subprocess.Popen(
        [sys.executable, "-m", "bnbook.deep_linear.worker"], env=variables, text=True, encoding="utf-8",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        running.add(process)
        try:
            task = {"code": _code(), "stack": [[arm.settings(), seed] for arm, seed in stack]}
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                progress.advance(int(line))
            said = process.stderr.read().strip().splitlines()
        finally:
            process.stdin.close()
            process.wait()
            running.discard(process)
    if process.returncode:
        last = said[-1] if said else "it left no message; perhaps memory ran out"
        raise BnbookError(f"a training process ended with code {process.returncode}: {last}; run again to go on")
    progress.finish_run()


@cache
def _code() -> str:
    return package_fingerprint(["bnbook.deep_linear.descent:train_stack"])


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
