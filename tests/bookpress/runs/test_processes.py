"""Whatever a command starts ends with it, however it is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from conftest import ROOT

HEAD = """
import sys, time
from pathlib import Path
import bnbook.book
from bookpress import exits
here = Path(sys.argv[1])
"""
#: What a command does that starts others; each of these leaves a file once it is at work.
WORK = """
import os, time
import bnbook.errors
def work(plan, seed):
    open(f"{plan}/{os.getpid()}.at-work", "w").close()
    time.sleep(900)
"""
STARTS = {
    "the press's pool": """
import workers
from bookpress.cores import pool
def command():
    with pool(2) as made:
        [each.result() for each in [made.submit(workers.work, str(here), seed) for seed in range(2)]]
""",
    "a chapter's pool": """
import workers
from bnbook.chapters.shared import in_processes
def command():
    in_processes(workers.work, str(here), (1, 2), 2)
""",
    "jupyter-book": """
from bookpress.site import build
def command():
    with build._jupyter_book(here, here / "made"):
        (here / "0.at-work").touch()
        time.sleep(900)
""",
}
END = """
if __name__ == "__main__":
    sys.exit(exits.guarded(command, "; what is there stays"))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of one process")
@pytest.mark.parametrize(
    "what, how",
    [
        *(
            (what, how)
            for what in ("the press's pool", "jupyter-book")
            for how in (signal.SIGTERM, signal.SIGKILL)
        ),
        ("a chapter's pool", signal.SIGKILL),  # a run ends its kernel by that
    ],
)
def test_what_a_command_starts_ends_with_it(tmp_path, what, how):
    (tmp_path / "command.py").write_text(HEAD + STARTS[what] + END)
    (tmp_path / "workers.py").write_text(WORK)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (tmp_path / "_config.yml").write_text("title: A book\n")
    (tmp_path / "index.md").write_text("# A page\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    surroundings = os.environ | {"PYTHONPATH": path, "BNBOOK_ROOT": str(ROOT)}
    command = [sys.executable, str(tmp_path / "command.py"), str(tmp_path)]
    running = subprocess.Popen(command, env=surroundings, stderr=subprocess.PIPE, text=True)
    soon(lambda: len([*tmp_path.glob("*.at-work")]) >= 1 + ("pool" in what), running)
    below = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(how)
    said = running.communicate()[1]
    gone, alive = psutil.wait_procs(below, timeout=600)
    assert not alive and gone
    if how == signal.SIGTERM:
        assert running.returncode == 143 and "Traceback" not in said
        assert said.strip().endswith("ended by SIGTERM; what is there stays")


def soon(true, running: subprocess.Popen) -> None:
    until = time.monotonic() + 600
    while not true():
        assert time.monotonic() < until and running.poll() is None
        time.sleep(0.1)
