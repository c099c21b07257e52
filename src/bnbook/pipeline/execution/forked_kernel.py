"""Kernels forked from a Python that has imported already what all of them need (`prefork`): of chapters that
run side by side each would spend some six seconds of a core on that.

By hand: the fork server of multiprocessing imports the caller's main module, and with it the package, whose
import by a kernel is watched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import psutil
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from bnbook.pipeline.execution import prefork

NAME = "bnbook-forked"
_server: Server | None = None


def use() -> None:
    """Fork this process's kernels from now on, where the system can; the server starts at once."""
    if sys.platform != "linux":
        return
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = EntryPoint(
        NAME, f"{__name__}:{ForkedKernel.__name__}", KernelProvisionerFactory.GROUP_NAME
    )
    factory.default_provisioner_name = NAME
    _running_server()


class ForkedKernel(LocalProvisioner):
    """A kernel as Jupyter's own provisioner would launch it, but for how its process comes about."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        if cmd[1:2] != ["-m"]:
            return await super().launch_kernel(cmd, **kwargs)
        try:
            self.process = _running_server().fork(
                cmd[2:], kwargs["env"], str(kwargs.get("cwd") or Path.cwd())
            )
        except OSError:  # no server: a process of its own is slower and as good
            return await super().launch_kernel(cmd, **kwargs)
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class Server:
    """The Python that forks, and what it has said of its children."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="bnbook-")
        own = Path(self.folder.name)
        for name in ("sitecustomize.py", "usercustomize.py", "matplotlibrc"):
            (own / name).touch()  # nothing that its user's own sessions start with
        before = filter(None, [os.environ.get("PYTHONPATH")])
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(own), *before]),
            "PYTHONHASHSEED": "0",
            "MPLBACKEND": "agg",
            "MATPLOTLIBRC": str(own / "matplotlibrc"),
        }
        env.pop("PYTHONSTARTUP", None)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        # By its text, for beside the file lie modules that are called as some of Python's own.
        command = [sys.executable, "-c", Path(prefork.__file__).read_text(encoding="utf-8")]
        self.process = subprocess.Popen(command, env=env, cwd=own, **pipes)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.heard, self.codes = b"", {}

    def fork(self, words: list[str], env: dict[str, str], cwd: str) -> Forked:
        """A new process that runs a module with arguments; OSError where the server is gone."""
        order = {"module": words[0], "arguments": words[1:], "env": env, "cwd": cwd}
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        self.codes["new"] = None
        while self.codes["new"] is None:
            if self.process.poll() is not None:
                raise OSError("the fork server is gone")
            time.sleep(0.02)
            self.hear()
        return Forked(self, self.codes.pop("new"))

    def hear(self) -> None:
        """Take in what the server has said since."""
        self.heard += self.process.stdout.read() or b""
        *lines, self.heard = self.heard.split(b"\n")
        for what, pid, *code in (line.decode().split() for line in lines):
            if what == "started":
                self.codes["new"] = int(pid)
                self.codes.pop(int(pid), None)  # a number that an ended process had before
            else:
                self.codes[int(pid)] = int(code[0])


class Forked:
    """A process of the server, as Jupyter handles those that it has started itself."""

    stdin = stdout = stderr = None

    def __init__(self, server: Server, pid: int) -> None:
        self.server, self.pid = server, pid

    def poll(self) -> int | None:
        """Its exit code, None while it runs; 1 where it ended with the server."""
        self.server.hear()
        gone = self.server.process.poll() is not None and not psutil.pid_exists(self.pid)
        return self.server.codes.get(self.pid, 1 if gone else None)

    def wait(self) -> int:
        while (code := self.poll()) is None:
            time.sleep(0.05)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(9)

    def terminate(self) -> None:
        self.send_signal(15)


def _running_server() -> Server:
    global _server
    if _server is None or _server.process.poll() is not None:
        _server = Server()
    return _server
