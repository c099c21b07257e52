"""The probe of the order parameters against loops over pairs and places, and the theory against real networks."""

from __future__ import annotations

from itertools import product
from math import pi

import numpy as np
import pytest
import torch
from torch import nn

from bnbook.errors import BnbookError
from bnbook.meanfield import Convolutional, FullyConnected, solve
from bnbook.models import cnn, mlp
from bnbook.probes.order_parameters import CHUNK, measure


def letters_by_loops(values, units):
    """The three means of one letter of values (m, C, K), by loops over all pairs of inputs and places."""
    m, _, places = values.shape
    a = values.detach().numpy()
    same, pairs, apart = [], [], []
    for (i, p), (j, r) in product(product(range(m), range(places)), repeat=2):
        dot = a[i, :, p] @ a[j, :, r] / units
        if i == j and p == r:
            same.append(dot)
        elif i != j:
            (pairs if p == r else apart).append(dot)
    return np.mean(same), np.mean(pairs), np.mean(apart) if apart else np.nan


@pytest.mark.parametrize("norm, statistics", [("none", "batch"), ("batch", "detached"), ("batch", "batch")])
def test_probe_equals_loops_over_pairs_and_places(norm, statistics):
    torch.manual_seed(3)
    model, h = cnn((2, 7, 11), (4, 5), norm=norm, gamma=1.3).double(), torch.randn(5, 2, 7, 11).double()
    measured = measure(model, h, statistics)
    layers, activations, preactivations = [], [], []
    for layer in model:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            layers.append(layer)
            activations.append(h)
            h = layer(h)
            preactivations.append(h)
        elif norm == "batch" and hasattr(layer, "weight"):
            mean, variance = h.mean((0, 2, 3), keepdim=True), h.var((0, 2, 3), correction=0, keepdim=True)
            if statistics == "detached":
                mean, variance = mean.detach(), variance.detach()
            h = (h - mean) / (variance + layer.eps).sqrt() * layer.weight.view(1, -1, 1, 1)
        else:
            h = layer(h)
    found = torch.autograd.grad(h[:, 0].sum(), [*preactivations, *(layer.weight for layer in layers)])
    for l, units in enumerate((2, 4, 5)):
        z, delta, gradient = preactivations[l], found[l], found[l + 3]
        for letter, values, features, index in (
            ("q_hat", activations[l].reshape(5, units, -1), units, l),
            ("q", z.reshape(5, z.shape[1], -1), z.shape[1], l + 1),
            ("q_tilde", delta.reshape(5, z.shape[1], -1), 1, l + 1),
        ):
            ours = [getattr(measured, f"{letter}{end}")[index] for end in ("", "_xy", "_ab_xy")]
            np.testing.assert_allclose(ours, letters_by_loops(values, features), rtol=1e-9, atol=1e-12)
        assert measured.f[l] == pytest.approx(gradient.square().sum().item() / 25)


@pytest.mark.parametrize("kind", ["fully connected", "padded", "strided"])
def test_weight_gradients_of_many_inputs(kind):
    """More inputs than are held at once; f by autograd, over pairs of different inputs by one pass each."""
    torch.manual_seed(0)
    model, x = mlp((4, 6, 5, 2), init="meanfield").double(), torch.randn(CHUNK + 3, 4).double()
    if kind != "fully connected":
        conv = nn.Conv2d(2, 3, 3, padding=1) if kind == "padded" else nn.Conv2d(2, 3, 2, stride=2)
        model, x = nn.Sequential(conv, nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)).double(), x[:, None, None]
        x = x.expand(-1, 2, 4, 4) + torch.randn(len(x), 2, 4, 4).double()
        model(x)
    seen = measure(model, x)
    weights = [p for p in model.parameters() if p.ndim >= 2]
    each = [torch.autograd.grad(model(one[None])[0, 0], weights) for one in x]
    for layer, gradients in enumerate(zip(*each)):
        rows = torch.stack([gradient.flatten() for gradient in gradients])
        gram, m = rows @ rows.T, len(x)
        assert seen.f[layer] == pytest.approx(gram.mean().item())
        assert seen.f_pairs[layer] == pytest.approx((gram.sum() - gram.trace()).item() / (m * (m - 1)))
    assert seen.lambda_bound == pytest.approx(seen.f.sum())


