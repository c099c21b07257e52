"""Trainings by way of the results store: once each, the same whatever they were trained beside."""

from __future__ import annotations

import numpy as np
import pytest

from bnbook.deep_linear import LinearArm, runs
from bnbook.errors import BnbookError

SMALL = dict(steps=5, depth=3, width=4, examples=20, probe_steps=(0, 4))


@pytest.fixture
def empty_store(tmp_path, monkeypatch):
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path))
    monkeypatch.delenv("BNBOOK_RESULTS", raising=False)
    return tmp_path


def arms():
    return [LinearArm(norm, learning_rate=rate, **SMALL) for norm in ("none", "l1") for rate in (1e-4, 1e-3)]


def test_trained_once_and_shared(empty_store, monkeypatch):
    first = runs.train_all(arms(), range(3), workers=1)
    assert len(list(empty_store.glob("*.npz"))) == 12
    monkeypatch.setattr(runs.StackRuns, "train_into_store", None)  # nothing may train now
    again = runs.train_all(arms()[::-1], [2, 0], workers=1)
    for arm, found in again.items():
        assert (
            found["loss"].shape == (2, 6)
            and found["shift_cosine"].shape == (2, 2, 3)
            and (found["seconds"] > 0).all()
        )
        for name, values in found.items():
            np.testing.assert_array_equal(values, first[arm][name][[2, 0]], err_msg=name)


def test_processes_give_the_same_numbers(empty_store, monkeypatch, tmp_path):
    here = runs.train_all(arms()[:2], range(2), workers=1)
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "other"))
    monkeypatch.setitem(runs.STACK, "none", 3)
    there = runs.train_all(arms()[:2], range(2), workers=2)
    for arm, found in there.items():
        for name in set(found) - {"seconds"}:
            np.testing.assert_array_equal(found[name], here[arm][name], err_msg=name)


def test_a_process_that_fails_says_so(empty_store, monkeypatch):
    monkeypatch.setattr(runs.StackRuns, "fingerprint", lambda self: "another edition")
    monkeypatch.setitem(runs.STACK, "none", 2)
    with pytest.raises(BnbookError, match="code changed"):
        runs.train_all(arms()[:2], range(2), workers=2)


def test_stacks_hold_every_member_once():
    members = [(arm, seed) for arm in arms() for seed in range(70)]
    stacks = runs.RUNS.stacks(members, workers=2)
    assert sorted(str(m) for stack in stacks for m in stack) == sorted(str(m) for m in members)
    assert all(len(stack) <= runs.STACK[stack[0][0].norm] for stack in stacks)
    assert all(len({arm.stack_key() for arm, _ in stack}) == 1 for stack in stacks)


def test_key_hangs_on_what_matters():
    arm = arms()[0]
    assert runs.RUNS.key(arm, 0) == runs.RUNS.key(LinearArm.from_settings(arm.settings()), 0)
    assert len({runs.RUNS.key(arm, 0), runs.RUNS.key(arm, 1), runs.RUNS.key(arms()[1], 0)}) == 3
