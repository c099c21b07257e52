"""Inputs of nonlinearities against brute force, and their changes in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.models import vgg
from bnbook.probes.activations import EDGES, measure, moment_change


@pytest.fixture
def inputs():
    return torch.randn(12, 3, 32, 32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("norm", ["none", "batch", "noisy", "l1"])
def test_against_brute_force_and_nothing_touched(norm, inputs):
    torch.manual_seed(1)
    model = vgg(width=1 / 32, norm=norm).eval()
    model.relu2.train()  # every module's own mode must come back
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_state = torch.get_rng_state()
    seen = measure(model, inputs, layers=(2, 9), units=(0, 3))
    assert torch.equal(random_state, torch.get_rng_state())
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert model.relu2.training and not model.norm2.training

    model.train()
    x = inputs
    for name, module in model.named_children():  # now with the batch's statistics, one layer after the other
        x = module(x)
        if name in ("norm2", "norm9"):
            place = 0 if name == "norm2" else 1
            for j in range(x.shape[1]):
                unit = (x[:, j]).flatten().detach().double().numpy()
                assert seen.mean[place][j] == pytest.approx(unit.mean(), abs=1e-6)
                assert seen.variance[place][j] == pytest.approx(((unit - unit.mean()) ** 2).mean(), rel=1e-4)
            counts = np.histogram(x[:, 3].flatten().detach().double().numpy(), bins=EDGES)[0]
            np.testing.assert_allclose(seen.histogram[place, 1], counts / counts.sum(), atol=1e-9)


def test_shares_add_up_and_outliers_go_outside(inputs):
    torch.manual_seed(3)
    seen = measure(vgg(width=1 / 32, norm="none"), 1e6 * inputs, layers=(1,), units=range(4))
    assert torch.allclose(seen.histogram.sum(-1), torch.ones(()).double())
    assert (seen.histogram[0, :, 0] + seen.histogram[0, :, -1] > 0.9).all()


def test_moment_change_in_closed_form():
    mean = np.array([[0.0, 0.0, 5.0, 0.0], [1.0, 0.0, 5.0, 2.0]])
    variance = np.array([[1.0, 4.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    shift, spread = moment_change(mean, variance)
    # by unit: one standard deviation; no shift; a dead unit that stays; a dead unit that moves (the bound, 2)
    assert shift == pytest.approx([(1 / np.sqrt(1 + 1 / 4) + 0 + 0 + 2) / 4])
    assert spread == pytest.approx([(0 + 2 * 3 / 5 + 0 + 0) / 4])


def test_moment_change_ignores_the_scale_and_its_denominator_is_the_pooled_deviation():
    draws = np.random.default_rng(0)
    first, second = draws.normal(0.3, 2.0, 100_000), draws.normal(1.5, 1.0, 100_000)
    mean, variance = np.array([[first.mean()], [second.mean()]]), np.array([[first.var()], [second.var()]])
    shift, spread = moment_change(mean, variance)
    assert shift[0] == pytest.approx((second.mean() - first.mean()) / np.concatenate([first, second]).std())
    small = moment_change(mean * 1e-3, variance * 1e-6)
    assert small[0] == pytest.approx(shift) and small[1] == pytest.approx(spread)
    assert np.isnan(moment_change(np.array([[np.nan], [1.0]]), np.ones((2, 1)))[0]).all()
