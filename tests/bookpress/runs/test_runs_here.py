"""The runner in one process: nothing twice, nothing lost, the same numbers whatever trained beside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import bnbook
from bnbook.deep_linear import LinearArm
from bnbook.errors import BnbookError
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bookpress import results
from bookpress.runs import checkpoints, kinds, store
from bookpress.runs.progress import Progress, duration
from bookpress.runs.runner import train_all, train_members

SMALL = dict(steps=5, depth=3, width=4, examples=20, probe_steps=(0, 4))
ARM = LinearArm("batch", learning_rate=1e-3, **SMALL)
PHASE = dict(data="textures-standin", hidden=(8, 6), steps=4, batch_size=16, test_examples=20)
FEW = dict(train_examples=4, test_examples=4, evaluate_every=3)
DEEP = Arm(norm="none", width=1 / 32, steps=3, batch_size=4, data="textures-standin", **FEW)

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture
def trained(monkeypatch):
    """The seeds trained since the test began; `trained.stop` interrupts the training of that one."""

    class Seeds(list):
        stop = None

    seeds, train = Seeds(), kinds.train

    def spy(one, tell):
        own = [seed for _, seed in one["members"]]
        if seeds.stop in own:
            raise KeyboardInterrupt
        seeds.extend(own)
        return train(one, tell)

    monkeypatch.setattr(kinds, "train", spy)
    return seeds


def test_what_is_done_is_not_done_again(trained, own_store):
    first = train_all([DEEP], range(2), workers=1)[DEEP]
    again = train_all([DEEP, DEEP], range(3), workers=1)[DEEP]
    assert trained == [0, 1, 2]
    assert first["loss"].shape == (2, 3) and again["loss"].shape == (3, 3)
    assert all(np.array_equal(first[name], again[name][:2], equal_nan=True) for name in first)
    assert len(list(own_store.iterdir())) == 3
    assert [row["name"] for row in results.current().header["data"]] == ["textures-standin"]


def test_a_session_by_hand_reads_the_store_and_adds_nothing_to_it(trained, own_store, monkeypatch):
    clean = train_all([DEEP], [0], workers=1)[DEEP]["loss"]
    before = sorted(own_store.iterdir())
    monkeypatch.delenv("BNBOOK_CHAPTER")
    monkeypatch.setattr(torch.optim.SGD, "step", lambda self, closure=None: None)
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)  # a checkpoint at each step
    found = train_all([DEEP], range(2), workers=1)[DEEP]["loss"]
    assert trained == [0, 1] and sorted(own_store.iterdir()) == before
    np.testing.assert_array_equal(found[0], clean[0])


def arms():
    return [LinearArm(norm, learning_rate=rate, **SMALL) for norm in ("none", "l1") for rate in (1e-4, 1e-3)]


def test_stacks_are_stored_member_by_member(trained, own_store):
    first = train_all(arms(), range(3), workers=1)
    assert len(list(own_store.glob("*.npz"))) == 12 and len(trained) == 12
    again = train_all(arms()[::-1], [2, 0], workers=1)
    one = train_members([(arms()[1], 2)], workers=1)[arms()[1], 2]
    assert len(trained) == 12
    np.testing.assert_array_equal(one["loss"], first[arms()[1]]["loss"][2])
    for arm, found in again.items():
        assert found["loss"].shape == (2, 6) and (found["seconds"] > 0).all()
        for name, values in found.items():
            np.testing.assert_array_equal(values, first[arm][name][[2, 0]], err_msg=name)


def test_stacks_hold_every_member_once_and_the_slowest_come_first():
    members = [(arm, seed) for arm in arms() for seed in range(70)]
    stacks = kinds.stacks(members, "cpu", workers=2)
    assert sorted(str(m) for stack in stacks for m in stack) == sorted(str(m) for m in members)
    assert all(len(stack) <= stack[0][0].stack_size("cpu") for stack in stacks)
    assert all(len({arm.stack_key() for arm, _ in stack}) == 1 for stack in stacks)
    assert [len(stack) for stack in kinds.stacks([(DEEP, seed) for seed in range(9)], "cpu", 2)] == [1] * 9
    slow, quick = (LinearArm("none", steps=steps, probe_steps=()) for steps in (900, 300))
    found = kinds.stacks([(arm, seed) for arm in (quick, slow) for seed in range(150)], "cpu", 100)
    assert max(map(len, found)) <= 100 and [stack[0][0].steps for stack in found] == [900, 900, 300, 300]


def test_time_is_booked_to_the_chapter_that_ran_it(own_store, monkeypatch):
    run = train_all([ARM], [0], workers=1)[ARM]
    monkeypatch.setenv("BNBOOK_CHAPTER", "part/other")
    named = train_all({"one": ARM, "again": ARM}, [0], workers=1)
    assert named["one"]["seconds"] == named["again"]["seconds"] == run["seconds"] > 0
    with np.load(next(own_store.iterdir())) as file:
        meta = json.loads(str(file["meta"]))
    assert meta["chapter"] == "part/chapter" and meta["seconds"] == run["seconds"][0]
    assert meta["linear_arm"] == json.loads(json.dumps(ARM.settings())) and meta["seed"] == 0
    booked = results.current().header
    assert (booked["store"]["ran"], booked["store"]["reused"]) == (1, 1)
    assert booked["device"] == {"name": "cpu", "threads": 1}


def test_a_stored_training_under_another_key_is_not_taken(trained, own_store):
    other = LinearArm("none", learning_rate=1e-3, **SMALL)
    right = train_all([ARM], [0], workers=1)[ARM]
    (path,) = own_store.iterdir()
    train_all([other], [0], workers=1)
    (wrong,) = set(own_store.iterdir()) - {path}
    path.write_bytes(wrong.read_bytes())
    again = train_all([ARM], [0], workers=1)[ARM]
    assert len(trained) == 3 and np.array_equal(again["loss"], right["loss"])


def test_interrupt_keeps_what_is_done(trained, own_store):
    trained.stop = 1
    with pytest.raises(KeyboardInterrupt):
        train_all([DEEP], range(3), workers=1)
    assert len(list(own_store.iterdir())) == 1


def train(*seeds: int, **edition: str) -> dict:
    """A stack of these seeds as a worker trains it; the caller's edition with changes."""
    kind = kinds.kind_of(ARM)
    one = {"book": "bnbook.book", "kind": kind, "keys": ["k"], "device": "cpu"}
    one |= {
        "edition": kinds.edition(kind, None) | edition,
        "members": [[ARM.settings(), each] for each in seeds],
    }
    return kinds.train(one, lambda *_: True)


