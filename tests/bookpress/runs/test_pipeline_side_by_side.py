"""Chapters side by side: outcomes in order, a failure that stops no other, and nothing left behind."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import tiny_book
from conftest import ROOT, VARIABLES, bnbook

from bookpress.cores import cores

HEAD = tiny_book.CHAPTER[: tiny_book.CHAPTER.index("# A coin")]
WAIT = """
import os, time
until = time.monotonic() + 600
while not os.path.exists(os.environ["SIGN"]):
    assert time.monotonic() < until, "nobody came"
    time.sleep(0.02)
"""


def write(root: Path, **sources: str) -> Path:
    """A book of chapters that hold a parameters cell and one cell each."""
    tiny_book.write(root, ROOT / "_config.yml", claims="[]")
    (root / "book" / "part" / "coin.md").unlink()
    for name, source in sources.items():
        recorded = f"{source}\nfrom bookpress.results import record\nrecord('x', [1.0])"
        cells = ['profile = "smoke"\nseeds = 1', recorded]
        tags = [":tags: [parameters]\n\n", "\n"]
        body = "".join(f"```{{code-cell}} ipython3\n{t}{c}\n```\n\n" for t, c in zip(tags, cells))
        head = HEAD.replace("{tosses: 400, seeds: 5}", "{}").replace("{tosses: 1000, seeds: 5}", "{}")
        (root / "book" / "part" / f"{name}.md").write_text(f"{head}# {name}\n\n{body}")
    files = "".join(f"  - file: part/{name}\n" for name in sources)
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{files}")
    return root


def test_outcomes_come_in_order_and_one_failure_stops_no_other(tmp_path):
    root = write(
        tmp_path / "book",
        slow=WAIT,  # ends only when the next one has run beside it
        quick="import os; open(os.environ['SIGN'], 'w').close()",
        wrong="raise ValueError('no luck')",
        killed="import os; os.kill(os.getppid(), 9)",
        last=f"from bookpress.cores import cores; assert cores() == {max(1, cores() // 2)}",
    )
    done = bnbook("run", "--all", "--jobs", "2", root=root, code=1, alone=True, SIGN=str(tmp_path / "sign"))
    said = [line.split(" in ")[0] for line in done.stdout.splitlines()]
    assert said == ["passed part/slow (smoke)", "passed part/quick (smoke)", "passed part/last (smoke)"]
    failed = [line for line in done.stderr.splitlines() if line.startswith("FAILED")]
    assert [re.split(":| failed", line)[0] for line in failed] == ["FAILED part/wrong", "FAILED part/killed"]
    assert "ValueError: no luck" in done.stderr and "its process was ended" in failed[1]


FOUND = """
import json, os, signal, sys
import random
import matplotlib, numpy, torch
import bnbook, bookpress, bookpress.results
here = os.getcwd()
found = {
    "hash": hash("of a word"),
    "threads": torch.get_num_threads(),
    "style": [str(matplotlib.rcParams), matplotlib.get_backend()],
    "path": [place.replace(here, "") for place in sys.path],
    "packages": [each.__file__.replace(here, "") for each in (bnbook, bookpress, bookpress.results)],
    "environment": sorted(set(os.environ) - {"MATPLOTLIBRC", "TORCHINDUCTOR_CACHE_DIR"}),  # libraries' own
    "folders": [os.environ[name].replace(here, "") for name in ("MPLCONFIGDIR", "IPYTHONDIR")],
    "signals": [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM)],
    "leads its session": os.getsid(0) == os.getpid(),
    "an accelerator was asked before": torch.cuda._is_in_bad_fork(),  # then a copy could not use it
    "drawn": [random.random(), numpy.random.rand(), torch.rand(1, dtype=torch.float64).item()],
}
with open(os.environ["SIGN"] + os.environ["BNBOOK_CHAPTER"].replace("/", "-"), "w") as file:
    json.dump(found, file)
