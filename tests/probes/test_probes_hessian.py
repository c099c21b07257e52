"""The largest curvature through the batch: against the dense Hessian, against SciPy, and what it refuses."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import nn
from torch.func import functional_call

from bnbook import models
from bnbook.probes.hessian import curvature_along_gradient, largest_curvature

torch.set_num_threads(1)


def smooth(norm, seed=0):
    """A network whose loss has second derivatives everywhere, in float64."""
    torch.manual_seed(seed)
    model = models.mlp((5, 6, 4, 3), norm=norm).double().train()
    for name in [name for name in model._modules if name.startswith("relu")]:
        model._modules[name] = nn.Tanh()
    return model


def batch(seed=1, m=12):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(m, 5, generator=generator, dtype=torch.float64)
    return x, torch.randint(0, 3, (m,), generator=generator)


def dense(model, loss, pair):
    """(P, P), by torch.func on one vector of all parameters; buffers are copies."""
    named = {name: p.detach() for name, p in model.named_parameters()}
    sizes = [p.numel() for p in named.values()]

    def value(flat):
        parts = {n: v.view_as(p) for (n, p), v in zip(named.items(), flat.split(sizes), strict=True)}
        buffers = {n: b.clone() for n, b in model.named_buffers()}
        return loss(functional_call(model, parts | buffers, (pair[0],)), pair[1])

    flat = torch.cat([p.flatten() for p in named.values()])
    return torch.autograd.functional.hessian(value, flat), torch.func.grad(value)(flat)


@pytest.mark.parametrize("norm", ["none", "batch", "l1", "layer"])
@pytest.mark.parametrize("seed", [0, 1])
def test_dense_twin_and_scipy(norm, seed):
    model, pair = smooth(norm, seed), batch(seed + 5)
    found = largest_curvature(model, F.cross_entropy, pair, tolerance=1e-9)
    matrix, g = dense(model, F.cross_entropy, pair)
    assert float(found) == pytest.approx(torch.linalg.eigvalsh(matrix)[-1].item(), rel=1e-9)
    array = matrix.numpy()
    by_scipy = eigsh(LinearOperator(array.shape, lambda v: array @ v), 1, which="LA")[0][0]
    assert float(found) == pytest.approx(by_scipy, rel=1e-8)
    vector = torch.cat([v.flatten() for v in found.vector])
    assert (matrix @ vector - found.value * vector).norm() < 1e-8 * found.value
    form, square = curvature_along_gradient(model, F.cross_entropy, pair)
    assert (form, square) == pytest.approx((float(g @ matrix @ g), float(g @ g)), rel=1e-10)
    assert found.along_gradient == pytest.approx(form / square, rel=1e-10)


def test_signed_largest_is_not_the_largest_in_size():
    model = nn.Linear(2, 1, bias=False).double()

    def saddle(outputs, targets):
        w = model_weights(outputs)
        return 0.5 * (2 * w[0] ** 2 - 7 * w[1] ** 2)

    def model_weights(outputs):  # inputs are the identity, so that the outputs are the weights
        return outputs[:, 0]

    pair = torch.eye(2, dtype=torch.float64), torch.zeros(2)
    assert float(largest_curvature(model, saddle, pair)) == pytest.approx(2.0, rel=1e-6)
