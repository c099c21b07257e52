"""A training that is killed anywhere and run again is the uninterrupted one, to the last bit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from bnbook.data import load
from bnbook.deep_linear import LinearArm
from bnbook.errors import BnbookError
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.probes import Probes
from bookpress.runs import checkpoints, kinds, store
from bookpress.runs.runner import train_all

VGG = dict(data="textures-standin", width=1 / 32, steps=7, batch_size=16)
VGG |= dict(evaluate_every=3, train_examples=8, test_examples=8)
LINEAR = dict(steps=9, depth=2, width=3, examples=10, probe_steps=(0, 4, 8))
#: How each kind of training stops and goes on: tests/training/test_training_resumed.py.
STACKS = {
    "probed, noisy": [(Arm("noisy", instruments=Probes(probe_steps=(1, 4), covariate_shift=True), **VGG), 4)],
    "small": [(PhaseArm(hidden=(4,), batch_size=8, steps=9, data="textures-standin", test_examples=9), 2)],
    "linear": [(LinearArm("batch", learning_rate=rate, **LINEAR), 0) for rate in (1e-3, 1e-2, 1e9)],
}


pytestmark = pytest.mark.usefixtures("own_store")


class Killed(BaseException):
    pass


def begin(members):
    return kinds.start(members, load(members[0][0].data) if hasattr(members[0][0], "data") else None)


@pytest.mark.parametrize("name", STACKS)
def test_killed_at_random_steps_it_is_the_uninterrupted_training(name, monkeypatch):
    whole, _ = checkpoints.drive(begin(STACKS[name]), ["whole"], lambda step, begins: True)
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "TOLD", 0.0)
    chance, starts = random.Random(name), []

    def tell(step: int, begins: bool) -> bool:
        if begins:
            starts.append(step)
        elif step > starts[-1] + 1 and chance.random() < 0.5:
            raise Killed  # after the step, before its checkpoint: that step is made again
        return True

    for _ in range(100):
        try:
            found, seconds = checkpoints.drive(begin(STACKS[name]), ["killed"], tell)
            break
        except Killed:
            continue
    assert len(starts) > 2 and starts[0] == 0 and all(np.diff(starts) > 0) and seconds > 0
    assert found.keys() == whole.keys()
    for key in whole:
        assert found[key].dtype == whole[key].dtype and found[key].tobytes() == whole[key].tobytes(), key


def test_nobody_waits_any_more(monkeypatch):
    """The training stops at a checkpoint of that very step."""
    monkeypatch.setattr(checkpoints, "TOLD", 0.0)
    with pytest.raises(checkpoints.Unwanted):
        checkpoints.drive(begin(STACKS["linear"]), ["key"], lambda step, begins: begins or step < 5)
    assert checkpoints.load(["key"])[0]["step"] == 5


def test_a_checkpoint_is_whole_and_its_own_or_none(own_store):
    state = {"w": load("textures-standin").mean, "step": 3, "rows": [{"a": 1.5}], "none": None}
    checkpoints.save(["a", "b"], state, 2.5)
    (path,) = own_store.iterdir()
    found, seconds = checkpoints.load(["a", "b"])
    assert seconds == 2.5 and found["w"].equal(state["w"]) and found["rows"] == state["rows"]
    assert checkpoints.load(["a"]) is None and checkpoints.load(["b", "a"]) is None
    assert checkpoints.stacks_of({"a", "b", "c"}) == [["a", "b"]] and checkpoints.stacks_of({"a"}) == []
    whole = path.read_bytes()
    for head in (b"[" * 10**5, b'{"keys": 5}', b'{"keys": [[1]]}', b"[1]"):
        path.write_bytes(head + b"\n")
        assert checkpoints.load(["a", "b"]) is None and checkpoints.stacks_of({"a", "b"}) == []
    for place in range(0, len(whole), 97):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        loaded = checkpoints.load(["a", "b"])
        assert loaded is None or loaded[0]["w"].equal(state["w"])
    assert "is damaged; its training begins anew" in (own_store.parent / "said").read_text()
    checkpoints.remove(["a", "b"])
    assert checkpoints.load(["a", "b"]) is None
    checkpoints.remove(["a", "b"])


def test_a_checkpoint_that_cannot_be_read_now_stays(own_store, monkeypatch):
    checkpoints.save(["a"], {"step": 3}, 2.5)

    def refused(path, *words):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(type(own_store), "read_bytes", refused)
        patched.setattr(type(own_store), "open", refused)
        with pytest.raises(BnbookError, match="a.checkpoint .*Too many open files"):
            checkpoints.load(["a"])
    assert checkpoints.load(["a"]) == ({"step": 3}, 2.5)


def test_what_nobody_went_on_with_is_swept_away(own_store):
    checkpoints.save(["old"], {}, 0.0)
    (own_store / ".half.part").write_bytes(b"")
    (own_store / "result.npz").write_bytes(b"")
    for path in own_store.iterdir():
        os.utime(path, (1, 1))
    checkpoints.save(["new"], {}, 0.0)
    assert {path.name for path in own_store.iterdir()} == {"new.checkpoint", "result.npz"}


def test_a_full_disk_costs_the_checkpoint_and_not_the_training(monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)

    def full(path, content):
        raise BnbookError("no room")

    monkeypatch.setattr(store, "write_bytes", full)
    found, _ = checkpoints.drive(begin(STACKS["linear"]), ["key"], lambda step, begins: True)
    assert found["loss"].shape == (3, 10) and "no checkpoint: no room" in (tmp_path / "said").read_text()


KILLED = """
import json, sys
from bnbook.deep_linear import LinearArm
from bookpress.runs import checkpoints
from bookpress.runs.runner import train_all
checkpoints.EVERY = 0.0
train_all([LinearArm.from_settings(each) for each in json.loads(sys.argv[1])], [0, 1], workers=1)
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_killed_process_is_gone_on_with(own_store, monkeypatch, tmp_path):
    """The stack that it was, though more is asked for since; and nothing is left behind."""
    arms = [LinearArm("batch", learning_rate=rate, **LINEAR | dict(steps=1_500)) for rate in (1e-3, 1e-2)]
    command = [sys.executable, "-c", KILLED, json.dumps([arm.settings() for arm in arms])]
    with subprocess.Popen(command) as killed:
        end = time.monotonic() + 600
        while not list(own_store.glob("*.checkpoint")) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(random.random() / 5)
        killed.kill()
    assert list(own_store.glob("*.checkpoint")) and not list(own_store.glob("*.npz"))
    starts = []
    drive = checkpoints.drive

    def spy(training, keys, tell):
        return drive(training, keys, lambda step, begins: starts.append(step) or True if begins else True)

    monkeypatch.setattr(checkpoints, "drive", spy)
    more = replace(arms[0], learning_rate=2e-3)
    found = train_all([more, *arms], [0, 1, 2], workers=1)
    assert len(starts) == 2 and starts[0] > 0 == starts[1]  # the rest is a stack of its own
    assert not list(own_store.glob("*.checkpoint"))
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "other"))
    whole = train_all([more, *arms], [0, 1, 2], workers=1)
    for arm in whole:
        for name in set(whole[arm]) - {"seconds"}:
            np.testing.assert_array_equal(found[arm][name], whole[arm][name], err_msg=name)


def test_the_seconds_before_a_checkpoint_count(monkeypatch):
    training = begin(STACKS["linear"])
    training.advance()
    checkpoints.save(["key"], training.state(), 1000.0)
    _, seconds = checkpoints.drive(begin(STACKS["linear"]), ["key"], lambda step, begins: True)
    assert 1000 < seconds < 1100


def test_no_training_is_in_two_stacks():
    for keys in (["a", "b"], ["a"], ["b"], ["c"]):
        checkpoints.save(keys, {}, 0.0)
    found = checkpoints.stacks_of({"a", "b", "c"})
    assert sorted(sum(found, [])) == ["a", "b", "c"]
