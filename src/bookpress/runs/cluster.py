"""A Dask cluster to train on: the one that BNBOOK_SCHEDULER names, else one on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psutil

from bookpress.book import folders
from bookpress.errors import PressError

if TYPE_CHECKING:
    from distributed import Client

ADDRESS = re.compile(r"(tcp|tls|wss?|ucx)://.+:\d+")
#: Seconds in which a scheduler must answer, and hand over a result that it has.
ANSWER, HAND_OVER = 15, 300
#: And after which a local cluster without work is not asked any more: it ends by itself after 60 (local.py).
IDLE = 45


class LocalCluster:
    """`bookpress.runs.local` as a child process, and what it says."""

    def __init__(self, workers: int) -> None:
        self.workers, self.surroundings, self.left = workers, _surroundings(), time.monotonic()
        self.log = tempfile.TemporaryFile("a+b")  # noqa: SIM115 (open as long as the cluster runs)
        packages = dict.fromkeys(str(folder.resolve().parent) for folder in folders().values())
        variables = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [*packages, os.environ.get("PYTHONPATH")])),
            "OMP_NUM_THREADS": "1",
        }
        variables.pop("BNBOOK_RESULTS", None)  # the results file is this process's to write
        memory = psutil.virtual_memory().total // (workers + 1)  # one part is this process's
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bookpress.runs.local", str(workers), str(memory)],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            start_new_session=True,  # Ctrl-C is for this process, which then decides
        )
        said = (line.decode("utf-8", "replace") for line in self.process.stdout)
        answer = json.loads(next((line for line in said if line.startswith('{"address"')), "{}"))
        self.address, self.keys = answer.get("address", ""), answer.get("keys", {})
        if not self.address:
            raise PressError(
                f"the local workers did not start: {self.last_words()}; run again, or with workers=1"
            )

    def last_words(self) -> str:
        """The last line that anything in the cluster printed, and what Dask says of the last worker that
        died."""
        self.log.seek(0)
        said = self.log.read().decode("utf-8", "replace").splitlines()
        own = [line.strip() for line in said if line.strip() and " - distributed." not in line]
        deaths = [line.rpartition(" - ")[2] for line in said if re.search("killed by|exceeded|exited", line)]
        memory = [line for line in deaths if "memory" in line]
        return "; ".join([*own[-1:], *(memory or deaths)[-1:]]) or "it left no message"

    def serves(self, workers: int, exactly: bool) -> bool:
        fits = self.workers == workers or self.workers > workers and not exactly
        idle = time.monotonic() - self.left
        return fits and idle < IDLE and self.process.poll() is None and self.surroundings == _surroundings()

    def end(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_kept: list[LocalCluster] = []  # one at most; it ends with this process


@contextmanager
def connected(workers: int, exactly: bool = True) -> Iterator[tuple[Client, LocalCluster | None]]:
    """A client of the cluster, where a local one has that many workers or, unless `exactly`, more; after any
    error it is ended, so that nothing trains on for nobody."""
    named = scheduler()
    local = None if named else _local(workers, exactly)
    try:
        with _client(named or local.address, local.keys if local else {}) as client:
            yield client, local
        if local:
            local.left = time.monotonic()
    except BaseException:
        if local:
            end_local()
        raise


def result(future: Any, local: LocalCluster | None) -> Any:
    """What a finished task answered; its error as it was raised; PressError where it killed its workers or
    the scheduler is gone."""
    from distributed import KilledWorker

    status = future.status
    if status == "error":
        error = future.exception()
        if not isinstance(error, KilledWorker):
            raise error
        words = local.last_words() if local else f"see the log of {error.last_worker.address}"
        raise PressError(
            f"a training was given up, for {error.allowed_failures + 1} workers died while they were at it; "
            f"last words: {words}; run again to go on with those that are missing"
        )
    try:
        if status == "finished":
            return future.result(timeout=HAND_OVER)
    except (OSError, TimeoutError, CancelledError):
        pass
    words = f" ({local.last_words()})" if local else f" at {scheduler()}"
    raise PressError(
        f"lost the Dask scheduler{words}; finished trainings are in the results store; run again to go on"
    )


def scheduler() -> str | None:
    """The address of the cluster that the user chose."""
    return os.environ.get("BNBOOK_SCHEDULER") or None


def end_local() -> None:
    while _kept:
        _kept.pop().end()


def _local(workers: int, exactly: bool) -> LocalCluster:
    if not (_kept and _kept[0].serves(workers, exactly)):
        end_local()
        _kept.append(LocalCluster(workers))
    return _kept[0]


def _surroundings() -> tuple:
    """What workers take from this process when they start; where it changed, new ones are needed."""
    names = [name for name in os.environ if name.startswith("BNBOOK_")]
    passing = ("BNBOOK_RESULTS", "BNBOOK_CHAPTER", "BNBOOK_PROGRESS", "BNBOOK_FIGURES")
    return os.getcwd(), tuple(sorted((name, os.environ[name]) for name in names if name not in passing))


@contextmanager
def _client(address: str, keys: Mapping[str, str]) -> Iterator[Client]:
    """A client; `keys` of a local cluster, which lets in nobody else (for another one Dask's own settings count)."""
    import logging

    from distributed import Client
    from distributed.security import Security

    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)  # what matters is said in one line of our own
    try:
        try:
            if not ADDRESS.fullmatch(address):
                raise OSError("no address")
            security = Security(require_encryption=True, **keys) if keys else None
            client = Client(address, timeout=ANSWER, set_as_default=False, security=security)
        except OSError as error:
            raise PressError(
                f"no Dask scheduler answers at {address!r} ({error or type(error).__name__}); expected an "
                "address such as tcp://127.0.0.1:8786; start one (dask scheduler) or unset BNBOOK_SCHEDULER"
            ) from None
        try:
            yield client
        finally:
            client.close(timeout=2)
    finally:
        logger.setLevel(before)
