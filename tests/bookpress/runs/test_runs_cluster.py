"""The runner on Dask: processes that die, that are elsewhere, of another edition, and nobody left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import tiny_data

import bnbook
from bnbook import trainings
from bnbook.deep_linear import LinearArm
from bnbook.errors import BnbookError
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.first_gamma import ScaleArm
from bnbook.training.probed import ProbedArm
from bookpress import cli, results
from bookpress.pipeline import execution
from bookpress.runs import cluster
from bookpress.runs.runner import train_members

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="SIGKILL and SIGINT of one process"),
    pytest.mark.timeout(2 * 600),
]

QUICK = LinearArm("batch", learning_rate=1e-3, steps=5, depth=2, width=3, examples=10, probe_steps=(0,))
#: Some seconds long; longer than any test waits. A network of another depth is another stack.
LONG = replace(QUICK, steps=4_000)
ENDLESS = replace(QUICK, steps=10**8, probe_steps=())
TINY = dict(data="textures-standin", width=1 / 32, steps=3, batch_size=4, train_examples=4, test_examples=4)
SETTINGS = dict(evaluate_every=3, **TINY)


@pytest.fixture(autouse=True)
def apart(own_store):
    """A store and a progress file of its own, and no local cluster before and after."""
    yield own_store.parent
    cluster.end_local()


def same(one, other) -> bool:
    return set(one) == set(other) and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one if name != "seconds"
    )


def test_two_workers_give_the_numbers_of_one_process(apart, monkeypatch):
    """Every kind of arm; what workers print, however much, does no harm; and each has a bound of memory."""
    members = [
        (Arm("batch", **SETTINGS), 0),
        (ProbedArm("noisy", probe_steps=(0,), landscape=(1.0,), **SETTINGS), 1),
        (ScaleArm(gamma=0.5, evaluate_every=0, **TINY), 0),
        (PhaseArm(hidden=(4,), batch_size=8, steps=6, data="textures-standin", test_examples=10), 2),
        (QUICK, 3),
    ]
    (apart / "loud").mkdir()
    noise = "import os; os.write(2, b'x' * 70_000 + b'\\n'); os.write(1, b'a stray line\\n')"
    (apart / "loud" / "sitecustomize.py").write_text(noise)
    monkeypatch.setenv("PYTHONPATH", f"{apart / 'loud'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("BNBOOK_RESULTS", str(apart / "results.json"))  # this process's alone
    there = train_members(members, workers=2)
    (local,) = cluster._kept
    local.log.seek(0)
    printed = local.log.read()
    assert printed.count(b"x" * 70_000) >= 3 and b"a stray line" in printed
    with cluster.connected(2) as (client, again):
        assert again is local  # the next round finds it there
        bounds = [each["memory_limit"] for each in client.scheduler_info()["workers"].values()]
        assert len(bounds) == 2 and sum(bounds) < psutil.virtual_memory().total
        assert set(client.run(os.getenv, "OMP_NUM_THREADS").values()) == {"1"}
        assert not client.run_on_scheduler(eval, "'torch' in __import__('sys').modules")
    said = (apart / "said").read_text().splitlines()
    assert said[0] == "starting 2 workers" and said[-1].startswith("run 5 of 5 done")
    monkeypatch.setenv("BNBOOK_STORE", str(apart / "other"))
    here = train_members(members, workers=1)
    assert all(same(there[member], here[member]) for member in members)
    assert results.read(apart / "results.json").header["store"]["ran"] == 10


def test_a_local_cluster_is_taken_again_where_it_is_large_enough_and_will_not_just_end(monkeypatch):
    made, process = [], type("Process", (), {"poll": lambda self: None})()

    def make(self, workers: int) -> None:
        self.workers, self.surroundings, self.left = workers, cluster._surroundings(), time.monotonic()
        self.address, self.keys, self.process = "", {}, process
        made.append(workers)

    monkeypatch.setattr(cluster.LocalCluster, "__init__", make)
    monkeypatch.setattr(cluster.LocalCluster, "end", lambda self: None)
    for workers, exactly in ((3, False), (2, False), (3, True), (2, True), (2, False), (3, False)):
        kept = cluster._local(workers, exactly)
    assert made == [3, 2, 3]
    kept.left -= 50  # seconds; it ends after 60, perhaps while it is asked
    assert cluster._local(3, False) is not kept
    with monkeypatch.context() as patched:
        patched.setattr(cluster, "_client", lambda *_: nullcontext())
        cluster._kept[0].left -= 40
        with cluster.connected(3) as (_, kept):
            pass
        assert time.monotonic() - kept.left < 30
    assert made == [3, 2, 3, 3]


def asked_for(where, page: str) -> bytes:
    """What a port answers to who speaks HTTP without more."""
    with socket.create_connection(where, timeout=30) as plain, suppress(ConnectionResetError):
        plain.sendall(f"GET {page} HTTP/1.0\r\n\r\n".encode())
        return b"" if (found := plain.recv(1000))[:4] != b"HTTP" else found
    return b""


def test_nobody_without_its_keys_is_let_in_by_a_local_cluster(apart):
    """At none of the ports that its processes listen at: each speaks TLS and asks for a certificate."""
    with cluster.connected(2) as (_, local):
        inside = [
            psutil.Process(local.process.pid),
            *psutil.Process(local.process.pid).children(recursive=True),
        ]
        asked = {
            c.laddr for each in inside for c in each.net_connections("inet") if c.status == psutil.CONN_LISTEN
        }
        assert len(asked) >= 3 and {where.ip for where in asked} == {"127.0.0.1"}
        for where in asked:
            said = [
                asked_for(where, page)
                for page in ("/", "/json/counts.json", "/info/main/workers.html", "/metrics")
            ]
            if said[0].startswith(b"HTTP"):  # Dask's servers for pages start anyhow: they have none
                assert all(answer.startswith(b"HTTP/1.1 404") for answer in said)
                continue
            assert set(said) == {b""}
            strange = ssl.create_default_context()
            strange.check_hostname, strange.verify_mode = False, ssl.CERT_NONE
            with (
                pytest.raises((ssl.SSLError, ConnectionResetError)),
                socket.create_connection(where, timeout=30) as bare,
                strange.wrap_socket(bare) as wrapped,
            ):
                wrapped.sendall(b"x")
                wrapped.recv(1)  # in TLS 1.3 the refusal comes here
    cluster.end_local()


def lines(apart: Path, words: str) -> list[str]:
    path = apart / "said"
    return [line for line in path.read_text().splitlines() if words in line] if path.exists() else []


#: Seconds that mean "it hangs", also on a machine on which everything takes its turn.
HANGS = 600


def soon(condition):
    """What the condition gives as soon as it is true."""
    end = time.monotonic() + HANGS
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {HANGS} s"
        time.sleep(0.02)
    return found


def workers_of(process: int) -> list[psutil.Process]:
    """The processes that train under this one."""
    found = []
    for each in psutil.Process(process).children(recursive=True):
        with suppress(psutil.Error):
            found += [each] if "spawn_main" in str(each.cmdline()) else []
    return found


def apart_and_here(members, apart, monkeypatch, meanwhile) -> None:
    """The numbers of two workers, to whom something happens meanwhile, are those of this process."""
    monkeypatch.setattr(trainings, "stack_size", lambda arm, device: 1)
    thread = threading.Thread(target=meanwhile, daemon=True)
    thread.start()
    there = train_members(members, workers=2)
    thread.join(1)
    assert not thread.is_alive()
    monkeypatch.setenv("BNBOOK_STORE", str(apart / "other"))
    monkeypatch.delenv("BNBOOK_SCHEDULER", raising=False)
    here = train_members(members, workers=1)
    assert all(same(there[member], here[member]) for member in members)


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted otherwise elsewhere")
def test_workers_keep_the_memory_of_a_step_for_the_next_one():
    def page_faults() -> int:  # of two hundred steps, each of which makes and frees two MiB
        import resource

        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(200):
            np.ones(2**18)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with cluster.connected(1) as (client, _):
        assert client.submit(page_faults).result(timeout=HANGS) < 20_000  # 512 a step where it is handed back


def test_what_killed_workers_did_is_done_again_however_slow_they_come_back(apart, monkeypatch):
    """Dask ends a lost worker's nanny after a while (here 1 s), though it is starting another; after the last
    nanny all tasks would wait for ever."""
    (apart / "site").mkdir()
    slow = f"import os, time\nif os.path.exists({str(apart / 'slow')!r}): time.sleep(3)\n"
    (apart / "site" / "sitecustomize.py").write_text(slow)
    monkeypatch.setenv("PYTHONPATH", f"{apart / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT", "1s")

    def kill_both():
        soon(lambda: lines(apart, "run 0 of"))
        (apart / "slow").touch()
        for process in workers_of(cluster._kept[0].process.pid):
            process.kill()

    apart_and_here([(LONG, seed) for seed in range(2)], apart, monkeypatch, kill_both)


def test_a_task_that_kills_every_worker_is_given_up_with_its_last_words(apart):
    over = threading.Event()

    def kill_all():
        """Again and again: a worker killed before its task began counts for nothing."""
        while not over.is_set():
            before = len(lines(apart, "run 0 of"))
            soon(lambda: over.is_set() or len(lines(apart, "run 0 of")) > before)
            for process in [each for local in cluster._kept for each in workers_of(local.process.pid)]:
                process.kill()

    threading.Thread(target=kill_all, daemon=True).start()
    with pytest.raises(BnbookError, match="3 workers died while .* killed by signal 9"):
        train_members([(ENDLESS, 0), (replace(ENDLESS, depth=3), 0)], workers=2)
    over.set()
    assert not cluster._kept


#: A process that a shell put into the background ignores Ctrl-C, and hands that down.
CALLER = """
import json, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from bnbook.deep_linear import LinearArm
from bookpress.runs.runner import train_members
train_members([(LinearArm.from_settings(each), 0) for each in json.loads(sys.argv[1])], workers=2)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent_and_what_is_finished_stays(apart, how):
    arms = [replace(ENDLESS, depth=3), QUICK]
    command = [sys.executable, "-c", CALLER, json.dumps([arm.settings() for arm in arms])]
    with process(command, start_new_session=True) as caller:
        soon(lambda: list((apart / "store").glob("*.npz")))
        below = psutil.Process(caller.pid).children(recursive=True)
        assert len(workers_of(caller.pid)) == 2
        caller.send_signal(how)
        assert caller.wait(timeout=HANGS) != 0
    gone, alive = psutil.wait_procs(below, timeout=HANGS)
    assert not alive and len(gone) >= 3
    assert len(list((apart / "store").glob("*.npz"))) == 1


