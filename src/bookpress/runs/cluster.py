"""The Dask cluster that BNBOOK_SCHEDULER names, on which trainings run in place of this machine."""

from __future__ import annotations

import logging
import os
import queue
import re
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from bookpress.book import book
from bookpress.errors import PressError
from bookpress.runs import kinds

if TYPE_CHECKING:
    from distributed import Client

    from bookpress.runs.pool import Keep, Tell

ADDRESS = re.compile(r"(tcp|tls|wss?|ucx)://.+:\d+")
#: Seconds in which a scheduler must answer, and hand over a result that it has.
ANSWER, HAND_OVER = 15, 300
#: Seconds without a word after which the loop looks up, so that Ctrl-C is heard on every system.
LOOK = 1.0


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


def train(tasks: list[dict[str, Any]], tell: Tell, keep: Keep) -> None:
    """Train all tasks there, as `pool.train` does here."""
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
                event = events.get(timeout=LOOK)
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
