"""The runner on Dask: processes that die, that are elsewhere, of another edition, and nobody left behind."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest

from bnbook import results
from bnbook.deep_linear import LinearArm
from bnbook.runs import cluster, train_members
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.first_gamma import ScaleArm
from bnbook.training.probed import ProbedArm

pytestmark = pytest.mark.skipif(os.name == "nt", reason="SIGKILL and SIGINT of one process")

#: A member a stack: a network of another depth is another stack.
QUICK = LinearArm("batch", learning_rate=1e-3, steps=5, depth=2, width=3, examples=10, probe_steps=(0,))
#: Some seconds long, and longer than any test waits.
LONG = replace(QUICK, steps=4_000)
ENDLESS = replace(QUICK, steps=10**8, probe_steps=())
TINY = dict(data="textures-standin", width=1 / 32, steps=3, batch_size=4, train_examples=4, test_examples=4)
SETTINGS = dict(evaluate_every=3, **TINY)


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """A store and a progress file of its own, and no local cluster before and after."""
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("BNBOOK_PROGRESS", str(tmp_path / "said"))
    for name in ("BNBOOK_RESULTS", "BNBOOK_SCHEDULER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(results, "_session", results.Results())
    yield tmp_path
    cluster.end_local()


def same(one, other) -> bool:
    return set(one) == set(other) and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one if name != "seconds"
    )


def soon(condition, seconds: float = 60):
    """What the condition gives as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        time.sleep(0.05)
    return found


def workers_of(process: int) -> list[psutil.Process]:
    """The processes that train under this one."""
    try:
        below = psutil.Process(process).children(recursive=True)
        return [each for each in below if "spawn_main" in " ".join(each.cmdline())]
    except psutil.Error:
        return []


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