@contextmanager
def process(command: list[str], **options) -> Iterator[subprocess.Popen]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **quiet, **options) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def dask(*words: object, **environment: str) -> Iterator[subprocess.Popen]:
    """A process of Dask's command line, as a user starts it on another machine."""
    command = [sys.executable, "-m", "distributed.cli.dask_" + str(words[0]), *map(str, words[1:])]
    command += ["--host", "127.0.0.1", "--no-dashboard"]
    with process(command, env=os.environ | environment) as started:
        yield started


@contextmanager
def elsewhere(apart: Path, monkeypatch, **environment: str) -> Iterator[subprocess.Popen]:
    """A scheduler and a worker that see neither the caller's store nor its data; the scheduler's process."""
    file = apart / "scheduler.json"
    surroundings = {"BNBOOK_STORE": str(apart / "theirs"), "BNBOOK_PROGRESS": ""} | environment
    with (
        dask("scheduler", "--port", 0, "--scheduler-file", file, **surroundings) as scheduler,
        dask("worker", "--scheduler-file", file, "--nthreads", 1, "--no-nanny", **surroundings),
    ):
        soon(lambda: file.exists() and file.read_text().endswith("}"))
        monkeypatch.setenv("BNBOOK_SCHEDULER", json.loads(file.read_text())["address"])
        yield scheduler


