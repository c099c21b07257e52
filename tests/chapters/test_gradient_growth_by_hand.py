"""What the chapter on gradient explosion computes, once each with numbers worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bnbook.chapters import gradient_explosion
from bnbook.chapters.gradient_explosion import (
    ACTIVATIONS,
    Growth,
    activation,
    chain,
    growth,
    linear_growth,
    residual,
    residual_profile,
    zigzag,
)
from bnbook.errors import BnbookError
from bnbook.probes.landscape import along_gradient


def test_all_three_numbers_of_the_linear_network():
    """V = 1 - c = m/(m-1); held constant m/(m-3) · 1/V = (m-1)/(m-3); through the batch (m-2)/(m-3)."""
    for m in (4, 5, 12):
        one = growth("linear", m)
        assert one.spread == pytest.approx(m / (m - 1))
        assert one.constant == pytest.approx((m - 1) / (m - 3))
        assert one.through == pytest.approx((m - 2) / (m - 3)) == pytest.approx(float(linear_growth(m)))
        assert one.of_norm == pytest.approx(math.sqrt((m - 2) / (m - 3)))
        assert growth(lambda x: x**2, m).through == pytest.approx(2 * (m - 1) / (m - 3))  # of degree 2


@pytest.mark.parametrize("m", [None, 6])
def test_gamma_and_beta_stand_inside(m):
    inside = growth(lambda x: torch.tanh(1.7 * x - 0.4), m)
    assert growth("tanh", m, gamma=1.7, beta=-0.4).through == pytest.approx(inside.through, rel=1e-9)


def test_kinks_beyond_the_sphere_are_no_kinks():
    """Over eight values no normalized one exceeds √7 = 2.65: there the zigzag, bent at 2.7, is linear."""
    assert growth("zigzag", 8, kinks=(-2.7, 2.7)).through == pytest.approx(6 / 5, rel=1e-9)
    bent = lambda x: torch.relu(x - 1.3)
    assert growth(bent, 8, panels=160).through == pytest.approx(
        growth(bent, 8, kinks=(1.3,)).through, rel=1e-3
    )


def test_what_growth_refuses():
    for wrong in (3, 2.0, 8.0, "8"):
        with pytest.raises(BnbookError, match="at least 4"):
            growth("tanh", wrong)
    assert growth("tanh", 4).through > 0
    for flat in (torch.zeros_like, torch.ones_like):
        with pytest.raises(BnbookError, match="constant"):
            growth(flat)
    with pytest.raises(BnbookError, match="unknown activation"):
        growth("swash", 8)
    assert growth(lambda x: 1e-3 * x, 8).through == pytest.approx(6 / 5)  # small, and no constant


def test_a_residual_profile_by_hand():
    """V = 3, λ = 2, start ½: factors 1 + 6/3.5 above the second layer and 1 + 6/0.5 above the first."""
    profile = residual_profile(Growth(2.0, 9.0, 3.0), 3, start=0.5)
    assert profile == pytest.approx([13 * (1 + 6 / 3.5), 1 + 6 / 3.5, 1])


def test_the_zigzag_by_hand():
    x = [0.0, 2.0, 2.69, 2.71, 2.725, 2.74, 2.75, 2.76]
    expected = [0.0, 2.0, 2.69, 2.5, 2.2, 2.5, 2.7, 2.5]  # 20 down to 2.2, 20 up to 2.7, and again
    at = torch.tensor(x, dtype=torch.float64)
    assert zigzag(at).tolist() == pytest.approx(expected) and torch.equal(zigzag(-at), -zigzag(at))
    assert activation("zigzag") is zigzag is ACTIVATIONS["zigzag"] and activation(torch.sin) is torch.sin


def test_growth_fits_leave_out_both_ends():
    squares = 2.0 * 1.5 ** -np.arange(9.0)
    squares[[0, 1, -2, -1]] = 1e6, 1e-6, 1e6, 1e-6
    assert gradient_explosion.fitted_growth(squares) == pytest.approx(1.5)
    squares = 2.0 * 3.0 ** -np.arange(4.0)
    squares[[0, -1]] = 7.0
    assert gradient_explosion.fitted_growth(squares, skip=1) == pytest.approx(3.0)
    # Three depths, not on a line: the slope of least squares (1 · ln 4 + 1 · 0) / 2 per layer
    found = gradient_explosion.depth_growth(np.array([[1.0, 9.0, 4.0]]), [1, 2, 3])
    assert found == pytest.approx([2.0])


def test_an_exponential_is_steady_and_a_power_is_not():
    depths = [4, 8, 16, 32]
    first = np.array([1.5 ** np.array(depths), np.array(depths) ** 3.0, [1.0, np.e, 1.0, 1.0 / np.e]])
    # Third row: +1 over 4 layers, then -1 over 16
    assert gradient_explosion.steadiness(first, depths) == pytest.approx([1.0, 0.25, -0.25])


def net(make=chain, **options):
    torch.manual_seed(1)
    return make((5, 6, 6, 10), "tanh", **options)


def test_gradients_of_the_batch():
    inputs, labels = gradient_explosion.gaussian_batch(8, 5, 3)
    model = net()
    expected = torch.autograd.grad(F.cross_entropy(model(inputs), labels), model.linear1.weight)[0].norm()
    assert gradient_explosion.gradients(net(), 8, 3).weight[0] == pytest.approx(expected.item(), rel=1e-5)
    held = gradient_explosion.gradients(net(), 8, 3, "detached").weight[0]
    assert held != pytest.approx(expected.item(), rel=1e-3)


def test_roughness_is_the_worst_of_equal_distances():
    """Distances 1e-4, 1e-3 and 1e-2 of ‖θ‖ whatever the gradient's size; θ is all that is trained."""
    model = net()
    model.linear2.bias.requires_grad_(False)
    batch = gradient_explosion.gaussian_batch(12, 5, 4)
    theta = torch.cat([p.detach().flatten() for p in model.parameters() if p.requires_grad])
    theta = theta.double().norm()
    slope = along_gradient(model, F.cross_entropy, batch, [1.0]).start_norm
    seen = along_gradient(model, F.cross_entropy, batch, [s * theta / slope for s in (1e-4, 1e-3, 1e-2)])
    assert gradient_explosion.roughness(model, 12, 4) == pytest.approx(seen.smoothness.max().item(), rel=1e-4)
    single = along_gradient(model, F.cross_entropy, batch, [0.3 * theta / slope]).smoothness.item()
    assert gradient_explosion.roughness(model, 12, 4, (0.3,)) == pytest.approx(single, rel=1e-4)


