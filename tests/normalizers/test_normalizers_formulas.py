"""The written-out transform against autograd, PyTorch's own layer, NumPy and numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.errors import BnbookError
from bnbook.normalizers.formulas import (
    as_rows,
    batch_norm_backward,
    batch_norm_forward,
    population_statistics,
)

D = torch.float64


def setting(m: int = 7, features: int = 3):
    torch.manual_seed(0)
    x = (torch.randn(m, features, dtype=D) * 3 + 1).requires_grad_()
    gamma, beta = torch.rand(features, dtype=D) + 0.5, torch.randn(features, dtype=D)
    return x, gamma.requires_grad_(), beta.requires_grad_()


@pytest.mark.parametrize("eps", [1e-5, 0.7])
def test_outputs_equal_torchs_and_the_six_gradients_autograds_also_of_arrays(eps):
    x, gamma, beta = setting()
    # Mean and variance are steps of their own here, as in the encyclopedia: autograd then gives each.
    mean = x.mean(0)
    variance = ((x - mean) ** 2).mean(0)
    x_hat = (x - mean) / (variance + eps).sqrt()
    y = gamma * x_hat + beta
    loss = (y.sin() * torch.linspace(-1, 2, y.numel(), dtype=D).view(y.shape)).sum()
    (dl_dy,) = torch.autograd.grad(loss, y, retain_graph=True)
    theirs = F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)
    torch.testing.assert_close(batch_norm_forward(x, gamma, beta, eps).y, theirs, rtol=0, atol=1e-10)
    arrays = [each.detach().numpy() for each in (x, gamma, beta)]
    of_arrays = batch_norm_forward(*arrays, eps).y
    assert isinstance(of_arrays, np.ndarray) and np.abs(of_arrays - theirs.detach().numpy()).max() < 1e-10
    ours = batch_norm_backward(dl_dy, x.detach(), gamma.detach(), eps)
    nodes = {"x_hat": x_hat, "gamma": gamma, "beta": beta, "variance": variance, "mean": mean, "x": x}
    assert list(ours) == list(nodes)
    for key, theirs in zip(nodes, torch.autograd.grad(loss, list(nodes.values()))):
        torch.testing.assert_close(ours[key], theirs, rtol=0, atol=1e-10)
        assert theirs.abs().max() > 1e-3
    of_arrays = batch_norm_backward(dl_dy.numpy(), *arrays[:2], eps)
    assert all(np.abs(of_arrays[key] - ours[key].numpy()).max() < 1e-12 for key in ours)


def test_rows_of_feature_maps():
    x = torch.randn(2, 3, 4, 5, dtype=D)
    rows = as_rows(x)
    assert rows.shape == (40, 3) and torch.equal(rows, x.permute(0, 2, 3, 1).reshape(40, 3))
    assert np.array_equal(as_rows(x.numpy()), rows.numpy()) and as_rows(rows) is rows
    y = batch_norm_forward(rows, torch.ones(3, dtype=D), torch.zeros(3, dtype=D)).y
    torch.testing.assert_close(y, as_rows(F.batch_norm(x, None, None, training=True)), rtol=0, atol=1e-10)


def test_population_statistics_equal_torch_running_average():
    batches = [torch.randn(4, 3, 2, 2, dtype=D) + i for i in range(5)]
    layer = torch.nn.BatchNorm2d(3, momentum=None).double()
    for batch in batches:
        layer(batch)
    mean, variance = population_statistics(batches)
    torch.testing.assert_close(mean, layer.running_mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(variance, layer.running_var, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: population_statistics([]),
        lambda: population_statistics([np.ones((1, 2))]),
        lambda: population_statistics([np.ones((3, 2)), np.ones((2, 2))]),
        lambda: batch_norm_forward(np.ones((2, 3, 4, 4)), 1.0, 0.0),
        lambda: batch_norm_backward(np.ones((1, 3)), np.ones((1, 3)), 1.0),
    ],
)
def test_bad_input(call):
    with pytest.raises(BnbookError, match="expected"):
        call()
