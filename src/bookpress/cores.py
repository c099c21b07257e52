"""The cores of this machine, and processes beside this one: each ends with it, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from bookpress.errors import PressError


def cores() -> int:
    """The cores that this process may use; BNBOOK_CORES says fewer, as for chapters that run side by side."""
    share = os.environ.get("BNBOOK_CORES", "")
    if share and not (share.isdecimal() and int(share)):
        raise PressError(f"BNBOOK_CORES={share}; expected a number of cores, at least 1")
    if share:
        return int(share)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def surroundings(given: Mapping[str, str], without: Iterable[str] = ()) -> Iterator[None]:
    """What a process that is started inside finds in its environment; this one has its own again afterwards."""
    before = dict(os.environ)
    for name in without:
        os.environ.pop(name, None)
    os.environ |= given
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


@contextmanager
def pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Spawned processes; an error or an interruption inside ends them at once."""
    made = started(workers)
    try:
        yield made
    except BaseException:
        end(made)
        raise
    made.shutdown()


def started(workers: int, begin: Callable[..., None] | None = None, *given: Any) -> ProcessPoolExecutor:
    """Processes that are spawned with the first task; each calls `begin(*given)` before it."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(begin, *given))


def end(made: ProcessPoolExecutor) -> None:
    """End them in the middle of what they do."""
    for process in list((made._processes or {}).values()):
        process.kill()
    made.shutdown(cancel_futures=True)


def end_with_parent() -> None:
    """From here on this process ends with the one that started it, if it is a worker: it waits at a pipe whose other
    end it holds itself, and would stay for ever."""
    being_made = getattr(
        multiprocessing.current_process(), "_inheriting", False
    )  # it does not know its parent yet

    def watch() -> None:
        while (parent := multiprocessing.parent_process()) is None:
            time.sleep(0.1)
        parent.join()
        os._exit(1)

    if being_made or multiprocessing.parent_process():
        threading.Thread(target=watch, daemon=True).start()


def _begin(begin: Callable[..., None] | None, *given: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of a terminal; the parent decides
    if begin:
        begin(*given)