@pytest.mark.parametrize("make", [chain, residual])
def test_first_weights(make):
    torch.manual_seed(0)
    model = make((300, 200, 200, 50), sigma_w2=3.0, gamma=0.7)
    linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
    assert [m.weight.shape for m in linears] == [(200, 300), (200, 200), (50, 200)]
    for layer in linears:
        assert layer.weight.var().item() == pytest.approx(3.0 / layer.in_features, rel=0.05)
        assert layer.bias.abs().max() == 0
    gammas = [p for name, p in model.named_parameters() if "norm" in name and name.endswith("weight")]
    assert len(gammas) == 2 and all((p == 0.7).all() for p in gammas)
    torch.manual_seed(0)
    usual = [m for m in make((300, 200, 200, 50)).modules() if isinstance(m, nn.Linear)]
    assert usual[1].weight.var().item() == pytest.approx(2.0 / 200, rel=0.05)
    assert usual[1].bias.abs().max() == 0


def test_biases_and_places_of_a_chain():
    torch.manual_seed(0)
    model = chain((50, 2000, 40, 30, 10), sigma_b2=0.25, normalized={1, 3})
    assert model.linear1.bias.var().item() == pytest.approx(0.25, rel=0.1)
    assert [hasattr(model.get_submodule(f"norm{k}"), "running_mean") for k in (1, 2, 3)] == [
        True,
        False,
        True,
    ]
    for wrong in ([0], [4]):
        with pytest.raises(BnbookError, match="expected numbers from 1 to 3"):
            chain((5, 4, 4, 4, 3), normalized=wrong)
    for wrong in ((6, 5, 4, 3), (6, 3)):
        with pytest.raises(BnbookError, match="equally wide"):
            residual(wrong)
    names = [name for name, _ in residual((6, 5, 5, 5, 3)).named_children()]
    assert names == ["linear1", "block2", "block3", "norm", "act", "readout"]
