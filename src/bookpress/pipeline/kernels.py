"""Kernels that begin with what every chapter imports: copies of a process that has imported it."""

from __future__ import annotations

import atexit
import importlib
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback
from importlib.metadata import EntryPoint
from multiprocessing.connection import Connection
from typing import Any

from jupyter_client.provisioning import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

NAME = "bookpress-copied"


class Copy:
    """A copy of this process that waits until it is told to be a kernel; it ends with this process.

    Made while there is one thread. It has the methods of `subprocess.Popen` that a provisioner calls.
    own: the packages that the kernel imports anew, from its own path.
    """

    stdin = stdout = stderr = returncode = None

    def __init__(self, own: list[str]) -> None:
        self._here, there = multiprocessing.Pipe()
        self.pid = os.fork()
        if not self.pid:
            self._here.close()
            _wait_and_become(there, own)
        there.close()

    def become(self, arguments: list[str], environment: dict[str, str], folder: str) -> None:
        self._here.recv()  # it leads a group of its own
        self._here.send((arguments, environment, folder))

    def poll(self) -> int | None:
        if self.returncode is None:
            try:
                done, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has waited for it
                done, status = self.pid, 0
            self.returncode = os.waitstatus_to_exitcode(status) if done else None
        return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.01)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Copied(LocalProvisioner):
    """Makes the waiting copy the kernel."""

    waiting: list[Copy] = []

    async def launch_kernel(self, cmd: list[str], **given: Any) -> dict[str, Any]:
        self.process, self.cwd = self.waiting.pop(), str(given.get("cwd") or os.getcwd())
        environment = given["env"] | {"JPY_PARENT_PID": str(os.getpid())}
        self.process.become(cmd[cmd.index("ipykernel_launcher") + 1 :], environment, self.cwd)
        self.pid = self.pgid = self.process.pid
        return self.connection_info


def copy_this_process(own: list[str]) -> None:
    """The next kernel that this process starts is a copy of it as it is now."""
    Copied.waiting.append(Copy(own))
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = EntryPoint(NAME, f"{__name__}:{Copied.__name__}", factory.GROUP_NAME)
    factory.default_provisioner_name = NAME


def _wait_and_become(there: Connection, own: list[str]) -> None:
    """In the copy, until its end: what a fresh Python would find, but for the libraries that are there already."""
    try:
        os.setsid()
        there.send("ready")
        arguments, environment, folder = there.recv()
        path = sys.path.copy()
        if os.getcwd() in path:  # where the command was given, which `python -m` puts there
            path.remove(os.getcwd())
        os.chdir(folder)
        os.environ.clear()
        os.environ |= environment
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for name in [name for name in sys.modules if name.partition(".")[0] in (*own, "sitecustomize")]:
            del sys.modules[name]
        first = environment["PYTHONPATH"].split(os.pathsep)
        sys.path[:] = [*first, *(place for place in path if place not in first)]
        sys.argv[:] = ["ipykernel_launcher", *arguments]
        _draw_anew()
        importlib.import_module("sitecustomize")
        importlib.import_module("ipykernel.kernelapp").launch_new_instance(argv=arguments)
    except (EOFError, BrokenPipeError):  # no kernel was wanted
        pass
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        os._exit(0)


def _draw_anew() -> None:
    """What draws without a seed draws otherwise in every copy, as it does in every program."""
    random.seed()
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()
    if torch := sys.modules.get("torch"):
        torch.seed()
