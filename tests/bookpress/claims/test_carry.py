"""Claims are carried over to changed cells where two runs gave the same numbers, and nowhere else."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from bnbook.errors import BnbookError
from bookpress.claims import chapter_claims, locks

ROOT = Path(__file__).resolve().parents[3]
NAME = "mean-field/rank"  # any published chapter that is fresh: its run is the old and the new one


@pytest.fixture
def carry(monkeypatch):
    spec = importlib.util.spec_from_file_location("carry", ROOT / "scripts" / "carry.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(locks, "append", WRITTEN.extend)
    WRITTEN.clear()
    return module.carry


WRITTEN: list[dict] = []


def test_what_reads_another_number_is_not_carried(carry, tmp_path):
    old = ROOT / "executed" / "laptop" / f"{NAME}.json"
    content = json.loads(old.read_text())
    everything = {claim.id for claim in chapter_claims(NAME)}
    assert set(carry(NAME, old, old)) == everything
    (line,) = WRITTEN
    assert line["event"] == "carried" and line["was"] == line["now"] and "on seeds 100 to 119" in line["why"]

    name = "power.gap"
    content["results"][name]["values"][0] *= 1 + 1e-12
    new = tmp_path / "new.json"
    new.write_text(json.dumps(content))
    left = {claim.id for claim in chapter_claims(NAME) if name in claim.result_names()}
    assert left and set(carry(NAME, old, new)) == everything - left
    del content["results"]["power.square"]
    new.write_text(json.dumps(content))
    left |= {claim.id for claim in chapter_claims(NAME) if "power.square" in claim.result_names()}
    assert set(carry(NAME, old, new)) == everything - left


@pytest.mark.parametrize(("part", "key"), [("parameters", "seeds"), ("fingerprint", "code")])
def test_runs_of_other_settings_or_other_code_prove_nothing(carry, tmp_path, part, key):
    old, new = ROOT / "executed" / "laptop" / f"{NAME}.json", tmp_path / "new.json"
    content = json.loads(old.read_text())
    content[part][key] = 7 if part == "parameters" else "0" * 64
    new.write_text(json.dumps(content))
    with pytest.raises(BnbookError, match="other parameters" if part == "parameters" else "other code"):
        carry(NAME, old, new)
    assert not WRITTEN
