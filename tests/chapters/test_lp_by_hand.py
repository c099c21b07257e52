"""Bands, theory's worst column and the numbers of the chapter on other norms, on numbers small enough to work out on
paper."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import page_cells
import pytest
import torch
from made_up_runs import middle

from bnbook.chapters import lp_norms, shared
from bnbook.chapters.shared import furthest_from_one
from bnbook.deep_linear import LinearArm
from bnbook.normalizers import make_normalizer
from bnbook.probes.activations import EDGES

CELLS = page_cells.functions("santurkar/lp-norms")
NAN, INF = math.nan, math.inf
T2, T5 = 12.706205, 2.776445  # Student's t at 97.5 % with one and with four degrees of freedom


def test_bands_are_of_means_of_geometric_means_and_of_quarters():
    low, center, high = shared.arithmetic(np.array([[1.0], [3.0]]))[0, :, 0]
    assert (low, center, high) == pytest.approx((2 - T2, 2, 2 + T2))  # s / √2 = 1
    low, center, high = shared.geometric(np.array([[1.0, 1.0], [math.e, -1.0]]))[0].T[0]
    assert (low, center, high) == pytest.approx(tuple(math.exp(0.5 + k * T2 / 2) for k in (-1, 0, 1)))
    assert shared.geometric(np.array([[1e250], [1e250]]))[0, 1, 0] == shared.LARGEST == 1e200
    none = shared.geometric(np.array([[1.0, 0.0, -1.0, NAN, INF], [4.0] * 5]))[0, 1]
    assert none[0] == pytest.approx(2) and np.isnan(none[1:]).all()
    assert shared.quartiles([[INF], [1e250]])[0, 1] == shared.LARGEST
    one_to_five = np.array([[3.0], [1.0], [5.0], [4.0], [2.0]])
    assert shared.quartiles(one_to_five)[0, :, 0].tolist() == [2, 3, 4]
    uneven = np.array([[0.0], [0.0], [1.0], [10.0]])  # a quarter of the way from 0 to 1 and from 1 to 10 ...
    assert shared.quartiles(uneven)[0, :, 0].tolist() == [0, 0.5, 3.25]
    assert shared.quartiles(np.array([[7.0], [NAN], [9.0]]))[0, :, 0].tolist() == [7.5, 8, 8.5]
    half = T5 * math.sqrt(2.5 / 5)  # variance of 1 to 5 is 2.5
    np.testing.assert_allclose(shared.arithmetic(one_to_five)[0, :, 0], [3 - half, 3, 3 + half], rtol=1e-6)


def test_the_worst_column_is_that_whose_interval_reaches_furthest_from_one():
    still = np.array([[0.8, 1.15, 1.0]] * 2)
    assert furthest_from_one(still).tolist() == [0.8, 0.8]
    assert furthest_from_one(np.array([[0.9, 1.15, 1.0]] * 2)).tolist() == [1.15, 1.15]
    loose = still + np.array([[0, 0, 0.1], [0, 0, -0.1]])  # about one, but T2 / 10 to either side
    assert furthest_from_one(loose).tolist() == [1.1, 0.9]


def test_average_norms_and_division_by_that_of_what_was_not_centred():
    """Of a unit with the values 1 and 3: mean |x| = 2, mean x² = 5, max |x| = 3; left is ∓1 over it."""
    values = torch.tensor([[3.0, 1.0], [-4.0, 1.0]], dtype=torch.float64)
    for norm, sizes in {"l1": [3.5, 1], "l2": [math.sqrt(12.5), 1], "linf": [4, 1]}.items():
        assert CELLS["size"](values, norm).tolist() == pytest.approx(sizes)
    x = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    for norm, over in {"l1": 2, "l2": math.sqrt(5), "linf": 3, "batch": 1}.items():
        found = CELLS["normalized"](norm, x, eps=1e-14)
        assert found[:, 0].tolist() == pytest.approx([-1 / over, 1 / over])


SKEWED = torch.from_numpy(np.random.default_rng(3).gamma(2.0, 1.0, (4000, 3)) - [[0.0, 1.0, 2.0]])


def test_the_l2_output_shrinks_by_the_mean_in_standard_deviations():
    ratio = SKEWED.mean(0) / SKEWED.std(0, correction=0)
    y = make_normalizer("l2", 3, 0, eps=1e-14).double()(SKEWED).detach()
    torch.testing.assert_close(y.square().mean(0).sqrt(), 1 / (1 + ratio**2).sqrt(), rtol=0, atol=1e-9)


def test_no_normalizer_changes_the_shape_and_all_fix_the_first_moment():
    standard = (SKEWED - SKEWED.mean(0)) / SKEWED.std(0, correction=0)
    for name in ("batch", "l1", "l2", "linf"):
        y = make_normalizer(name, 3, 0, eps=1e-14).double()(SKEWED).detach()
        assert y.mean(0).abs().max() < 1e-12
        torch.testing.assert_close((y - y.mean(0)) / y.std(0, correction=0), standard, rtol=0, atol=1e-9)


def test_a_loss_over_the_training_is_the_geometric_mean_over_its_steps():
    """1, then e⁻² over two steps and e⁻⁶ at the fourth: the areas under the logarithm are -2 and -8."""
    run = {"loss": 2 * np.exp([[0.0, -2.0, -6.0]]), "target_energy": np.array([[1.0, 1.0]])}
    run["loss_step"] = np.array([[0, 2, 4]])
    found = CELLS["mean_loss"](LinearArm(steps=4, reduction="sum"), run)
    assert found == pytest.approx(math.exp(-10 / 4))


def test_shapes_and_moments_over_the_checkpoints():
    """Three checkpoints, one layer of three units: of two points with p and q the skewness is
    (q - p)/√(pq), the excess kurtosis 1/(pq) - 6."""
    p = np.array([[0.1, 0.2, 0.3], [0.6, 0.7, 0.4], [0.8, 0.15, 0.35]])
    places = np.array([[110, 112, 114], [111, 115, 119], [112, 118, 124]])
    rows = np.zeros((3, 3, len(EDGES) - 1))  # p in a bin and the rest three below
    for e, u in np.ndindex(3, 3):
        rows[e, u, places[e, u] + np.array([0, 3])] = 1 - p[e, u], p[e, u]
    run = {"histogram": rows[None, :, None]}
    run |= {"variance_4": np.array([[[1.0, 2.0], [8.0, 3.0], [5.0, 6.0]]])}
    run |= {"variance_5": np.array([[[4.0], [2.0], [7.0]]])}
    run |= {"mean_4": np.array([[[-4.0, 4.0], [9.0, 9.0], [9.0, 9.0]]])}
    run |= {"mean_5": np.array([[[5.0], [9.0], [9.0]]])}
    found = {name: values.item() for name, values in CELLS["shapes"](run, (4, 5)).items()}
    q = 1 - p
    assert found["skewness"] == pytest.approx(np.median(abs(q - p) / np.sqrt(p * q)))
    assert found["kurtosis"] == pytest.approx(np.median(abs(1 / (p * q) - 6)))
    points = (EDGES[1:] + EDGES[:-1]) / 2
    away = []
    for row in rows.reshape(9, -1):
        normal = NormalDist(row @ points, math.sqrt(row @ (points - row @ points) ** 2))
        away.append(max(abs(sum(row[: k + 1]) - normal.cdf(EDGES[k + 1])) for k in range(100, 130)))
    assert found["normal_distance"] == pytest.approx(sorted(away)[4])
    units = np.log([[1, 2, 4], [8, 3, 2], [5, 6, 7]])  # the layers side by side
    spreads = [np.subtract(*np.quantile(row, [0.84, 0.16])) / 2 for row in units]
    assert found["variance_spread"] == pytest.approx(np.median(spreads))
    assert found["variance_spread_start"] == pytest.approx(spreads[0])
    assert (found["variance_start"], found["variance_end"]) == (2, 6)
    assert found["mean_at_start"] == 4  # of 4, 2.83 and 2.5
    below = np.cumsum(rows, axis=-1)
    moved = (abs(below[1:] - below[:-1])[..., :-1] * np.diff(points)).sum(-1)
    assert found["distance_moved"] == pytest.approx(np.median(moved))


def test_ranks_are_by_means():
    ranks = CELLS["ranks"]([np.array([5.0, 1.0]), np.array([4.0, 4.0]), np.array([1.0, 1.0])])
    assert ranks.tolist() == [1, 2, 0]


def test_moments_of_the_linear_network_between_even_parts():
    """40 steps: every second counts, 1 and 39 do not, nor does the last layer. One unit, which goes from
    mean 0 and deviation 1 to 2 and 3: |2| / √(10/2 + 1), and 2 · 8 / 10; then nothing moves."""
    cells, arm = page_cells.functions("santurkar/lp-norms"), LinearArm(steps=40, depth=2, width=1)
    mean = np.array([[0.0, 9.0, 2.0, 2.0, 7.0]])[..., None, None] * np.ones((1, 1, 2, 1))
    deviation = np.array([[1.0, 9.0, 3.0, 3.0, 7.0]])[..., None, None] * np.ones((1, 1, 2, 1))
    mean[:, :, 1], deviation[:, :, 1] = 5.0, 5.0
    run = {"probe_step": np.array([[0, 1, 2, 4, 39]]), "handed_on_mean": mean}
    run["handed_on_deviation"] = deviation
    np.testing.assert_allclose(cells["moved"](arm, run)[:, 0], [[2 / math.sqrt(6), 0], [1.6, 0]])
    seen = {name: np.array([[1.0, 2.0, 4.0, 8.0, 16.0]]) for name in lp_norms.MEASURES}
    cells |= {"loss_share": lambda *_: np.array([[1.0, 0.7, 0.3]]), "diverged": lambda *_: np.array([0.0])}
    cells["landscape"] = lambda *_: seen
    found = {name: values.item() for name, values in cells["linear_numbers"](arm, run).items()}
    assert (found["final_loss"], found["diverged"]) == (0.3, 0)
    expected = middle(seen["smoothness"][0], 0, 39, probes=(0, 1, 2, 4, 39))
    for name in lp_norms.MEASURES:
        assert found[name] == expected and found[f"log_{name}"] == pytest.approx(math.log(expected))
    assert found["mean_change"] == pytest.approx(1 / math.sqrt(6))  # the middle of two
    assert found["variance_change"] == pytest.approx(0.8)
    with np.errstate(all="raise"):
        lost = cells["linear_numbers"](arm, run | {"handed_on_deviation": np.full_like(deviation, INF)})
    assert np.isnan(lost["variance_change"]).all()
    np.testing.assert_allclose(cells["lived"]([[[1, 2], [NAN, 9]], [[NAN, NAN]] * 2]), [2, NAN])
