"""How far the formula for the largest eigenvalue reaches: starts of equation 43, exact facts, dense twins."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.chapters.reach import eigenvalue, outcome_model, outside_the_bounds
from bnbook.errors import BnbookError
from bnbook.meanfield import Convolutional, FullyConnected, solve
from bnbook.meanfield.two_places import start_two_places_from
from bnbook.models import cnn, mlp

CONV = Convolutional((3, 32, 32), (30, 60, 90))


def test_gradients_of_two_places_are_proportional_to_their_start():
    from_one = solve(CONV, "batch", [1.0, 2.0])
    half, nothing = (start_two_places_from(start, from_one) for start in (0.5, 0.0))
    assert np.allclose(half.q_tilde_ab_xy[1:3], from_one.q_tilde_ab_xy[1:3] / 2)
    by_hand = sum(
        fan_in * nothing.q_tilde_xy[l] * ((places - 1) * nothing.q_hat_ab_xy[l - 1] + nothing.q_hat_xy[l - 1])
        if places > 1
        else fan_in * nothing.q_tilde_xy[l] * nothing.q_hat_xy[l - 1]
        for l, (fan_in, places) in enumerate(zip(CONV.fan_in, CONV.positions[1:]), start=1)
    )
    assert np.allclose(nothing.lambda_max, by_hand, rtol=1e-12)
    full = [theory.lambda_max_full - theory.lambda_max for theory in (from_one, half, nothing)]
    assert np.allclose(full[1], (full[0] + full[2]) / 2) and (full[0] > full[2]).all()
    assert np.allclose(start_two_places_from(1.0, from_one).lambda_max, from_one.lambda_max)
    dense = solve(FullyConnected((7, 9, 3)), "batch")
    assert start_two_places_from(0.0, dense).lambda_max_full == dense.lambda_max_full
    with pytest.raises(BnbookError, match="printed"):
        start_two_places_from(0.0, solve(CONV, "batch", equations="corrected"))


def test_equations_4_and_6_hold_and_the_second_at_the_optimum_only():
    found = outcome_model(5)
    assert found["equation_4"] < 1e-12 and found["equation_6"] < 1e-12 and found["elsewhere"] > 0.01


def test_equation_147_is_tight_enough_to_be_broken_by_a_wrong_rounding():
    assert not outside_the_bounds(2, 200).any()
    assert outside_the_bounds(2, 200, rounding=-0.5).all()


@pytest.mark.parametrize(
    ("architecture", "image"),
    [(FullyConnected((12, 8, 7, 3)), (12,)), (Convolutional((2, 9, 9), (4,)), (2, 9, 9))],
)
def test_eigenvalue_is_that_of_a_dense_jacobian(architecture, image):
    x = torch.randn(6, *image, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(4)
    if isinstance(architecture, FullyConnected):
        network = mlp(architecture.widths, "batch", "meanfield", gamma=1.5).train()
    else:
        network = cnn(image, architecture.channels, norm="batch", gamma=1.5).train()
    weights = [p for p in network.parameters() if p.ndim >= 2]
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(f, weights, retain_graph=True)])
        for f in network(x)[:, 0]
    ]
    jacobian = torch.stack(rows).double().numpy()
    expected = np.linalg.eigvalsh(jacobian @ jacobian.T / len(x))[-1]
    assert eigenvalue(architecture, "batch", x, 4, gamma=1.5) == pytest.approx(expected, rel=1e-3)


def test_the_two_sides_of_equations_4_and_6_are_computed_apart():
    """Two ways to the same matrix differ by rounding; a matrix and itself would not."""
    for seed in range(3):
        found = outcome_model(seed)
        assert 0 < found["equation_4"] < 1e-12 and 0 < found["equation_6"] < 1e-12


def test_an_eigenvalue_a_hundredth_too_small_or_too_large_breaks_a_bound(monkeypatch):
    """Of one gradient both bounds are its square: whatever is not the eigenvalue itself lies outside."""

    eigvalsh, rng, single = np.linalg.eigvalsh, np.random.default_rng(3), []
    for _ in range(200):
        m, n = rng.integers(1, 9, size=2)
        rng.standard_t(2, size=(m, n)), rng.normal(size=n), rng.choice([0.0, 1.0, 10.0])
        single.append(m == 1)
    assert sum(single) > 10
    for factor in (0.99, 1.01):
        monkeypatch.setattr(np.linalg, "eigvalsh", lambda a, f=factor: f * eigvalsh(a))
        assert outside_the_bounds(3, 200)[single].all()
