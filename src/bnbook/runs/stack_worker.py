"""A process that trains one stack into the store: `python -m bnbook.runs.stack_worker MODULE`, whose RUNS it
uses.

One line of JSON in, {"code", "stack": [[settings, seed], ...]}; a line with a number of steps out, now and
then. It ends as soon as its input closes, so it never outlives the process that made it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    runs = importlib.import_module(sys.argv[1]).RUNS
    task = json.loads(sys.stdin.readline())
    if task["code"] != runs.fingerprint():
        sys.exit("the code changed while the chapter ran; expected one edition for all trainings")
    threading.Thread(target=_watch, daemon=True).start()
    stack = [(runs.arm_type.from_settings(settings), seed) for settings, seed in task["stack"]]
    runs.train_into_store(stack, lambda steps: print(steps, flush=True))


def _watch() -> None:
    sys.stdin.read()
    os._exit(1)  # nobody waits for it any more


if __name__ == "__main__":
    main()
