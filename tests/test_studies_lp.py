"""Numbers of the chapter on division by other norms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.chapters import lp_norms, shared
from bnbook.deep_linear import probed_arm, train_stack


def test_division_of_a_unit_that_moves_away_from_zero():
    offsets = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64)
    x = lp_norms.moved_gaussian(offsets)
    np.testing.assert_allclose(x.mean(0), offsets, atol=1e-12)
    for norm in lp_norms.LP:
        found = lp_norms.outputs(norm, x)
        assert found["output_norm"] < 1e-10 and found["centred_norm"] < 1e-10
        assert found["size"][0, 0] == pytest.approx(1) and (np.diff(found["size"][0]) < 0).all()
    np.testing.assert_allclose(lp_norms.outputs("l2", x)["size"][0], 1 / np.sqrt(1 + offsets**2))
    assert set(lp_norms.outputs("batch", x)) == {"deviation"} and lp_norms.l2_from_batch(x) < 1e-4
    rates = lp_norms.matched_rates(1e-6, 1000)
    assert rates["l1"] == pytest.approx(1e-6 * np.pi / 2, rel=1e-2)
    assert rates["linf"] == pytest.approx(1e-6 / lp_norms.largest_of(1000) ** 2, rel=1e-2)
    assert lp_norms.largest_of(1) == pytest.approx(np.sqrt(2 / np.pi), abs=1e-3)


def test_the_linear_network_between_even_parts_of_its_training():
    arm = probed_arm("l1", 1e-6, steps=20, depth=3, examples=30)
    run = train_stack([(arm, 0), (arm, 1)])
    found = lp_norms.linear_numbers(arm, run)
    np.testing.assert_allclose(found["log_smoothness"], np.log(found["smoothness"]))
    still = dict(run) | {f"handed_on_{n}": 0 * run[f"handed_on_{n}"] + 1 for n in ("mean", "deviation")}
    assert (lp_norms.linear_numbers(arm, still)["mean_change"] == 0).all() and (
        found["mean_change"] > 0
    ).all()
    assert lp_norms.moved(arm, run).shape[:2] == (2, 2)
    lost = dict(run) | {"handed_on_deviation": np.full_like(run["handed_on_deviation"], np.inf)}
    with np.errstate(all="raise"):
        assert np.isnan(lp_norms.linear_numbers(arm, lost)["variance_change"]).all()
    better = dict(run) | {"landscape_distance": run["landscape_distance"] / 2}
    assert (lp_norms.smoother((arm, run), (arm, better)) == 1).all()
    np.testing.assert_allclose(lp_norms.lived([[1, np.nan, 3], [np.nan] * 3]), [2, np.nan])


def test_steadiness_ranks_networks():
    moves = {"a": np.array([3.0, 3.2]), "b": np.array([2.0, 2.0]), "c": np.array([1.0, 0.5])}
    fast = {"a": np.array([0.1]), "b": np.array([0.2]), "c": np.array([0.3])}
    assert lp_norms.steadiness(moves, fast) == pytest.approx(1)
    assert lp_norms.steadiness(moves, fast | {"a": np.array([0.9])}) == pytest.approx(-0.5)


def test_bands_bear_what_figures_meet():
    values = np.array([[1.0, 4.0, 0.0], [4.0, 4.0, 1.0], [2.0, np.inf, 1.0]])
    low, middle, high = shared.geometric(values)[0]
    assert middle[0] == pytest.approx(2) and low[0] < 2 < high[0] and np.isnan(middle[1:]).all()
    low, middle, high = shared.arithmetic(values[:, :1])[0]
    assert middle == pytest.approx(7 / 3) and middle - low == pytest.approx(high - middle)
    room = shared.LARGEST * (shared.LARGEST / 1e-30) ** 0.05  # a logarithmic axis has a margin of a twentieth
    assert np.isfinite(room) and shared.quartiles([[np.inf], [1e250]])[0, 1] == shared.LARGEST
    values[:, 2] = np.nan
    np.testing.assert_allclose(shared.quartiles(values)[0, 1], [2, 4, np.nan])