@pytest.mark.parametrize("part", kinds.EDITION)
def test_another_edition_is_refused_in_one_line(part):
    with pytest.raises(BnbookError, match=f"another edition of the {part} .*caller's .another one"):
        train(0, **{part: "another one"})


EDITING = """
import os, pathlib
from bnbook.errors import BnbookError
from bnbook.deep_linear import LinearArm
from bnbook.runs import train_all
path = pathlib.Path(__import__("bnbook").__file__).parent / "deep_linear" / "descent.py"
text = path.read_text()
def with_file(content, arm, **more):
    path.write_text(content)
    os.utime(path, (1, 1))
    try:
        found = train_all([arm], [0], workers=1)[arm]["loss"]
        print(found.shape, len(os.listdir(os.environ["BNBOOK_STORE"])))
    except BnbookError as error:
        print(error)
first, second = (LinearArm(steps=2, depth=3, width=4, examples=20, learning_rate=r) for r in (1e-3, 1e-4))
with_file(text.replace("value=-1.0", "value=-2.0"), first)
with_file(text, first)
with_file("# a remark\\n" + text, second)
with_file(text.replace("value=-1.0", "value=-2.0"), second)
"""


def test_code_that_was_edited_since_it_was_imported_trains_nothing(tmp_path):
    """Its numbers would be stored as those of the code on disk."""
    package = tmp_path / "src" / "bnbook"
    both = Path(bnbook.__file__).parents[1]
    shutil.copytree(both, package.parent, ignore=shutil.ignore_patterns("__pycache__"))
    command, path = [sys.executable, "-c", EDITING], {"PYTHONPATH": str(package.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | path, timeout=120)
    edited, back, remark, again = done.stdout.splitlines()
    assert (back, remark) == ("(1, 3) 1", "(1, 3) 2"), done.stderr
    assert "was edited since" in edited and edited == again


def test_a_parser_in_another_thread_does_no_harm(monkeypatch):
    trips, edition = [SystemError("AST constructor recursion depth mismatch")] * 2, kinds.edition

    def tripping(*words):
        if trips and len(words) > 2:  # the worker's, not the caller's
            raise trips.pop()
        return edition(*words)

    monkeypatch.setattr(kinds, "edition", tripping)
    assert train(1)["arrays"]["loss"].shape == (1, 6) and not trips


@pytest.mark.parametrize(
    ("seeds", "workers", "word"),
    [([0], -3, "-3 workers; expected"), ([0], 1, "nothing trains"), ([], 1, "no seeds")],
)
def test_bad_input_is_one_line(seeds, workers, word):
    with pytest.raises(BnbookError, match=word):
        train_all(["no arm"], seeds, workers)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a file on a full disk")
def test_progress_that_cannot_be_written_ends_no_training(monkeypatch, own_store):
    monkeypatch.setenv("BNBOOK_PROGRESS", "/dev/full")
    assert train_all([ARM], [0], workers=1)[ARM]["loss"].shape == (1, 6)


def test_progress_tells_the_speed_from_the_first_step_on(tmp_path, monkeypatch):
    monkeypatch.setenv("BNBOOK_PROGRESS", str(tmp_path / "lines"))
    progress = Progress([500, 500], interval=1e9)
    progress.starting("starting 2 workers")
    progress.tell(0, 0, begins=True)
    progress.tell(0, 1)
    progress.tell(1, 400, begins=True)  # from a checkpoint: made by another process, at no known speed
    progress.tell(0, 100)
    assert progress.line(elapsed=10.0) == "run 0 of 2 done, 10 steps/s, 50 s left"
    assert progress.line(elapsed=1000.0).startswith("run 0 of 2 done, 0.100 steps/s, 83 min left")
    progress.finish(0)  # diverged: 400 steps are not due any more
    assert progress.line(elapsed=10.0) == "run 1 of 2 done, 10 steps/s, 10 s left"
    progress.finish(1)
    progress.tell(0, 500)  # a word that came late
    assert progress.line(elapsed=10.0).endswith(", 0 s left")
    said = (tmp_path / "lines").read_text().splitlines()
    assert said[0] == "starting 2 workers" and "steps/s" not in said[1] and "steps/s" in said[2]
    assert (duration(40), duration(150), duration(7500)) == ("40 s", "2 min", "2 h 5 min")


def test_progress_says_nothing_into_a_run_that_nobody_follows(monkeypatch, capfd):
    monkeypatch.setenv("BNBOOK_RESULTS", "somewhere")
    monkeypatch.delenv("BNBOOK_PROGRESS", raising=False)
    progress = Progress([10], interval=0.0)
    progress.tell(0, 10)
    progress.close()
    assert capfd.readouterr() == ("", "")


ALONE = {
    "batch": ARM,
    "linf": LinearArm("linf", learning_rate=1e-3, **SMALL),
    "fc": PhaseArm(network="fc", **PHASE),
    "conv": PhaseArm(network="conv", **PHASE),
}


@pytest.mark.parametrize("arm", ALONE.values(), ids=ALONE)
def test_a_member_is_bit_identical_alone_and_beside_others(arm, tmp_path, monkeypatch):
    """A unit is its seed: what trains beside it, in a stack or after it, changes no digit."""
    alone = train_all([arm], [1], workers=1)[arm]
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "another"))
    beside = train_all([arm], range(4), workers=1)[arm]
    for name in alone.keys() - {"seconds"}:
        np.testing.assert_array_equal(alone[name][0], beside[name][1], err_msg=name)