#: What the set `mnist` is known to be, in a process of its own, and a checkpoint at each step.
TINY_MNIST = """
import sys
sys.path.insert(0, {tests!r})
import tiny_data
from bnbook.data.identity import describe, known_sets
arrays = tiny_data.make_arrays((1, 28, 28), seed={seed})
from bookpress.runs import checkpoints
checkpoints.EVERY = 0.0
known_sets()["mnist"] |= dict(train=30, test=10, sha256=describe(arrays, 10).sha256, groups=None)
"""
MNIST = PhaseArm(hidden=(4,), batch_size=8, steps=6, data="mnist")


@pytest.mark.parametrize("seed", [1, 2])
def test_workers_elsewhere_find_the_data_themselves_and_refuse_others(apart, monkeypatch, seed):
    """Here the set is four IDX files, there folders of images; its content decides."""
    arrays = [tiny_data.make_arrays((1, 28, 28), seed=each) for each in (1, seed)]
    tiny_data.make_known(monkeypatch, "mnist", arrays[0], md5=tiny_data.md5_of(arrays[0]), groups=None)
    tiny_data.write_idx(apart / "ours", arrays[0])
    tiny_data.write_folders(apart / "data" / "mnist", arrays[1], tuple("0123456789"))
    (apart / "site").mkdir()
    (apart / "site" / "sitecustomize.py").write_text(
        TINY_MNIST.format(tests=str(Path(__file__).parents[2]), seed=seed)
    )
    monkeypatch.setenv("BNBOOK_DATA", str(apart / "ours"))
    monkeypatch.setenv("BNBOOK_CACHE", str(apart / "cache"))
    path = os.pathsep.join([str(apart / "site"), *sys.path])
    theirs = {
        "BNBOOK_DATA": str(apart / "data"),
        "BNBOOK_CACHE": str(apart / "their cache"),
        "PYTHONPATH": path,
    }
    with elsewhere(apart, monkeypatch, **theirs):
        if seed == 1:
            apart_and_here([(MNIST, 0), (QUICK, 1)], apart, monkeypatch, lambda: None)
            assert len(list((apart / "store").glob("*.npz"))) == 2
            assert not list(apart.glob("theirs/*.npz")) and list(apart.glob("their cache/*"))
            soon(lambda: (apart / "theirs").exists() and not list(apart.glob("theirs/*.checkpoint")))
        else:
            with pytest.raises(BnbookError, match="another edition of the data .*worker tcp://"):
                train_members([(MNIST, 0)])


