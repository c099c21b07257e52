"""The results store and the pool: nothing twice, nothing lost, nothing half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from bnbook import results
from bnbook.data import known_identity
from bnbook.errors import BnbookError
from bnbook.runs import pool, store
from bnbook.runs.pool import train_all
from bnbook.runs.progress import Progress, duration
from bnbook.training.arm import Arm

ARM = Arm(
    norm="none",
    width=1 / 32,
    steps=3,
    batch_size=4,
    data="textures-standin",
    evaluate_every=3,
    train_examples=4,
    test_examples=4,
)


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("BNBOOK_CHAPTER", "part/chapter")
    monkeypatch.delenv("BNBOOK_RESULTS", raising=False)
    return tmp_path / "store"


@pytest.fixture
def trained(monkeypatch):
    """The seeds trained since the test began."""
    seeds, run = [], pool.run_task

    def spy(task, tell):
        seeds.append(task["seed"])
        run(task, tell)

    monkeypatch.setattr(pool, "run_task", spy)
    return seeds


def test_what_is_done_is_not_done_again(trained, own_store):
    first = train_all([ARM], range(2), workers=1)[ARM]
    again = train_all([ARM], range(3), workers=1)[ARM]
    assert trained == [0, 1, 2]
    assert first["loss"].shape == (2, 3) and again["loss"].shape == (3, 3)
    assert all(np.array_equal(first[name], again[name][:2], equal_nan=True) for name in first)
    assert len(list(own_store.iterdir())) == 3


def test_time_is_booked_to_the_chapter_that_ran_it(own_store, monkeypatch):
    monkeypatch.setattr(results, "_session", results.Results())
    run = train_all([ARM], [0], workers=1)[ARM]
    monkeypatch.setenv("BNBOOK_CHAPTER", "part/other")
    assert train_all([ARM], [0], workers=1)[ARM]["seconds"] == run["seconds"] > 0
    with np.load(next(own_store.iterdir())) as file:
        meta = json.loads(str(file["meta"]))
    assert meta["chapter"] == "part/chapter" and meta["seconds"] == run["seconds"][0]
    booked = results.current().header["store"]
    assert (booked["ran"], booked["reused"]) == (1, 1)


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:200] + b"\0\0\0\0" + b[204:]]
)
def test_a_damaged_file_is_noticed_and_made_again(trained, own_store, damage):
    whole = train_all([ARM], [0], workers=1)[ARM]
    path = next(own_store.iterdir())
    path.write_bytes(damage(path.read_bytes()))
    again = train_all([ARM], [0], workers=1)[ARM]
    assert trained == [0, 0] and np.array_equal(whole["loss"], again["loss"])


def test_key_names_all_that_the_numbers_rest_on():
    def key(arm=ARM, seed=0, sha256="a", device="cpu", threads=1):
        return store.key(arm, seed, sha256, device, threads)

    changed = [key(seed=1), key(sha256="b"), key(device="cuda"), key(threads=2)]
    changed += [
        key(replace(ARM, learning_rate=0.2)),
        key(replace(ARM, norm="batch")),
        key(replace(ARM, width=0.5)),
    ]
    assert len({key(), *changed}) == 1 + len(changed)
    assert key(replace(ARM, data="another-name")) == key()  # the content of the data counts, not the name


KILLED = """
import os, signal, sys
from bnbook.runs import store
from bnbook.training.arm import Arm
from bnbook.runs.pool import train_all
import json
write = store.write
def once(*arguments, **options):
    write(*arguments, **options)
    os.kill(os.getpid(), signal.SIGKILL)
store.write = once
train_all([Arm.from_settings(json.loads(sys.argv[1]))], range(3), workers=1)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_kill_9_loses_no_finished_seed(trained, own_store):
    command = [sys.executable, "-c", KILLED, json.dumps(ARM.settings())]
    ended = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=120)
    assert ended.returncode == -9 and len(list(own_store.iterdir())) == 1
    (own_store / ".half.npz.part").write_bytes(b"PK")  # what a kill during a write leaves behind
    assert train_all([ARM], range(3), workers=1)[ARM]["loss"].shape == (3, 3)
    assert trained == [1, 2]


