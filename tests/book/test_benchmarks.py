"""The benchmarks interleave, compare like with like, and say so when a bar is missed."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks import cases, timing
from benchmarks.__main__ import main
from bnbook.data import load
from bnbook.training.arm import Arm
from bnbook.training.engine import train


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((1.15,) * 9, "met"),
        ((1.4,) * 9, "not met"),
        ((1.0,) * 5 + (1.6,) * 4, "met, close"),
        ((1.0,) * 4 + (1.6,) * 5, "not met, close"),
    ],
)
def test_a_bar_is_judged_by_the_median_and_the_interval_holds_it(ratios, verdict):
    ratio = timing.Ratio("x", ratios, 1.15, (0.1, 0.1))
    low, high = ratio.interval
    assert ratio.verdict == verdict and f" {verdict} " in ratio.row()
    assert min(ratios) <= low <= ratio.median <= high <= max(ratios)


def test_pairs_are_interleaved_and_the_warm_up_is_dropped(monkeypatch):
    order, now = [], [0.0]

    def work(name, seconds):
        order.append(name)
        now[0] += seconds if len(order) > 2 else 100 * seconds * len(order)

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    found = timing.compare("x", lambda: work("w", 3.0), lambda: work("b", 2.0), rounds=4, bar=1.0)
    assert "".join(order) == "wbbwwbbwwb"
    assert found.ratios == pytest.approx([1.5] * 4) and found.seconds == pytest.approx((3.0, 2.0))
    assert found.rescaled("y", lambda r: r + 1).median == pytest.approx(2.5)


def test_the_bare_loop_is_the_same_training():
    arm = Arm(norm="batch", data=cases.DATA, width=0.0625, batch_size=8, steps=3, evaluate_every=0)
    dataset = load(cases.DATA)
    assert torch.equal(cases.bare_loop(arm, dataset), torch.from_numpy(train(arm, 0, dataset)["loss"]))


def test_the_command_prints_a_row_for_each_comparison(tmp_path, capsys):
    file = tmp_path / "rounds.json"
    tiny = ["--width", "0.0625", "--batch", "4", "--rounds", "3"]
    assert main(["noisy", *tiny, "--json", str(file)]) == 0
    found, printed = json.loads(file.read_text()), capsys.readouterr().out
    assert found["rows"] and all(row["what"] in printed and row["median"] > 0 for row in found["rows"])
    assert found["gflops"][0] > 0 and "GFLOP/s" in printed and found["threads"] == torch.get_num_threads()


def test_the_eigenvalue_is_that_of_a_second_library():
    pytest.importorskip("curvlinops")  # raises where the two eigenvalues differ
    assert len(list(cases.fisher(cases.Setting(rounds=3), widths=(12, 9, 10), examples=20))) == 2