def test_a_worker_with_other_code_refuses(apart, monkeypatch):
    both = Path(bnbook.__file__).parents[1]
    shutil.copytree(both, apart / "theirs", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    changed = apart / "theirs" / "bnbook" / "deep_linear" / "descent.py"
    text = changed.read_text()
    changed.write_text(text.replace("value=-1.0", "value=-0.1"))
    assert changed.read_text() != text
    with (
        elsewhere(apart, monkeypatch, PYTHONPATH=str(apart / "theirs")),
        pytest.raises(BnbookError, match="another edition of the code .*worker tcp://"),
    ):
        train_members([(QUICK, 0)])


def test_a_gone_callers_worker_stops_at_a_checkpoint_and_a_lost_scheduler_is_one_line(apart, monkeypatch):
    monkeypatch.setattr(trainings, "stack_size", lambda arm, device: 1 if arm.depth == 2 else 10**9)
    endless = replace(ENDLESS, depth=3)
    with elsewhere(apart, monkeypatch) as scheduler:
        with process([sys.executable, "-c", CALLER, json.dumps([endless.settings()])]):
            soon(lambda: lines(apart, "steps/s"))
        train_members([(QUICK, 0)])  # the worker is free for others
        assert len(list(apart.glob("theirs/*.checkpoint"))) == 1

        def kill():
            try:
                soon(lambda: lines(apart, "run 1 of 2 done"))
            finally:
                scheduler.kill()  # else the caller would wait for ever

        threading.Thread(target=kill, daemon=True).start()
        with pytest.raises(
            BnbookError, match="lost the Dask scheduler at tcp://.* finished trainings are in"
        ):
            train_members([(QUICK, 1), (endless, 0)])
    assert len(list((apart / "store").glob("*.npz"))) == 2


@pytest.mark.parametrize("address", ["somewhere", "tcp://127.0.0.1:9"])
def test_no_scheduler_is_one_line(apart, monkeypatch, address):
    monkeypatch.setenv("BNBOOK_SCHEDULER", address)
    monkeypatch.setattr(cluster, "ANSWER", 0.5)
    with pytest.raises(
        BnbookError, match=f"no Dask scheduler answers at '{address}' .* unset BNBOOK_SCHEDULER"
    ):
        train_members([(QUICK, 0)])


def test_the_command_line_names_the_cluster(tiny, monkeypatch):
    found = []
    monkeypatch.setenv("BNBOOK_SCHEDULER", "")  # put back at the end
    monkeypatch.setattr(execution, "run", lambda *_: found.append(cluster.scheduler()) or [])
    assert cli.main(["run", "coin", "--scheduler", "tcp://node1:8786"]) == 0
    assert found[0] == "tcp://node1:8786"