SETTINGS = {
    "matrices of bfloat16": lambda: torch.set_float32_matmul_precision("medium"),
    "numbers of 64 bits": lambda: torch.set_default_dtype(torch.float64),
    "autocast": lambda: torch.set_autocast_enabled("cpu", True),
    "no oneDNN": lambda: setattr(torch.backends.mkldnn, "enabled", False),
}


def torch_is() -> tuple:
    said = torch.get_float32_matmul_precision(), torch.get_default_dtype(), torch.is_autocast_enabled("cpu")
    return *said, torch.backends.mkldnn.enabled


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_a_notebook_sets_for_torch_reaches_no_training(setting, tmp_path, monkeypatch):
    before, arms = torch_is(), [DEEP, PhaseArm(network="conv", **PHASE)]
    plain = train_all(arms, [0], workers=1)
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "another"))
    try:
        SETTINGS[setting]()
        meant = torch_is()
        found = train_all(arms, [0], workers=1)
        assert torch_is() == meant != before
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.set_default_dtype(before[1])
        torch.set_autocast_enabled("cpu", before[2])
        torch.backends.mkldnn.enabled = before[3]
    for arm in arms:
        for name in plain[arm].keys() - {"seconds"}:
            np.testing.assert_array_equal(plain[arm][name], found[arm][name], err_msg=name)


def test_a_member_of_a_stack_took_its_share_of_the_time(monkeypatch):
    monkeypatch.setattr(checkpoints, "drive", lambda training, keys, tell: ({"loss": np.zeros((4, 1))}, 20.0))
    assert train(*range(4))["seconds"] == 5.0


def test_trainings_that_are_kept_are_named_in_the_results():
    train_all([ARM], range(2), workers=1, kept=True)
    edition = kinds.edition(kinds.kind_of(ARM), None)
    named = [store.key(kinds.identity(ARM, seed, edition, "cpu")) for seed in range(2)]
    assert results.current().header["store"]["kept"] == named
    train_all([ARM], [2], workers=1)
    assert results.current().header["store"]["kept"] == named


def test_two_names_of_one_data_set_are_one_training_and_each_gets_it(trained, tmp_path, monkeypatch):
    import tiny_data

    made = tiny_data.make_arrays((1, 28, 28), seed=1)
    tiny_data.make_known(monkeypatch, "mnist", made, md5=tiny_data.md5_of(made))
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("BNBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path / "cache"))
    tiny_data.write_idx(tmp_path / "data", made)
    one, other = (PhaseArm(**PHASE | {"data": name, "test_examples": 0}) for name in ("mnist", "mnist-auto"))
    found = train_members([(one, 0), (other, 0), (one, 1)], workers=1)
    assert trained == [0, 1]
    assert np.array_equal(found[one, 0]["loss"], found[other, 0]["loss"])
    assert not np.array_equal(found[one, 0]["loss"], found[one, 1]["loss"])
