"""Many trainings: what the store has is read, the rest is trained, on a CPU several at once."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import bnbook
from bnbook import results
from bnbook.data import load
from bnbook.errors import BnbookError
from bnbook.runs import store
from bnbook.runs.progress import Progress
from bnbook.runs.worker import run_task
from bnbook.training.arm import Arm
from bnbook.training.engine import pick_device

#: Threads of one training. Two trainings of one thread each beat one of two threads by 15 to 30 % at these
#: sizes. And another count of threads would be another result: with batch norm a rounding grows to some per
#: cent in 20 steps.
THREADS = 1


def train_all(
    arms: Sequence[Arm], seeds: Iterable[int], workers: int | None = None, device: str | None = None
) -> dict[Arm, dict[str, np.ndarray]]:
    """Train every arm from every seed, or take it from the store; arm -> the arrays of `train`, stacked (S,
    ...).

    A `ProbedArm` comes with the arrays of `train_probed`.
    `seconds` (S,) is added: what each training took when it was made. `workers` processes train at once: by
    default as many as there are cores on a CPU, one on a GPU; 1 trains in this process. Interrupted or
    killed, the next call goes on with the trainings that are missing. BnbookError where a worker runs into
    bad input or is killed.
    """
    seeds = list(seeds)
    where = str(pick_device(device))
    device_type = where.split(":")[0]
    workers = workers or (1 if device_type == "cuda" else _cores())
    results.record_device(_device_name(where), THREADS)
    tasks = []
    for arm in dict.fromkeys(arms):
        sha256 = load(arm.data, device=where).identity.sha256
        for seed in seeds:
            tasks.append(
                {
                    "key": store.key(arm, seed, sha256, device_type, THREADS),
                    "arm": arm.settings(),
                    "seed": seed,
                    "device": where,
                    "threads": THREADS,
                    "sha256": sha256,
                    "code": store.code_fingerprint(type(arm).__name__),
                }
            )
    found = {task["key"]: store.read(task["key"]) for task in tasks}
    # Longest first, so that no worker is left alone with a long one at the end.
    missing = sorted((t for t in tasks if found[t["key"]] is None), key=lambda t: -t["arm"]["steps"])
    if missing:
        progress = Progress(len(missing), sum(task["arm"]["steps"] for task in missing))
        try:
            run = _here if min(workers, len(missing)) == 1 else _in_processes
            run(missing, progress, workers)
        finally:
            progress.close()
        found |= {task["key"]: store.read(task["key"]) for task in missing}
    fresh = {task["key"] for task in missing}
    for name, run in found.items():
        results.record_training(run["seconds"], reused=name not in fresh)
    names = iter(tasks)
    return {arm: _stack([found[next(names)["key"]] for _ in seeds]) for arm in dict.fromkeys(arms)}


def _stack(runs: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.stack([run[name] for run in runs]) for name in runs[0]}


def _here(tasks: list[dict[str, Any]], progress: Progress, _workers: int) -> None:
    for task in tasks:
        before = progress.done_steps
        run_task(task, progress.advance)
        progress.finish_run(task["arm"]["steps"] - (progress.done_steps - before))


def _in_processes(tasks: list[dict[str, Any]], progress: Progress, workers: int) -> None:
    pending = deque(tasks)
    answers: queue.SimpleQueue[tuple[_Worker, dict[str, Any] | None]] = queue.SimpleQueue()
    team = [_Worker(answers) for _ in range(min(workers, len(tasks)))]
    try:
        for worker in team:
            worker.give(pending.popleft())
        busy = set(team)
        while busy:
            worker, answer = answers.get()
            if answer is None:
                if worker in busy:
                    raise worker.failure()
            elif "steps" in answer:
                worker.steps += answer["steps"]
                progress.advance(answer["steps"])
            elif "done" in answer:
                progress.finish_run(worker.task["arm"]["steps"] - worker.steps)
                if pending:
                    worker.give(pending.popleft())
                else:
                    busy.discard(worker)
            else:
                raise (BnbookError if answer["mendable"] else RuntimeError)(answer["error"])
    finally:
        for worker in team:
            worker.dismiss()


class _Worker:
    """One `bnbook.runs.worker` process; its answers go to a queue shared by all, None when it has ended."""

    def __init__(self, answers: queue.SimpleQueue) -> None:
        package = str(Path(bnbook.__file__).resolve().parents[1])
        variables = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
            "OMP_NUM_THREADS": str(THREADS),
        }
        variables.pop("BNBOOK_RESULTS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bnbook.runs.worker"],
            env=variables,
            text=True,
            encoding="utf-8",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.last_words: deque[str] = deque(maxlen=20)
        self.answers, self.task, self.steps = answers, {}, 0
        threading.Thread(target=self._hear, daemon=True).start()
        threading.Thread(target=lambda: self.last_words.extend(self.process.stderr), daemon=True).start()

    def give(self, task: dict[str, Any]) -> None:
        self.task, self.steps = task, 0
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()

    def dismiss(self) -> None:
        """Close its input, which ends it at once, and wait until it has."""
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def failure(self) -> BnbookError:
        code = self.process.wait()
        said = (
            self.last_words[-1].strip() if self.last_words else "it left no message; perhaps memory ran out"
        )
        return BnbookError(
            f"a training process ended with code {code}: {said}; run again to go on with the seeds that "
            "are missing"
        )

    def _hear(self) -> None:
        for line in self.process.stdout:
            self.answers.put((self, json.loads(line)))
        self.answers.put((self, None))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _device_name(where: str) -> str:
    if not where.startswith("cuda"):
        return where
    import torch

    return torch.cuda.get_device_name(where)
