"""Convolutions: the recursions by hand, the probe against loops over pairs and places, theory against real
networks."""

from __future__ import annotations

from itertools import product
from math import pi

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bnbook.meanfield import Convolutional, FullyConnected, solve
from bnbook.models import cnn
from bnbook.probes.order_parameters import measure

CIFAR = Convolutional((3, 32, 32))


def test_the_papers_maps() -> None:
    assert CIFAR.positions == (1024, 225, 49, 9, 1)  # section 6.2 has 1024 and 225
    assert CIFAR.fan_in == (27, 270, 540, 810) and CIFAR.depth == 4
    assert Convolutional((1, 28, 28)).positions == (784, 169, 36, 4, 1)
    assert Convolutional((2, 5, 9), (4,), kernel=5, stride=1).positions == (45, 5, 1)


def test_corrected_sums_over_places_pass_as_in_a_fully_connected_network() -> None:
    places = np.array(CIFAR.positions)
    theory, flat = (
        solve(a, "batch", 1.5, equations="corrected")
        for a in (CIFAR, FullyConnected((27, 270, 540, 810, 10)))
    )
    np.testing.assert_allclose((places * theory.q_tilde.T).T[1:], flat.q_tilde[1:])
    np.testing.assert_allclose((places * theory.q_tilde_xy.T).T[1:], flat.q_tilde_xy[1:])
    np.testing.assert_allclose(theory.f, flat.f)
    assert theory.q_tilde_ab_xy[1:4] == pytest.approx([0, 0, 0])


def test_images_with_something_in_common_at_a_place_have_correlated_units() -> None:
    """q̂_xy above q̂_αβ at the start: above γ²/2π at one place, below it at two; on average over all pairs
    γ²/2π or more."""
    theory = solve(CIFAR, "batch", equations="corrected", q_hat_xy_0=0.4, q_hat_ab_xy_0=0.1)
    assert theory.q_hat_xy[1] > 1 / (2 * pi) > theory.q_hat_ab_xy[1]
    # c = (q_xy - p)/(q - p) of layer 1: q = 2.5, q_xy = 1.3, q_αβ = 0.7, p = (1.3 + 224·0.7)/225
    pooled = (1.3 + 224 * 0.7) / 225
    c = (1.3 - pooled) / (2.5 - pooled)
    product_of_relus = (np.sqrt(1 - c * c) + c * (pi / 2 + np.arcsin(c))) / (2 * pi)
    assert theory.q_hat_xy[1] == pytest.approx(product_of_relus)
    assert theory.q_tilde_xy[1] / theory.q_tilde[1] == pytest.approx(
        theory.q_tilde_xy[2] / theory.q_tilde[2] * (pi / 2 + np.arcsin(c)) / pi
    )


# The probe


def slow_letters(values: Tensor, units: int) -> tuple[float, float, float]:
    """values (m, C, K): loops over all pairs of inputs and places."""
    m, _, places = values.shape
    a = values.detach().numpy()
    same, pairs, apart = [], [], []
    for i, j in product(range(m), repeat=2):
        for p, r in product(range(places), repeat=2):
            dot = a[i, :, p] @ a[j, :, r] / units
            if i == j and p == r:
                same.append(dot)
            elif i != j:
                (pairs if p == r else apart).append(dot)
    return np.mean(same), np.mean(pairs), np.mean(apart) if apart else np.nan


