"""Numbers and lines of the deep linear network's scan over learning rates, on losses made up for it."""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest

from bnbook.chapters.deep_linear import Trained
from bnbook.deep_linear import LinearArm

NAN, INF = math.nan, math.inf
RATES = (1e-7, 1e-6, 1e-5)
TAGS = ("lr1e_07", "lr1e_06", "lr1e_05")
#: Share of the loss of answering zero that is left at the end, by rate, two seeds each; NAN: it diverged.
LEFT = {
    "none": ((0.9, 0.8), (0.40, 0.49), (0.30, NAN)),
    "batch": ((0.51, 0.6), (0.2, 0.8), (0.1, 0.2)),
    "l2": ((0.3, 0.3), (0.1, 0.8), (0.4, 0.4)),
}


def member(shares, ends=None):
    """A training whose target has the energies 6, 3 and 1: 10, 4 and 1 are its plateaus."""
    loss = np.array([[10.0, 10.0 * share] for share in shares])
    died = np.where(np.isnan(loss[:, -1]), 7.0, INF)
    run = {"loss": loss, "loss_step": np.tile([0.0, 100.0], (len(loss), 1)), "diverged_at": died}
    run |= {"target_energy": np.array([[6.0, 3.0, 1.0]] * len(loss))}
    run["residual_energy"] = np.array([[3.0, 3.0, 0.1]] * len(loss))
    return Trained(LinearArm(steps=100), run)


@pytest.fixture(scope="module")
def runs():
    found = {f"{tag}.{norm}": member(left) for norm, by in LEFT.items() for tag, left in zip(TAGS, by)}
    normal = {
        f"{tag}.none.normal": member(left) for tag, left in zip(TAGS, ((0.5, 0.5), (NAN, 0.5), (0.5, 0.5)))
    }
    return found | normal


def of_scan(runs, seeds):
    """What the cells make of the scan: numbers of a norm, and the share of all that end on a plateau."""
    names = page_cells.functions("santurkar/deep-linear", runs=runs, rates=RATES, seeds=seeds, pairs=TAGS)
    found = {f"{name}.{norm}": each for norm in LEFT for name, each in names["of_scan"](norm).items()}
    near = page_cells.cell("santurkar/deep-linear", "def plateau(", **names)["on_one"]
    return found | {"plateau_near_all": np.mean(near)}


def test_the_scan_s_numbers(runs):
    found = {name: values.tolist() for name, values in of_scan(runs, 2).items()}
    # √(0.4 · 0.49) = 0.44 is below √(0.3 · 1) = 0.55, for who diverges answers zero; √(0.1 · 0.2) = 0.14
    assert (found["best_rate.none"], found["best_rate.batch"], found["best_rate.l2"]) == (
        [1e-6],
        [1e-5],
        [1e-6],  # √(0.1 · 0.8) = 0.28 is below 0.3, the mean above it
    )
    assert found["final_loss.best.none"] == found["final_loss.scan.none"] == pytest.approx([0.40, 0.49])
    assert found["best_other_loss.none"] == pytest.approx([0.3, 1])  # not the paper's own rate
    assert found["final_loss.best.batch"] == found["best_other_loss.batch"] == pytest.approx([0.1, 0.2])
    assert found["final_loss.scan.batch"] == pytest.approx([0.2, 0.8])
    assert found["useful_rates.none"] == [2, 1] and found["useful_rates.batch"] == [2, 1]
    assert found["largest_stable.none"] == [1e-5, 1e-6] and found["largest_stable.batch"] == [1e-5, 1e-5]
    # on a plateau, 1, 0.4 or 0.1 of the loss: 0.40 without, 0.1 with, of six and six; l2 is not asked
    assert found["plateau_near_all"] == pytest.approx(2 / 12)


def test_the_scan_is_of_the_first_seeds_alone(runs):
    found = of_scan(runs, 1)
    assert found["best_rate.none"].tolist() == [1e-5] and found["final_loss.best.none"].tolist() == [0.3]
    assert found["plateau_near_all"] == pytest.approx(2 / 6)
