"""Numbers and lines of the deep linear network's scan over learning rates, on losses made up for it."""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest

from bnbook.chapters import deep_linear
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


def test_lines_over_the_rates(runs):
    found = {
        f"final_loss.{name}": np.nan_to_num(each.run["loss"][:, -1] / 10, nan=1)
        for name, each in runs.items()
    }
    found |= {f"diverged.{name}": np.isnan(each.run["loss"][:, -1]) * 1.0 for name, each in runs.items()}
    lines = deep_linear.rate_points(found, {"none": RATES, "l2": RATES[:1]})
    np.testing.assert_allclose(lines["loss.none"][0, 1], np.sqrt([0.72, 0.196, 0.3]))
    assert lines["diverged.none"].tolist() == [[0, 0, 0.5]] and lines["loss.l2"].shape == (1, 3, 1)
    plateau = page_cells.functions("santurkar/deep-linear")["plateau"]
    places = deep_linear.plateau_points(deep_linear.of_each(plateau, runs), runs, RATES, 2)
    assert places["rank.none"].tolist()[0] == [0, 1, 1] and np.isnan(places["rank.none"][1, 2])
    assert places["near.none"].tolist() == [[0, 1, 0], [0, 0, 0]]
    np.testing.assert_allclose(places["left.batch"], [[0.5, 1, 0.1]] * 2)


def test_effects_are_left_out_where_most_of_those_with_it_diverged():
    found = {
        f"{name}.{tag}.{norm}": np.full(2, 1.0)
        for name in deep_linear.EFFECTS
        for tag in TAGS
        for norm in LEFT
    }
    found |= {f"diverged.{tag}.{norm}": np.zeros(2) for tag in TAGS for norm in LEFT}
    found["loss_range.lr1e_07.none"] = np.array([2.0, 8.0])  # ratios of 2 and 8: 4, and T ln 2 to either side
    found["diverged.lr1e_06.batch"], found["diverged.lr1e_05.batch"] = np.ones(2), np.array([0.0, 1.0])
    found["diverged.lr1e_05.none"], found["smoothness.lr1e_05.batch"] = np.ones(2), np.array([1.0, 0.0])
    points = deep_linear.effect_points(found, RATES)
    wide = math.exp(12.706205 * math.log(2))
    np.testing.assert_allclose(points["loss_range"][0, :, 0], [4 / wide, 4, 4 * wide], rtol=1e-5)
    assert np.isnan(points["loss_range"][0, :, 1]).all() and points["loss_range"][0, 1, 2] == 1
    assert np.isnan(points["smoothness"][0, :, 2]).all() and points["hollow"].tolist() == [[0, 0, 1]]
    assert set(points) == {"hollow", "final_loss", "loss_range", "gradient_change", "smoothness"}


def test_what_a_depth_makes_is_a_geometric_mean_and_two_medians():
    found = {}
    for norm in ("none", "batch"):
        for end, values in (
            ("", [0.1, 0.4, 0.2]),
            (".depth2", [0.1, 0.1, 0.1]),
            (".depth9", [0.5, 0.5, 4.0]),
        ):
            found |= {
                f"{name}.lr1e_06.{norm}{end}": np.array(values) for name in ("final_loss", "cosine", "edge")
            }
    points = deep_linear.depth_points(found, [1e-6], [2, 5, 9], 5)
    np.testing.assert_allclose(points["final_loss.lr1e_06.none"], [[0.1, 0.2, 1.0]])
    for name in ("cosine", "edge"):
        assert points[f"{name}.lr1e_06.batch"].tolist() == [[0.1, 0.2, 0.5]]
