"""The local cluster, in a process of its own: `python -m bookpress.runs.local WORKERS BYTES`.

It says the scheduler's address on its standard output, and the keys by which alone one is let in, and ends as
soon as its standard input closes, so that it never outlives the process that made it, however that one ends;
its workers, which hold the end of a pipe to it, end with it. Whatever anything in it prints goes to its
standard error. Left alone it ends too.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

#: Where Dask's defaults do not fit: a task whose third worker dies is given up; no task waits at a worker; a
#: worker with no memory left is ended, for the data sets that fill it will not go away by waiting; a nanny
#: may take its time to start another worker (Dask ends it after 15 s, and its last worker with it); a cluster
#: that nobody uses ends, but not between the rounds of a chapter; and a worker keeps the memory that a step
#: has freed for the next one (Dask has glibc hand it back at once; most of a training then goes into page
#: faults).
SETTINGS = {
    "distributed.scheduler.allowed-failures": 2,
    "distributed.deploy.lost-worker-timeout": "1 h",
    "distributed.scheduler.idle-timeout": "60 s",
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": 0.95,
    "distributed.scheduler.http.routes": [],  # the servers for pages start anyhow, and have none
    "distributed.worker.http.routes": [],
    "distributed.nanny.http.routes": [],
    "distributed.nanny.pre-spawn-environ": {
        "OMP_NUM_THREADS": 1,
        "MKL_NUM_THREADS": 1,
        "OPENBLAS_NUM_THREADS": 1,
        "MALLOC_TRIM_THRESHOLD_": 2**32,
        "MALLOC_MMAP_MAX_": 0,
    },
}
#: What a client shows and asks for, made for this cluster and kept in memory.
KEYS = ("tls_ca_file", "tls_client_cert", "tls_client_key")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()

    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    workers, memory = map(int, sys.argv[1:])
    dask.config.set(SETTINGS)
    security = Security.temporary()  # a port of 127.0.0.1 is open to every user of the machine
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        memory_limit=memory,
        host="127.0.0.1",
        dashboard_address=None,
        security=security,
        silence_logs=False,
    )
    keys = {name: getattr(security, name) for name in KEYS}
    print(json.dumps({"address": cluster.scheduler_address, "keys": keys}), file=answers, flush=True)
    while cluster.scheduler.status.name == "running":
        time.sleep(0.5)
    os._exit(0)


def _end_with_the_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
