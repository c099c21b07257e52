"""The benchmarks run, interleave, and say so when a bar is missed."""

from __future__ import annotations

import json

import pytest
import torch
from benchmarks import cases, timing
from benchmarks.__main__ import main
from bnbook.data import load
from bnbook.training.arm import Arm
from bnbook.training.engine import train


@pytest.mark.parametrize(("ratios", "verdict"), [((1.0,) * 9, "met"), ((1.4,) * 9, "not met"),
                                                 ((1.0,) * 5 + (1.6,) * 5, "undecided")])  # fmt: skip
def test_a_missed_bar_is_said(ratios, verdict):
    ratio = timing.Ratio("x", ratios, 1.15, (0.1, 0.1))
    low, high = ratio.interval
    assert ratio.verdict == verdict and f" {verdict} " in ratio.row() and low <= ratio.median <= high


def test_pairs_are_interleaved_and_the_warm_up_is_dropped(monkeypatch):
    order, clock = [], iter(range(1000))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(clock)))
    found = timing.compare("x", lambda: order.append("w"), lambda: order.append("b"), rounds=4, bar=1.0)
    assert "".join(order) == "wbbwwbbwwb" and found.ratios == (1.0,) * 4


def test_a_slower_work_has_a_larger_ratio():
    matrix = torch.randn(150, 150)
    found = timing.compare("x", lambda: [matrix @ matrix for _ in range(60)], lambda: matrix @ matrix, rounds=5)
    assert found.median > 5 and timing.peak_rate(64, 2) > 0


def test_the_bare_loop_is_the_same_training():
    arm = Arm(norm="batch", data=cases.DATA, width=0.0625, batch_size=8, steps=3, evaluate_every=0)
    dataset = load(cases.DATA)
    assert torch.equal(cases.bare_loop(arm, dataset), torch.from_numpy(train(arm, 0, dataset)["loss"]))


def test_the_command_prints_a_row_for_each_comparison(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cases, "LENGTHS", (0.5, 1.0))
    file = tmp_path / "rounds.json"
    assert main(["probe", "noisy", "--width", "0.0625", "--batch", "4", "--rounds", "3", "--json", str(file)]) == 0
    rows = json.loads(file.read_text())["rows"]
    printed = capsys.readouterr().out
    assert len(rows) == 6 and all(row["what"] in printed for row in rows) and "GFLOP/s" in printed
    assert all(all(r > 0 for r in row["ratios"]) for row in rows)


@pytest.mark.parametrize("arguments", [["speed"], ["--rounds", "1"], ["--width", "0"]])
def test_bad_usage_is_one_line_and_exit_2(arguments, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
