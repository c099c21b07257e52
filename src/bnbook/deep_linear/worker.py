"""A process that trains one stack into the store: `python -m bnbook.deep_linear.worker`.

One line of JSON in, {"code", "stack": [[settings, seed], ...]}; a line with a number of steps out, now and then. It
ends as soon as its input closes, so it never outlives the process that made it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from bnbook.deep_linear.arm import LinearArm
from bnbook.deep_linear.runs import _code, train_into_store


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    task = json.loads(sys.stdin.readline())
    if task["code"] != _code():
        sys.exit("the code changed while the chapter ran; expected one edition for all trainings")
    threading.Thread(target=_watch, daemon=True).start()
    stack = [(LinearArm.from_settings(settings), seed) for settings, seed in task["stack"]]
    train_into_store(stack, lambda steps: print(steps, flush=True))


def _watch() -> None:
    sys.stdin.read()
    os._exit(1)  # nobody waits for it any more


if __name__ == "__main__":
    main()
