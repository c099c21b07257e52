"""Trainings in processes of this machine, which are kept a while for the next round of a chapter, or on the Dask cluster
that BNBOOK_SCHEDULER names, in their place."""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import ExitStack, contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bookpress import cores
from bookpress.book import book
from bookpress.errors import PressError
from bookpress.runs import kinds

if TYPE_CHECKING:
    from distributed import Client

#: What must be set before a worker starts: one thread, and memory that a step has freed is kept for the next one (by
#: glibc's defaults it is handed back, and up to a third of a training goes into page faults).
VARIABLES = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
VARIABLES |= {"MALLOC_TRIM_THRESHOLD_": str(2**32), "MALLOC_MMAP_MAX_": "0"}
#: What a worker is not told: whose results it makes.
PASSING = ("BNBOOK_RESULTS", "BNBOOK_CHAPTER", "BNBOOK_PROGRESS", "BNBOOK_FIGURES")
#: Seconds between two looks at what the workers say, and after which workers without work end.
LOOK, IDLE = 0.25, 60.0


class Workers:
    """So many processes, the queue by which they say where their trainings stand, and the clock by which they end."""

    clock: threading.Timer

    def __init__(self, count: int) -> None:
        self.count, self.surroundings = count, _surroundings()
        self.events = multiprocessing.get_context("spawn").SimpleQueue()
        self.made = cores.started(count, kinds.begin, self.events)
        with _as_a_worker_starts():
            for _ in range(count):  # each task starts a process as long as none is idle, which takes seconds
                self.made.submit(os.getpid)
        self.processes = list(self.made._processes.values())

    def fit(self, count: int) -> bool:
        return (
            self.count >= count
            and self.surroundings == _surroundings()
            and all(process.is_alive() for process in self.processes)
        )

    def end(self) -> None:
        cores.end(self.made)


Tell = Callable[[int, int, bool], Any]
Keep = Callable[[int, dict[str, Any]], None]


def train(tasks: list[dict[str, Any]], count: int, tell: Tell, keep: Keep) -> None:
    """Train all tasks, `count` at once; `tell` hears of their steps, `keep` takes each result as soon as it is there.

    Where a worker is killed, mostly for want of memory, half as many go on with what is left; PressError where the
    last one is. After any other error, or Ctrl-C, none trains on for nobody.
    """
    left = dict(enumerate(tasks))
    while left:
        with _taken(count) as workers:
            try:
                _train(left, count, workers, tell, keep)
            except BrokenExecutor:
                workers.end()
                if count == 1:
                    raise PressError(
                        "a training's process was ended in the middle (perhaps memory ran out); finished trainings are "
                        "in the results store; free memory, then run again to go on with those that are missing"
                    ) from None
                count //= 2


def _train(left: dict[int, dict[str, Any]], count: int, workers: Workers, tell: Tell, keep: Keep) -> None:
    """Train those that are left, and take each away that is done."""
    waiting: dict[Future, int] = {}
    while left:
        for index in [each for each in left if each not in waiting.values()][: count - len(waiting)]:
            waiting[workers.made.submit(kinds.in_pool, left[index], index)] = index
        done, _ = wait(waiting, LOOK, FIRST_COMPLETED)
        while not workers.events.empty():
            tell(*workers.events.get())
        for future in done:
            index = waiting.pop(future)
            keep(index, future.result())
            del left[index]


# ---- Kept between rounds: to start them takes seconds ----------------------------------------------------------------

_kept: list[Workers] = []  # one at most; it ends with this process


@contextmanager
def _taken(count: int) -> Iterator[Workers]:
    """Those that are kept, if they fit, else new ones; kept from then on, unless something went wrong."""
    workers = _no_longer_kept()
    if workers and not workers.fit(count):
        workers.end()
        workers = None
    workers = workers or Workers(count)
    try:
        yield workers
    except BaseException:
        workers.end()
        raise
    workers.clock = threading.Timer(IDLE, end_kept)
    workers.clock.daemon = True
    _kept.append(workers)
    workers.clock.start()