def test_interrupt_keeps_what_is_done(own_store, monkeypatch):
    run = pool.run_task

    def interrupted(task, tell):
        if task["seed"] == 1:
            raise KeyboardInterrupt
        run(task, tell)

    monkeypatch.setattr(pool, "run_task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_all([ARM], range(3), workers=1)
    assert len(list(own_store.iterdir())) == 1


def test_two_processes_give_the_numbers_of_one(own_store, monkeypatch, tmp_path):
    monkeypatch.setenv("BNBOOK_PROGRESS", str(tmp_path / "progress"))
    monkeypatch.setenv("BNBOOK_RESULTS", str(tmp_path / "results.json"))  # the workers must leave it alone
    monkeypatch.setattr(results, "_session", results.Results())
    apart = train_all([ARM], range(2), workers=2)[ARM]
    lines = (tmp_path / "progress").read_text().splitlines()
    assert lines[-1].startswith("run 2 of 2 done")
    monkeypatch.setenv("BNBOOK_STORE", str(own_store) + "2")
    here = train_all([ARM], range(2), workers=1)[ARM]
    assert all(np.array_equal(apart[name], here[name], equal_nan=True) for name in here if name != "seconds")
    assert results.read(tmp_path / "results.json").header["device"] == {"name": "cpu", "threads": 1}


def test_a_worker_ends_with_its_parent_and_says_what_was_wrong():
    command = [sys.executable, "-m", "bnbook.runs.worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as worker:
        task = {
            "key": "k",
            "arm": ARM.settings() | {"data": "no-such-data"},
            "seed": 0,
            "device": "cpu",
            "threads": 1,
            "code": store.code_fingerprint(),
            "sha256": known_identity(ARM.data).sha256,
        }
        worker.stdin.write(json.dumps(task) + "\n")
        worker.stdin.flush()
        answer = json.loads(worker.stdout.readline())
        assert answer["mendable"] and "no-such-data" in answer["error"]
        for part in ("code", "sha256"):  # an edition other than the one that the key was made for
            worker.stdin.write(json.dumps(task | {"arm": ARM.settings(), part: "other"}) + "\n")
            worker.stdin.flush()
            answer = json.loads(worker.stdout.readline())
            assert answer["mendable"] and "changed while the chapter ran" in answer["error"]
        long = task | {"arm": ARM.settings() | {"steps": 10**6, "evaluate_every": 0}}
        worker.stdin.write(json.dumps(long) + "\n")
        worker.stdin.flush()
        assert "steps" in json.loads(worker.stdout.readline())  # it is training
        worker.stdin.close()
        assert worker.wait(timeout=20) == 0


def test_a_dead_worker_is_one_line(monkeypatch):
    monkeypatch.setattr(
        pool, "sys", type("S", (), {"executable": "/bin/false" if os.name != "nt" else sys.executable})
    )
    with pytest.raises((BnbookError, OSError), match="training process ended|Broken pipe|Invalid"):
        train_all([ARM], range(2), workers=2)


def test_progress_line_and_time_left(tmp_path, monkeypatch):
    monkeypatch.setenv("BNBOOK_PROGRESS", str(tmp_path / "lines"))
    progress = Progress(runs=2, steps=1000, interval=0.0)
    progress.advance(100)
    progress.finish_run(missing_steps=400)  # diverged after 100 of 500
    assert progress.line(elapsed=10.0) == "run 1 of 2 done, 10 steps/s, 50 s left"
    assert len((tmp_path / "lines").read_text().splitlines()) == 2
    assert (duration(40), duration(150), duration(7500)) == ("40 s", "2 min", "2 h 5 min")


def test_progress_says_nothing_into_a_run_that_nobody_follows(monkeypatch, capfd):
    monkeypatch.setenv("BNBOOK_RESULTS", "somewhere")
    monkeypatch.delenv("BNBOOK_PROGRESS", raising=False)
    progress = Progress(1, 10, interval=0.0)
    progress.advance(10)
    progress.close()
    assert capfd.readouterr() == ("", "")