@pytest.mark.parametrize(
    "model, inputs, statistics, message",
    [
        (mlp((6, 9, 3)), torch.randn(8, 6), "exact", "batch, detached, population"),
        (mlp((6, 9, 3)), torch.randn(1, 6), "batch", "two or more"),
        (nn.ReLU(), torch.randn(8, 6), "batch", "no linear layers"),
        (nn.Linear(6, 3), torch.randn(4, 4, 6), "batch", "no linear layers"),
        (mlp((6, 9, 3), norm="l1"), torch.randn(8, 6), "detached", "not for LpNorm"),
        (
            nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.Conv2d(4, 2, 3)),
            torch.randn(4, 2, 5, 5),
            "batch",
            "grouped",
        ),
    ],
)
def test_what_the_probe_cannot_measure_is_said(model, inputs, statistics, message):
    with pytest.raises(BnbookError, match=message):
        measure(model, inputs, statistics)


IMAGE, CHANNELS, INPUTS = (12, 15, 15), (80, 80), 40


@pytest.mark.parametrize(
    "norm, statistics, equations",
    [
        ("none", "detached", "corrected"),
        ("batch", "detached", "corrected"),
        ("batch", "batch", "through_batch"),
    ],
)
def test_theory_describes_real_convolutional_networks(norm, statistics, equations):
    """Within a few per cent: inputs are independent, and there are 80 channels."""
    seen = []
    for seed in range(6):
        torch.manual_seed(seed)
        model = cnn(IMAGE, CHANNELS, norm=norm, gamma=1.5)
        seen.append(measure(model, torch.randn(INPUTS, *IMAGE), statistics))
    theory = solve(Convolutional(IMAGE, CHANNELS), norm, 1.5, equations=equations, batch=INPUTS)
    mean = lambda name: np.mean([getattr(one, name) for one in seen], axis=0)
    for letter in ("q", "q_xy", "q_ab_xy", "q_hat", "q_hat_xy", "q_tilde", "q_tilde_xy"):
        np.testing.assert_allclose(mean(letter)[1:3], getattr(theory, letter)[1:3], rtol=0.12, err_msg=letter)
    assert mean("lambda_bound") == pytest.approx(theory.lambda_max, rel=0.1)
    printed = solve(Convolutional(IMAGE, CHANNELS), norm, 1.5).lambda_max
    assert printed > 2 * theory.lambda_max, "the printed sum over places counts too much"


def test_pairs_of_places_share_no_gradient():
    torch.manual_seed(0)
    seen = measure(cnn(IMAGE, CHANNELS, norm="batch", gamma=1.5), torch.randn(INPUTS, *IMAGE))
    assert (np.abs(seen.q_tilde_ab_xy) < 0.05 * seen.q_tilde_xy)[1:3].all()


def test_through_the_batch_only_the_last_layer_keeps_a_bound_of_the_width():
    """f of the layers below is of order N/m and grows towards the input by π/(π-1) a layer."""
    widths, inputs, found = (300, 300, 300, 300, 1), 80, []
    for seed in range(6):
        torch.manual_seed(seed)
        orthogonal = torch.linalg.qr(torch.randn(300, inputs))[0].T * 300**0.5  # equal inner products: none
        found.append(measure(mlp(widths, "batch", "meanfield", gamma=1.3), orthogonal, "batch").f)
    theory = solve(FullyConnected(widths), "batch", 1.3, equations="through_batch", batch=inputs)
    np.testing.assert_allclose(np.mean(found, axis=0), theory.f, rtol=0.08)
    endless = solve(FullyConnected(widths), "batch", 1.3, equations="through_batch")
    np.testing.assert_allclose(endless.f, [0, 0, 0, 300 * 1.69 / (2 * pi)])
    np.testing.assert_allclose(theory.f[:2] / theory.f[1:3], pi / (pi - 1), rtol=0.05)