"""


def test_a_kernel_that_is_a_copy_finds_what_a_fresh_one_finds(tmp_path):
    """Side by side kernels are copies of a server with the libraries, alone one is a program of its own."""
    root = write(tmp_path / "book", one=FOUND, two=FOUND)
    (tmp_path / "matplotlibrc").write_text("lines.linewidth: 17\n")  # the user's own
    more = {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc"), "BNBOOK_CORES": "1"}
    bnbook("run", "--all", "--jobs", "1", root=root, alone=True, SIGN=str(tmp_path / "copied-"), **more)
    bnbook("run", "part/one", root=root, alone=True, SIGN=str(tmp_path / "fresh-"), **more)
    copied, other, fresh = (
        json.loads((tmp_path / name).read_text())
        for name in ("copied-part-one", "copied-part-two", "fresh-part-one")
    )
    drawn = [run.pop("drawn") for run in (copied, other, fresh)]
    assert len({each for run in drawn for each in run}) == 9, "nobody gave a seed"
    assert copied == other == fresh
    assert copied["packages"][0].startswith("/code/") and "linewidth: 17" not in copied["style"][0]


def test_bad_input_ends_the_whole_run_with_one_line(tmp_path):
    refuse = "from bnbook.errors import BnbookError; raise BnbookError('no such thing')"
    root = write(tmp_path, good="import time; time.sleep(900)", bad=refuse, never="")
    began = time.monotonic()
    done = bnbook("run", "--all", "--jobs", "2", root=root, code=2, alone=True)
    assert time.monotonic() - began < 600  # on a machine on which everything takes its turn
    ours = [line for line in done.stderr.splitlines() if line.startswith("bnbook:")]
    assert ours == ["bnbook: part/bad: no such thing"]
    assert not list((root / "runs").rglob("*.json"))


def started(root: Path, *words: str, **more) -> subprocess.Popen:
    """The command `run` in a process of its own, as from a shell."""
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    hear = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores it
    command = [sys.executable, "-m", "bnbook", "run", *words]
    more |= {"cwd": root, "env": clean | {"BNBOOK_ROOT": str(root)}, "stderr": -1}
    return subprocess.Popen(command, preexec_fn=hear, **more)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("chapters", [1, 2])
def test_nothing_outlives_a_run_that_is_ended(tmp_path, how, chapters):
    say = "import os, time; open({!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    signs = [tmp_path / "one", tmp_path / "two"][:chapters]
    root = write(tmp_path / "book", **{sign.name: say.format(str(sign)) for sign in signs})
    running = started(root, "--all", "--jobs", "2")
    wait_until(lambda: all(sign.exists() and sign.read_text() for sign in signs))
    children = psutil.Process(running.pid).children(recursive=True)
    assert {int(sign.read_text()) for sign in signs} <= {process.pid for process in children}
    running.send_signal(how)
    said = running.communicate()[1].decode()
    wait_until(lambda: not any(process.is_running() for process in children))
    if how != signal.SIGKILL:
        assert running.returncode == 128 + how and "Traceback" not in said and "ignored" not in said
        assert said.strip().splitlines()[-1].endswith("; what is done stays, and a rerun goes on from it")
        assert not list((root / "runs").rglob("*running*"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is no server")
def test_ctrl_c_while_the_server_of_processes_still_imports_is_one_line(tmp_path):
    running = started(
        write(tmp_path / "book", one="", two=""), "--all", "--jobs", "2", start_new_session=True
    )

    def importing() -> bool:
        children = psutil.Process(running.pid).children()
        servers = [each for each in children if "forkserver" in str(each.cmdline())]
        return any("torch" in each.path for server in servers for each in server.memory_maps())

    wait_until(importing)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    said = running.communicate()[1].decode().strip()
    assert said == "bnbook: interrupted; what is done stays, and a rerun goes on from it"


def test_a_kernel_that_is_starting_tells_nothing_of_its_folder_that_is_gone(tmp_path):
    running = started(write(tmp_path / "book", one=""), "part/one")
    wait_until(lambda: psutil.Process(running.pid).children())
    running.send_signal(signal.SIGTERM)
    said = running.communicate()[1].decode().strip()
    assert said == "bnbook: ended by SIGTERM; what is done stays, and a rerun goes on from it"


def wait_until(true, seconds: float = 600) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)
