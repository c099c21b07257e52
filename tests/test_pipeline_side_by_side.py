"""Chapters side by side: outcomes in order, a failure that stops no other, and nothing left behind."""

from __future__ import annotations

import functools
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import tiny_book
from conftest import ROOT, VARIABLES, bnbook

from bnbook.cores import cores
from bnbook.pipeline.chapters import chapters
from bnbook.pipeline.execution import forked_kernel, side_by_side

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
        cells = [
            'profile = "smoke"\nseeds = 1',
            source + "\nfrom bnbook.results import record\nrecord('x', [1.0])",
        ]
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
        last=f"from bnbook.cores import cores; assert cores() == {max(1, cores() // 2)}",
    )
    done = bnbook("run", "--all", "--jobs", "2", root=root, code=1, SIGN=str(tmp_path / "sign"))
    said = [line.split(" in ")[0] for line in done.stdout.splitlines()]
    assert said == ["passed part/slow (smoke)", "passed part/quick (smoke)", "passed part/last (smoke)"]
    failed = [line for line in done.stderr.splitlines() if line.startswith("FAILED")]
    assert [line.split(":")[0].split(" failed")[0] for line in failed] == [
        "FAILED part/wrong",
        "FAILED part/killed",
    ]
    assert "ValueError: no luck" in done.stderr and "code -9" in failed[1]


LOOK = """import json, os, sys
from pathlib import Path
environment = {name: os.environ.get(name) for name in sorted(os.environ) if not name.startswith("BNBOOK_")}
mine = {"path": sys.path, "cwd": os.getcwd(), "argv": sys.argv[:1], "hash": hash("a"), "env": environment,
        "package": sorted(name for name in sys.modules if name.startswith("bnbook")),
        "witness": [finder.__module__ for finder in sys.meta_path if "Finder" in str(finder)]}
Path(os.environ["SEEN"]).write_text(json.dumps(mine).replace(str(Path.cwd()), "HERE"))"""
MORE = dict.fromkeys(("a", "b", "c", "d"), "")  # so many that kernels are forked
#: What the launcher itself sets, and what is told of cores.
OWN = {"JPY_PARENT_PID", "JPY_SESSION_NAME", "OMP_NUM_THREADS", "SEEN", "COLUMNS", "LINES"}


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux alone")
def test_a_forked_kernel_is_what_a_fresh_one_would_be_and_outlives_no_server(tmp_path):
    """Where the Python that forks is gone its chapter fails, and the next kernel comes from another."""
    end = "import os, signal; os.kill(os.getppid(), signal.SIGKILL); import time; time.sleep(60)"
    sources, seen = MORE | {"end": end, "look": LOOK}, {}
    root, sign = write(tmp_path / "book", **sources), tmp_path / "seen"
    for jobs, named in {"1": ["part/look"], "2": ["--all"]}.items():
        done = bnbook("run", *named, "--jobs", jobs, root=root, SEEN=str(sign), code=int(jobs) - 1)
        seen[jobs] = json.loads(sign.read_text())
        seen[jobs]["env"] = {k: v for k, v in seen[jobs]["env"].items() if k not in OWN}
        sign.unlink()
    assert seen["2"] == seen["1"] and seen["1"]["witness"]
    assert "the kernel died" in done.stderr and done.stderr.count("FAILED") == 1
    assert [line.split()[1] for line in done.stdout.splitlines()] == [
        f"part/{name}" for name in (*MORE, "look")
    ]


def test_a_number_that_an_ended_process_had_says_nothing_of_the_next():
    server = object.__new__(forked_kernel.Server)
    server.heard, server.codes = b"", {}
    server.process = SimpleNamespace(stdout=io.BytesIO(b"started 7\nended 7 3\n"), poll=lambda: None)
    server.hear()
    assert forked_kernel.Forked(server, 7).poll() == 3
    server.process.stdout = io.BytesIO(b"started 7\n")
    assert forked_kernel.Forked(server, 7).poll() is None


def test_bad_input_ends_the_whole_run_with_one_line(tmp_path):
    refuse = "from bnbook.errors import BnbookError; raise BnbookError('no such thing')"
    root = write(tmp_path, good="import time; time.sleep(100)", bad=refuse, never="")
    started = time.monotonic()
    done = bnbook("run", "--all", "--jobs", "2", root=root, code=2)
    assert time.monotonic() - started < 60
    assert [line for line in done.stderr.splitlines() if line.startswith("bnbook:")] == [
        "bnbook: part/bad: no such thing"
    ]
    assert not list((root / "runs").rglob("*.json"))


@pytest.mark.parametrize(("how", "more"), [(signal.SIGINT, {}), (signal.SIGKILL, MORE)])
def test_nothing_outlives_a_run_that_is_ended(tmp_path, how, more):
    say = "import os, time; open({!r}, 'w').write(str(os.getpid())); time.sleep(100)"
    signs = [tmp_path / "one", tmp_path / "two"]
    root = write(tmp_path / "book", **{sign.name: say.format(str(sign)) for sign in signs}, **more)
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "-m", "bnbook", "run", "--all", "--jobs", "2"]
    hear = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores it
    surroundings = clean | {"BNBOOK_ROOT": str(root)}
    running = subprocess.Popen(command, cwd=root, env=surroundings, stderr=-1, preexec_fn=hear)
    wait_until(lambda: all(sign.exists() and sign.read_text() for sign in signs))
    started = psutil.Process(running.pid).children(recursive=True)
    assert {int(sign.read_text()) for sign in signs} < {process.pid for process in started}
    running.send_signal(how)
    said = running.communicate()[1].decode()
    wait_until(lambda: not any(process.is_running() for process in started))
    if how == signal.SIGINT:
        assert running.returncode == 130 and "Traceback" not in said
        assert not list((root / "runs").rglob("*running*"))


def wait_until(true, seconds: float = 600) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_memory_holds_chapters_back(tiny_ran, monkeypatch):
    assert side_by_side.fits(5000, [], 100), "alone a chapter always starts"
    assert side_by_side.fits(500, [400, 100], 1000) and not side_by_side.fits(501, [400, 100], 1000)
    monkeypatch.setenv("BNBOOK_ROOT", str(tiny_ran))
    (chapter,) = chapters.discover()
    assert 10 < side_by_side.expected_mib(chapter, "smoke") < 1000, "what it took last time"
    assert side_by_side.expected_mib(chapter, "paper") == side_by_side.EXPECTED_ELSEWHERE


def test_a_number_of_jobs_below_one_is_refused(tiny):
    assert "--jobs 0; expected at least 1" in bnbook("run", "--all", "--jobs", "0", root=tiny, code=2).stderr