def _no_longer_kept() -> Workers | None:
    with suppress(IndexError):  # one step, for cells may train in threads
        workers = _kept.pop()
        workers.clock.cancel()
        return workers


def end_kept() -> None:
    while workers := _no_longer_kept():
        workers.end()


def _surroundings() -> tuple:
    """What workers take from this process when they start; where it changed, new ones are needed."""
    names = [name for name in os.environ if name.startswith("BNBOOK_") and name not in PASSING]
    return os.getcwd(), tuple(sorted((name, os.environ[name]) for name in names))


@contextmanager
def _as_a_worker_starts() -> Iterator[None]:
    """The variables of a worker; and no main module, which it would run anew although its tasks are plain values."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        with cores.surroundings(VARIABLES, PASSING):
            yield
    finally:
        sys.modules["__main__"] = main


# ---- On a cluster ----------------------------------------------------------------------------------------------------

ADDRESS = re.compile(r"(tcp|tls|wss?|ucx)://.+:\d+")
#: Seconds in which a scheduler must answer, and hand over a result that it has.
ANSWER, HAND_OVER = 15, 300


def scheduler() -> str | None:
    """The address of the cluster that the user chose."""
    return os.environ.get("BNBOOK_SCHEDULER") or None


@contextmanager
def connected() -> Iterator[Client]:
    """A client of the cluster; PressError where none answers."""
    from distributed import Client

    address, logger = scheduler(), logging.getLogger("distributed")
    with ExitStack() as afterwards:
        afterwards.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL)  # what matters is said in one line of our own
        try:
            if not ADDRESS.fullmatch(address):
                raise OSError("no address")
            client = Client(address, timeout=ANSWER, set_as_default=False)
        except OSError as error:
            raise PressError(
                f"no Dask scheduler answers at {address!r} ({error or type(error).__name__}); expected an "
                "address such as tcp://127.0.0.1:8786; start one (dask scheduler) or unset BNBOOK_SCHEDULER"
            ) from None
        afterwards.callback(client.close, timeout=2)
        yield client


def train_there(tasks: list[dict[str, Any]], tell: Tell, keep: Keep) -> None:
    """Train all tasks on the cluster."""
    from bookpress.runs import checkpoints  # with torch: who asks for the address has no need of it

    events: queue.SimpleQueue[Any] = queue.SimpleQueue()  # words on a step, and futures that are done
    topic, waiting = f"{book().package}-{uuid.uuid4().hex}", dict[Any, int]()
    with connected() as client:
        client.subscribe_topic(topic, lambda event: events.put(event[1]))
        for index, each in enumerate(tasks):
            future = client.submit(kinds.on_worker, each, topic, index, pure=False, priority=-index)
            waiting[future] = index
            future.add_done_callback(events.put)
        while waiting:
            try:
                event = events.get(timeout=LOOK)  # so that Ctrl-C is heard on every system
            except queue.Empty:
                continue
            if isinstance(event, dict):
                tell(event["run"], event["step"], event["begins"])
            else:
                index, found = waiting.pop(event), result(event)
                keep(index, found)
                if found["checkpoint"]:  # it lies where the worker is
                    client.run(checkpoints.remove, tasks[index]["keys"], on_error="ignore")


def result(future: Any) -> Any:
    """What a finished task answered; its error as it was raised; PressError where it killed its workers or
    the scheduler is gone."""
    from distributed import KilledWorker

    status = future.status
    if status == "error":
        error = future.exception()
        if not isinstance(error, KilledWorker):
            raise error
        raise PressError(
            f"a training was given up, for {error.allowed_failures + 1} workers died while they were at it; see the log of "
            f"{error.last_worker.address}; run again to go on with those that are missing"
        )
    try:
        if status == "finished":
            return future.result(timeout=HAND_OVER)
    except (OSError, TimeoutError, CancelledError):
        pass
    raise PressError(
        f"lost the Dask scheduler at {scheduler()}; finished trainings are in the results store; run again to go on"
    )
