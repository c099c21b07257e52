"""The runner in processes of its own and on Dask: they die, are elsewhere, of another edition, and nobody stays behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import tiny_data

import bnbook
from bnbook.deep_linear import LinearArm
from bnbook.errors import BnbookError
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.probes import Probes
from bookpress import atomic, cli, results
from bookpress.pipeline import execution
from bookpress.runs import pool
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
    """A store and a progress file of its own, and no worker before and after."""
    yield own_store.parent
    pool.end_kept()


def same(one, other) -> bool:
    return set(one) == set(other) and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one if name != "seconds"
    )


def variables(_: object) -> list[str | None]:
    """What a worker finds around it."""
    return [os.environ.get(name) for name in ("OMP_NUM_THREADS", "BNBOOK_RESULTS")]


def test_two_workers_give_the_numbers_of_one_process(apart, monkeypatch):
    """Every kind of arm; the next round finds the workers there."""
    members = [
        (Arm("batch", **SETTINGS), 0),
        (Arm("noisy", instruments=Probes(probe_steps=(0,), landscape=(1.0,)), **SETTINGS), 1),
        (Arm("batch", architecture="vgg16", options=(("gamma", 0.5),), evaluate_every=0, **TINY), 0),
        (PhaseArm(hidden=(4,), batch_size=8, steps=6, data="textures-standin", test_examples=10), 2),
        (QUICK, 3),
    ]
    monkeypatch.setenv("BNBOOK_RESULTS", str(apart / "results.json"))  # this process's alone
    before = sys.modules["__main__"].__spec__
    there = train_members(members, workers=2)
    with pool._taken(1) as workers:
        assert workers.made.submit(variables, 0).result(HANGS) == ["1", None]
    assert os.environ["BNBOOK_RESULTS"] and sys.modules["__main__"].__spec__ is before
    with pool._taken(2) as again:
        assert again is workers
    with pool._taken(3) as more:
        assert more is not workers and not any(each.is_alive() for each in workers.processes)
    monkeypatch.setenv("BNBOOK_DEVICE", "cpu")
    with pool._taken(3) as other:
        assert other is not more  # what they took from this process has changed
    said = (apart / "said").read_text().splitlines()
    assert said[0] == "starting 2 workers" and said[-1].startswith("run 5 of 5 done")
    monkeypatch.setenv("BNBOOK_STORE", str(apart / "other"))
    here = train_members(members, workers=1)
    assert all(same(there[member], here[member]) for member in members)
    assert results.read(apart / "results.json").header["store"]["ran"] == 10


def test_workers_without_work_end(apart, monkeypatch):
    monkeypatch.setattr(pool, "IDLE", 0.1)
    with pool._taken(1) as workers:
        pass
    soon(lambda: not workers.processes[0].is_alive())


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
    monkeypatch.setattr(LinearArm, "stack_size", lambda arm, device: 1)
    thread = threading.Thread(target=meanwhile, daemon=True)
    thread.start()
    there = train_members(members, workers=2)
    thread.join(1)
    assert not thread.is_alive()
    monkeypatch.setenv("BNBOOK_STORE", str(apart / "other"))
    monkeypatch.delenv("BNBOOK_SCHEDULER", raising=False)
    here = train_members(members, workers=1)
    assert all(same(there[member], here[member]) for member in members)


def page_faults() -> int:  # of two hundred steps, each of which makes and frees two MiB
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        np.ones(2**18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are counted otherwise elsewhere")
def test_workers_keep_the_memory_of_a_step_for_the_next_one():
    with pool._taken(1) as workers:
        found = workers.made.submit(page_faults).result(timeout=HANGS)
    assert found < 20_000  # 512 a step where it is handed back


def kill_workers(apart: Path, over: threading.Event, times: int) -> None:
    """Each time once a training has begun."""
    for _ in range(times):
        before = len(lines(apart, "run 0 of"))
        soon(lambda: over.is_set() or len(lines(apart, "run 0 of")) > before)
        for process in [] if over.is_set() else workers_of(os.getpid()):
            process.kill()


def test_what_killed_workers_did_is_done_again(apart, monkeypatch):
    kill = lambda: kill_workers(apart, threading.Event(), 1)
    apart_and_here([(LONG, 0), (LONG, 1)], apart, monkeypatch, kill)


def test_where_the_last_worker_is_killed_too_it_is_one_line(apart):
    over = threading.Event()
    thread = threading.Thread(target=kill_workers, args=(apart, over, 2), daemon=True)
    thread.start()
    with pytest.raises(BnbookError, match=r"was ended in the middle \(perhaps memory.*run again to go on"):
        train_members([(ENDLESS, 0), (replace(ENDLESS, depth=3), 0)], workers=2)
    over.set()
    thread.join(HANGS)
    assert not pool._kept and not workers_of(os.getpid())


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
    site = TINY_MNIST.format(tests=str(Path(__file__).parents[2]), seed=seed)
    atomic.write_text(apart / "site" / "sitecustomize.py", site)
    monkeypatch.setenv("BNBOOK_DATA", str(apart / "ours"))
    monkeypatch.setenv("BNBOOK_CACHE", str(apart / "cache"))
    theirs = {"BNBOOK_DATA": str(apart / "data"), "BNBOOK_CACHE": str(apart / "their cache")}
    theirs["PYTHONPATH"] = os.pathsep.join([str(apart / "site"), *sys.path])
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
    monkeypatch.setattr(LinearArm, "stack_size", lambda arm, device: 1 if arm.depth == 2 else 10**9)
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
    monkeypatch.setattr(pool, "ANSWER", 0.5)
    with pytest.raises(
        BnbookError, match=f"no Dask scheduler answers at '{address}' .* unset BNBOOK_SCHEDULER"
    ):
        train_members([(QUICK, 0)])


def test_the_command_line_names_the_cluster(tiny, monkeypatch):
    found = []
    monkeypatch.setenv("BNBOOK_SCHEDULER", "")  # put back at the end
    monkeypatch.setattr(execution, "run", lambda *_: found.append(pool.scheduler()) or [])
    assert cli.main(["run", "coin", "--scheduler", "tcp://node1:8786"]) == 0
    assert found[0] == "tcp://node1:8786"
