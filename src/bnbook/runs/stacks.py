"""Trainings that run many at once as one stack: what the store has is read, the rest is trained, several
stacks at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bnbook
from bnbook import results
from bnbook.errors import BnbookError
from bnbook.pipeline.fingerprint import digest, package_fingerprint
from bnbook.runs import store
from bnbook.runs.progress import Progress

Arrays = dict[str, np.ndarray]
#: Threads of one stack; two processes of one thread each beat one of two.
THREADS = 1


@dataclass(frozen=True)
class StackRuns:
    """One kind of stacked training. Its arms are frozen dataclasses with steps, settings(), from_settings()
    and stack_key()."""

    module: str  # the module in which a worker finds this object, as RUNS
    label: str  # what the arm is called in a key of the store
    arm_type: type
    train: Callable[..., Arrays]  # (members, on_steps) -> arrays with a leading axis of members
    code: str  # the function, as module:name, whose code and all that it rests on makes the numbers
    size: Callable[[Any], int]  # members of one stack at most, for an arm
    data: Callable[[Any], dict[str, Any]] = lambda arm: {}  # what of the data set goes into the key
    unkeyed: tuple[str, ...] = ()  # settings that do not: names of data sets, which count by content
    device: Callable[[], str] = lambda: (
        "cpu"
    )  # where it trains; on an accelerator one stack after the other, in this process

    def train_all(
        self, arms: Sequence[Any], seeds: Iterable[int], workers: int | None = None
    ) -> dict[Any, Arrays]:
        """Train every arm from every seed, or take it from the store; arm -> the arrays of `train`, (S, ...).

        `seconds` (S,) is added: a member's share of the time that its stack took. `workers` processes train
        at once, by default (None or 0) one a core; 1 trains in this process. Stacks that are finished when a
        run is killed stay.
        """
        arms, seeds = list(dict.fromkeys(arms)), list(seeds)
        members = self.train_members([(arm, seed) for arm in arms for seed in seeds], workers)
        return {
            arm: {
                name: np.stack([members[arm, seed][name] for seed in seeds])
                for name in members[arm, seeds[0]]
            }
            for arm in arms
        }

    def train_members(
        self, members: Sequence[tuple[Any, int]], workers: int | None = None
    ) -> dict[tuple[Any, int], Arrays]:
        """The same for single members, (arm, seed) -> the arrays of one."""
        results.record_device(self.device(), THREADS)
        workers = (workers or _cores()) if self.device() == "cpu" else 1
        keys = {member: self.key(*member) for member in members}
        found = {member: store.read(name) for member, name in keys.items()}
        missing = [member for member in keys if found[member] is None]
        stacks = self.stacks(missing, workers)
        if stacks:
            progress = Progress(len(stacks), sum(stack[0][0].steps for stack in stacks))
            try:
                if min(workers, len(stacks)) == 1:
                    for stack in stacks:
                        self.train_into_store(stack, progress.advance)
                        progress.finish_run()
                else:
                    self._in_processes(stacks, workers, progress)
            finally:
                progress.close()
            found |= {member: store.read(keys[member]) for member in missing}
        trained = set(missing)
        for member, run in found.items():
            results.record_training(run["seconds"], reused=member not in trained)
        return found

    def key(self, arm: Any, seed: int) -> str:
        """SHA-256 of the settings, the seed, the data, the code that trains and torch's version."""
        settings = {name: value for name, value in arm.settings().items() if name not in self.unkeyed}
        code = {"code": self.fingerprint(), "torch": torch.__version__}
        return digest({self.label: settings, "seed": seed} | code | self.data(arm))

    def fingerprint(self) -> str:
        """Of the code that trains."""
        return package_fingerprint([self.code])

    def train_into_store(self, stack: Sequence[tuple[Any, int]], on_steps: Any = None) -> None:
        """Train one stack and store its members one by one."""
        begun = time.perf_counter()
        with _one_thread():
            arrays = self.train(stack, on_steps=on_steps)
        seconds = (time.perf_counter() - begun) / len(stack)
        for index, (arm, seed) in enumerate(stack):
            own = {name: value[index] for name, value in arrays.items()}
            store.write(
                self.key(arm, seed), own, seconds=seconds, about={self.label: arm.settings(), "seed": seed}
            )

    def stacks(self, members: Sequence[tuple[Any, int]], workers: int) -> list[list[tuple[Any, int]]]:
        """Members that can train together, in stacks of near-equal size that keep all workers busy; the
        slowest first.

        Neighbours stay together: an arm's seeds often diverge together, and a stack of which nothing is left
        costs nothing.
        """
        groups: dict[Any, list[tuple[Any, int]]] = {}
        for member in members:
            groups.setdefault(member[0].stack_key(), []).append(member)
        found = []
        for shape, group in groups.items():
            count = -(-len(group) // self.size(shape))
            count = min(len(group), -(-count // workers) * workers) if len(group) > 4 * workers else count
            edges = [round(part * len(group) / count) for part in range(count + 1)]
            found += [group[a:b] for a, b in zip(edges, edges[1:])]
        return sorted(found, key=lambda stack: -len(stack) / self.size(stack[0][0]) * stack[0][0].steps)

    def _in_processes(self, stacks: list, workers: int, progress: Progress) -> None:
        running: set[subprocess.Popen] = set()
        with ThreadPoolExecutor(min(workers, len(stacks))) as pool:
            tasks = [pool.submit(self._in_process, stack, progress, running) for stack in stacks]
            try:
                for task in tasks:
                    task.result()
            except BaseException:  # also Ctrl-C: nobody waits for the others any more
                for task in tasks:
                    task.cancel()
                for process in list(running):
                    process.kill()
                raise

    def _in_process(self, stack: list, progress: Progress, running: set[subprocess.Popen]) -> None:
        """One stack in a process of its own, which ends with this one, for its input closes then."""
        package = str(Path(bnbook.__file__).resolve().parents[1])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        variables = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": str(THREADS)}
        variables.pop("BNBOOK_RESULTS", None)  # the results file is this process's to write
        with subprocess.Popen(
            [sys.executable, "-m", "bnbook.runs.stack_worker", self.module],
            env=variables,
            text=True,
            encoding="utf-8",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            running.add(process)
            try:
                task = {"code": self.fingerprint(), "stack": [[arm.settings(), seed] for arm, seed in stack]}
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
            raise BnbookError(
                f"a training process ended with code {process.returncode}: {last}; run again to go on"
            )
        progress.finish_run()


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
