"""A Python that has imported what every chapter's kernel needs, and forks one for each kernel asked for.

Stands alone, like `witness.py`: it imports nothing of the package, which each kernel imports for itself. A
line on standard input is an order in JSON: module, arguments, environment and folder of a process. Lines on
standard output: "started PID" for each order, "ended PID CODE" once a process is gone. It ends with its
standard input, and the kernels with it, for they look after their parent.
"""

import atexit
import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import sys
import traceback

#: All that takes long and that no chapter's result depends on; torch imports its compiler with the first
#: optimizer.
IMPORTED = ("torch", "torch._dynamo", "matplotlib.pyplot", "scipy.stats", "ipykernel.kernelapp", "IPython")
LOOKS_EVERY = 0.1  # seconds between two looks at which processes have ended


def serve() -> None:
    os.environ["JPY_PARENT_PID"] = str(os.getpid())  # which the kernel's class reads when it is imported
    for name in IMPORTED:
        importlib.import_module(name)
    own = ["", *os.environ["PYTHONPATH"].split(os.pathsep)]
    rest = [place for place in sys.path if place not in own]
    while True:
        ready = select.select([sys.stdin], [], [], LOOKS_EVERY)[0]
        while (ended := gone())[0]:
            say("ended", *ended)
        if not ready:
            continue
        if not (line := sys.stdin.readline()):
            return
        order = json.loads(line)
        if not (pid := os.fork()):
            become(order, rest)
        say("started", pid)


def become(order: dict, rest: list[str]) -> None:
    """In the fork: be what a fresh Python with this environment would be, to its end."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in ((0, os.open(os.devnull, os.O_RDONLY)), (1, 2)):
        os.dup2(stream, number)
    parent = os.environ["JPY_PARENT_PID"]
    os.environ.clear()
    os.environ.update(order["env"] | {"JPY_PARENT_PID": parent})
    os.chdir(order["cwd"])
    before = order["env"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [order["cwd"], *filter(None, before), *rest]
    for name in ("sitecustomize", "usercustomize"):
        sys.modules.pop(name, None)
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    sys.modules["numpy"].random.seed()  # else all forks would draw alike where nothing was seeded
    sys.argv = [order["module"], *order["arguments"]]
    code = 1
    try:
        runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:  # to take all that was imported apart again would take a second
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def gone() -> tuple[int, int]:
    """The next process that has ended, and its exit code (of a signal, less its number); 0 for none."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return 0, 0
    return pid, os.waitstatus_to_exitcode(status) if pid else 0


def say(*words: object) -> None:
    print(*words, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; who orders decides
    serve()