@pytest.mark.parametrize("statistics", ["detached", "batch"])
@pytest.mark.parametrize("norm", ["none", "batch"])
def test_probe_equals_loops_over_pairs_and_places(norm: str, statistics: str) -> None:
    torch.manual_seed(3)
    model, x = (
        cnn((2, 7, 11), (4, 5), norm=norm, gamma=1.3).double(),
        torch.randn(5, 2, 7, 11, dtype=torch.float64),
    )
    measured = measure(model, x, statistics)
    h, activations, preactivations = x, [], []
    constants = []
    for layer in model:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            activations.append(h)
            h = layer(h)
            preactivations.append(h)
        elif norm == "batch" and hasattr(layer, "weight"):
            mean, variance = h.mean((0, 2, 3), keepdim=True), h.var((0, 2, 3), correction=0, keepdim=True)
            if statistics == "detached":
                mean, variance = mean.detach(), variance.detach()
            h = (h - mean) / (variance + layer.eps).sqrt() * layer.weight.view(1, -1, 1, 1)
            constants.append((mean, variance))
        else:
            h = layer(h)
    weights = [layer.weight for layer in model if isinstance(layer, (nn.Conv2d, nn.Linear))]
    found = torch.autograd.grad(h[:, 0].sum(), [*preactivations, *weights])
    deltas, gradients = found[: len(preactivations)], found[len(preactivations) :]
    channels = [2, 4, 5]
    for l, (before, z, delta, gradient) in enumerate(
        zip(activations, preactivations, deltas, gradients), start=1
    ):
        for letter, values, units, index in (
            ("q_hat", before.reshape(5, channels[l - 1], -1), channels[l - 1], l - 1),
            ("q", z.reshape(5, z.shape[1], -1), z.shape[1], l),
            ("q_tilde", delta.reshape(5, z.shape[1], -1), 1, l),
        ):
            expected = slow_letters(values, units)
            ours = [getattr(measured, f"{letter}{end}")[index] for end in ("", "_xy", "_ab_xy")]
            np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12, err_msg=f"{letter} {l}")
        assert measured.f[l - 1] == pytest.approx(gradient.square().sum().item() / 25)


def test_pairs_of_different_inputs_and_equal_ones_make_up_f() -> None:
    torch.manual_seed(4)
    model, x = cnn((2, 7, 9), (4, 5)).double(), torch.randn(5, 2, 7, 9, dtype=torch.float64)
    measured = measure(model, x)
    weights = [layer.weight for layer in model if isinstance(layer, (nn.Conv2d, nn.Linear))]
    alone = [[g.square().sum().item() for g in torch.autograd.grad(model(e[None])[0, 0], weights)] for e in x]
    np.testing.assert_allclose(measured.f, 0.8 * measured.f_pairs + 0.2 * np.mean(alone, axis=0))


# Theory against real networks: iid inputs, 80 channels, so a few per cent


IMAGE, CHANNELS, INPUTS = (12, 15, 15), (80, 80), 40


@pytest.fixture(scope="module")
def networks() -> dict:
    found = {}
    for norm, statistics in (("none", "detached"), ("batch", "detached"), ("batch", "batch")):
        found[norm, statistics] = []
        for seed in range(6):
            torch.manual_seed(seed)
            model = cnn(IMAGE, CHANNELS, norm=norm, gamma=1.5)
            found[norm, statistics].append(measure(model, torch.randn(INPUTS, *IMAGE), statistics))
    return found


@pytest.mark.parametrize(
    "norm, statistics, equations",
    [
        ("none", "detached", "corrected"),
        ("batch", "detached", "corrected"),
        ("batch", "batch", "through_batch"),
    ],
)
def test_theory_describes_real_convolutional_networks(
    networks, norm: str, statistics: str, equations: str
) -> None:
    theory = solve(Convolutional(IMAGE, CHANNELS), norm, 1.5, equations=equations, batch=INPUTS)
    for letter in ("q", "q_xy", "q_ab_xy", "q_hat", "q_hat_xy", "q_tilde", "q_tilde_xy"):
        measured = np.mean([getattr(one, letter) for one in networks[norm, statistics]], axis=0)[1:3]
        np.testing.assert_allclose(measured, getattr(theory, letter)[1:3], rtol=0.12, err_msg=letter)
    measured = np.mean([one.lambda_bound for one in networks[norm, statistics]])
    assert measured == pytest.approx(theory.lambda_max, rel=0.1)
    printed = solve(Convolutional(IMAGE, CHANNELS), norm, 1.5).lambda_max
    assert printed > 2 * theory.lambda_max, "the printed sum over places counts too much"


def test_pairs_of_places_share_no_gradient(networks) -> None:
    for one in networks["batch", "detached"]:
        assert (np.abs(one.q_tilde_ab_xy[1:3]) < 0.05 * one.q_tilde_xy[1:3]).all()
