"""What the chapters on mean-field theory compare: measured networks beside the equations for their inputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.chapters.mean_field import (
    by_layer,
    independent_directions,
    operations,
    ratios,
    root_mean_square,
    sample_inputs,
    solve_for,
)
from bnbook.meanfield import Convolutional, FullyConnected, solve
from bnbook.models import cnn, mlp
from bnbook.probes.order_parameters import measure

WIDTHS = (6, 9, 8, 7, 3)


@pytest.fixture(scope="module")
def networks():
    return [measure(mlp(WIDTHS, "batch", "meanfield"), torch.randn(12, 6)) for _ in range(3)]


def test_inputs_are_rows_of_the_table_or_noise():
    table = torch.arange(40.0).reshape(20, 2)
    rows = sample_inputs(table, (2,), 3, 8)
    assert len({tuple(row) for row in rows.tolist()}) == 8
    assert all((row == table).all(1).any() for row in rows)
    assert torch.equal(rows, sample_inputs(table, (2,), 3, 8))
    assert not torch.equal(rows, sample_inputs(table, (2,), 4, 8))
    noise = sample_inputs(None, (3, 5), 3, 4000)
    assert noise.shape == (4000, 3, 5) and abs(noise.mean()) < 0.02 and abs(noise.std() - 1) < 0.02


def test_the_equations_start_from_what_the_networks_saw(networks):
    found = solve_for(networks, FullyConnected(WIDTHS), "batch", "corrected", 1.5, 0.2)
    for seed, one in enumerate(networks):
        alone = solve(
            FullyConnected(WIDTHS), "batch", 1.0, 1.5, 0.2, "corrected", 12, one.q_hat[0], one.q_hat_xy[0]
        )
        assert found.q_tilde[:, seed][1:] == pytest.approx(alone.q_tilde[1:], rel=1e-12)
        assert found.lambda_max[seed] == pytest.approx(alone.lambda_max, rel=1e-12)
    printed = solve_for(networks, FullyConnected(WIDTHS), "batch", "printed", 1.5, 0.2)
    assert printed.q.shape == (5, 1) and printed.batch is None


def test_of_maps_the_equations_know_two_places_too():
    shape = Convolutional((2, 7, 7), (4,))
    one = [measure(cnn(shape.image, shape.channels, norm="batch"), torch.randn(6, 2, 7, 7))]
    found = solve_for(one, shape, "batch", "corrected")
    assert found.q_hat_ab_xy[0, 0] == pytest.approx(one[0].q_hat_ab_xy[0])
    # The layer behind the convolution has one place: no column for the letter of two.
    assert ratios(one, found, ["q_ab_xy"], slice(1, None)).shape == (1, 1)


def test_ratios_letter_by_letter(networks):
    theory = solve_for(networks, FullyConnected(WIDTHS), "batch", "corrected")
    found = ratios(networks, theory, ("q", "q_tilde_xy"))
    by_hand = [
        [
            getattr(one, letter)[l] / getattr(theory, letter)[l, s]
            for letter in ("q", "q_tilde_xy")
            for l in (1, 2, 3)
        ]
        for s, one in enumerate(networks)
    ]
    assert found == pytest.approx(np.array(by_hand), rel=1e-12)
    assert by_layer(networks, "lambda_bound").tolist() == [one.lambda_bound for one in networks]


def test_root_mean_square_and_directions():
    assert root_mean_square(np.array([[3.0, 4.0], [0.0, -2.0]])) == pytest.approx([12.5**0.5, 2**0.5])
    x = torch.randn(20_000, 5) * torch.tensor([2.0, 2.0, 2.0, 0.0, 0.0]) + 7
    assert independent_directions(x) == pytest.approx(3, rel=0.01)


def test_operations_by_hand():
    """Of each of ten seeds eight measurements at width 2 and four layers, and so on; of each of thirty two
    narrow networks; each 4 m (weights)."""

    def weights(hidden, depth):
        return 5 * hidden + hidden**2 * (depth - 2) + hidden * 10

    each = 8 * weights(2, 4) * 3 + weights(2, 4) * (9 + 6 + 7) + 2 * weights(6, 5) * 3
    narrow = 2 * (weights(3, 4) + weights(4, 4)) * 3
    assert operations(5, 10, 2, 3, [3, 4], 30, [6, 7], 9, 5, 6) == 4 * (10 * each + 30 * narrow)


def test_correlated_inputs_fill_fewer_directions():
    """Of a unit normal and its own double: one direction. Beside one of its own of variance 5: two."""
    from bnbook.chapters.mean_field import independent_directions

    one = torch.tensor([1.0, -1.0, 1.0, -1.0])
    other = 5**0.5 * torch.tensor([1.0, 1.0, -1.0, -1.0])
    assert independent_directions(torch.stack([one, 2 * one], 1)) == pytest.approx(1)
    assert independent_directions(torch.stack([one, 2 * one, other], 1)) == pytest.approx(2)
