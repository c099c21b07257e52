"""Numbers on their whole way, from an arm to the results file, against its engine called alone.

Runner, store and results file are no part of the fingerprint: what they did to a number no chapter would be stale
for. Here they run in one process, and in another the engine alone, which imports none of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

SEEDS = [2, 0]
ARMS = """
from bnbook.training.arm import Arm
from bnbook.deep_linear.arm import LinearArm
small = dict(width=1 / 32, steps=6, batch_size=16, train_examples=16, test_examples=24, evaluate_every=2)
arms = {
    "vgg": Arm(norm="batch", learning_rate=0.01, data="textures-standin", **small),
    "linear": LinearArm("batch", depth=3, width=4, examples=20, steps=5, learning_rate=1e-3, probe_steps=(0, 4)),
}
"""
ALONE = """
import json, sys
from bnbook.data import load
from bnbook.deep_linear.descent import start as start_linear
from bnbook.training.engine import start as start_vgg
from bnbook.training.numerics import numerics
found = {}
for name, arm in arms.items():
    data = load(arm.data) if name == "vgg" else None
    for seed in json.loads(sys.argv[1]):
        training = (start_vgg if name == "vgg" else start_linear)([(arm, seed)], data, threads=1)
        with numerics(training.device, 1):
            while training.advance():
                pass
            arrays = training.result()
        for key, values in arrays.items():
            found.setdefault(f"{name}.{key}", []).append(values[0].tolist())
assert not {each for each in sys.modules if each.startswith(("bnbook.runs", "bnbook.results", "bnbook.encoding"))}
json.dump(found, sys.stdout)
"""
WHOLE = """
import json, sys
from bnbook.results import record
from bnbook.runs import train_all
seeds = json.loads(sys.argv[1])
for name, arm in arms.items():
    for key, values in train_all([arm], seeds, workers=1)[arm].items():
        record(f"{name}.{key}", values, seeds=seeds)
"""


def run(program: str, seeds: list[int], **places: str) -> str:
    """What a process of its own says that runs a program with these places in its environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BNBOOK_")} | places
    done = subprocess.run(
        [sys.executable, "-c", ARMS + program, json.dumps(seeds)],
        capture_output=True,
        encoding="utf-8",
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def alone():
    return {name: np.array(values) for name, values in json.loads(run(ALONE, SEEDS)).items()}


def test_what_an_engine_gives_stands_in_the_results_file_digit_by_digit(alone, tmp_path):
    for attempt in ("trained", "from the store"):
        file = tmp_path / attempt / "laptop" / "part" / "chapter.json"
        file.parent.mkdir(parents=True)
        run(
            WHOLE, SEEDS, BNBOOK_STORE=str(tmp_path / "store"), BNBOOK_RESULTS=str(file), BNBOOK_CHAPTER="a/b"
        )
        found = json.loads(file.read_text(encoding="utf-8"))
        kind = "ran" if attempt == "trained" else "reused"
        assert found["store"][kind] == 2 * len(SEEDS)
        recorded = {name: entry for name, entry in found["results"].items() if not name.endswith(".seconds")}
        assert recorded.keys() == alone.keys()
        for name, entry in recorded.items():
            assert entry["seeds"] == SEEDS
            values = np.array(entry["values"], dtype=float)
            np.testing.assert_allclose(values, alone[name], rtol=5e-9, err_msg=name)
