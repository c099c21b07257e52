"""Weight standardization, its scale, the mean alone and RMS norm against the plain formulas, in float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize

from bnbook.errors import BnbookError
from bnbook.normalizers.per_example import RmsNorm
from bnbook.normalizers.standardized import EPS, RECTIFIED, Affine, WeightStandardization

SHAPES = {0: (6, 5), 2: (6, 5, 3, 4)}


@pytest.fixture(autouse=True)
def _double():
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def drawn(layer):
    with torch.no_grad():
        layer.weight.uniform_(0.5, 2.0)
        layer.bias.normal_()
    return layer


@pytest.mark.parametrize("layer", [nn.Linear(7, 4), nn.Conv2d(3, 4, 3)], ids=["linear", "convolution"])
def test_standardized_weights_have_mean_0_and_length_1(layer):
    layer = layer.double()
    with torch.no_grad():
        layer.weight.add_(5.0)  # what a mean of its own would hide
    v = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", WeightStandardization())
    for unit, row in enumerate(v):
        centred = row - row.mean()
        expected = centred / math.sqrt(row.numel() * float(centred.square().mean()) + EPS)
        torch.testing.assert_close(layer.weight[unit], expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(layer.weight.flatten(1).norm(dim=1), torch.ones(4), rtol=1e-4, atol=0)


def test_a_rectified_unit_times_the_scale_has_variance_1():
    z = torch.linspace(-9, 9, 200_001)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    mean, square = (float(torch.trapezoid(z.clamp(min=0) ** k * density, z)) for k in (1, 2))
    assert math.isclose(RECTIFIED, 1 / math.sqrt(square - mean**2), rel_tol=1e-8)


@pytest.mark.parametrize("dim", SHAPES)
@pytest.mark.parametrize("centred", [False, True])
def test_affine_is_its_formula_and_so_is_its_gradient(dim, centred):
    layer, x = drawn(Affine(5, dim, centred)), torch.randn(SHAPES[dim], requires_grad=True)
    axes = (0, 2, 3)[: dim + 1]
    view = (1, 5, 1, 1)[: dim + 2]
    mean = x.mean(axes, keepdim=True) if centred else 0.0
    plain = RECTIFIED * (layer.weight.view(view) * (x - mean) + layer.bias.view(view))
    torch.testing.assert_close(layer(x), plain, rtol=1e-10, atol=1e-10)
    direction = torch.randn(SHAPES[dim])
    for wanted in (x, layer.weight, layer.bias):
        own, theirs = (
            torch.autograd.grad((y * direction).sum(), wanted, retain_graph=True)[0]
            for y in (layer(x), plain)
        )
        torch.testing.assert_close(own, theirs, rtol=1e-10, atol=1e-10)


def test_the_mean_alone_is_averaged_for_inference():
    layer, average = Affine(5, 2, True), torch.zeros(5)
    for _ in range(4):
        x = torch.randn(SHAPES[2]) + 3
        layer(x)
        average = 0.9 * average + 0.1 * x.mean((0, 2, 3))
    x = torch.randn(SHAPES[2])
    torch.testing.assert_close(layer.eval()(x), RECTIFIED * (x - average.view(1, 5, 1, 1)))


@pytest.mark.parametrize("dim", SHAPES)
def test_rms_norm_is_torchs_without_its_shape(dim):
    layer, x = drawn(RmsNorm(5, dim)), torch.randn(SHAPES[dim], requires_grad=True)
    view = (1, 5, 1, 1)[: dim + 2]
    plain = nn.RMSNorm(SHAPES[dim][1:], eps=1e-5, elementwise_affine=False)(x)
    plain = plain * layer.weight.view(view) + layer.bias.view(view)
    torch.testing.assert_close(layer(x), plain, rtol=1e-10, atol=1e-10)
    own, theirs = (torch.autograd.grad(y.square().sum(), x, retain_graph=True)[0] for y in (layer(x), plain))
    torch.testing.assert_close(own, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layer", [RmsNorm, Affine])
def test_another_shape_is_refused(layer):
    with pytest.raises(BnbookError, match="expected"):
        layer(5, 2)(torch.zeros(2, 5))
