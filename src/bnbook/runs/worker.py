"""A training process of its own: `python -m bnbook.runs.worker` reads tasks and trains them into the store.

One JSON line in a task {"key", "arm", "seed", "device", "threads", "code", "sha256"}; JSON lines out
{"steps": n}, {"done": key} or {"error": text, "mendable": bool}. It ends as soon as its input closes, so it
never outlives the process that made it, however that one ends; the store stays whole, because files appear
there in one step.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from functools import lru_cache
from typing import Any, TextIO

from bnbook.errors import BnbookError


def run_task(task: dict[str, Any], tell: Any) -> None:
    """Train one task into the store; tell(n) hears of every n further steps."""
    from bnbook.runs import store
    from bnbook.training.arm import Arm
    from bnbook.training.engine import train
    from bnbook.training.probed import ProbedArm, train_probed

    kind, run = (ProbedArm, train_probed) if "probe_steps" in task["arm"] else (Arm, train)
    arm = kind.from_settings(task["arm"])
    dataset = _dataset(arm.data, task["device"])
    if store.code_fingerprint(kind.__name__) != task["code"] or dataset.identity.sha256 != task["sha256"]:
        raise BnbookError(
            "code or data changed while the chapter ran; expected one edition for all trainings; run again"
        )
    begun = time.perf_counter()
    arrays = run(arm, task["seed"], dataset, device=task["device"], threads=task["threads"], on_steps=tell)
    about = {name: value for name, value in task.items() if name not in ("key", "code")} | {
        "data": dataset.identity.name
    }
    store.write(task["key"], arrays, seconds=time.perf_counter() - begun, about=about)


@lru_cache(maxsize=2)
def _dataset(name: str, device: str) -> Any:
    from bnbook.data import load

    return load(name, device=device)


def main() -> None:
    answers = _own_stdout()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    os.environ.pop("BNBOOK_RESULTS", None)  # the results file is the parent's to write
    tasks: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(tasks,), daemon=True).start()

    def tell(**message: Any) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    while True:
        task = json.loads(tasks.get())
        try:
            run_task(task, lambda steps: tell(steps=steps))
            tell(done=task["key"])
        except BnbookError as error:
            tell(error=str(error), mendable=True)
        except Exception:
            tell(error=traceback.format_exc(), mendable=False)


def _own_stdout() -> TextIO:
    """The real standard output, kept for answers; whatever else prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _listen(tasks: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        tasks.put(line)
    os._exit(0)  # at once, even in the middle of a training: nobody waits for it any more


if __name__ == "__main__":
    main()
