"""The probe against a double loop over pairs with per-example autograd; the theory against the probe."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bnbook.errors import BnbookError
from bnbook.meanfield import FullyConnected, solve
from bnbook.models import mlp
from bnbook.probes.order_parameters import CHUNK, measure

WIDE = (300, 300, 300, 300, 1)


def network(
    widths: tuple[int, ...], norm: str, gamma: float = 1.3, seed: int = 0, sigma_b2: float = 0.5
) -> nn.Sequential:
    """A float64 network drawn as equations 12 and 16 say."""
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    for l, (fan_in, fan_out) in enumerate(zip(widths, widths[1:]), start=1):
        linear = nn.Linear(fan_in, fan_out, dtype=torch.float64)
        with torch.no_grad():
            linear.weight.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
            linear.bias.normal_(0, sigma_b2**0.5, generator=generator)
        layers.append(linear)
        if l < len(widths) - 1:
            if norm == "batch":
                layers.append(nn.BatchNorm1d(fan_out, dtype=torch.float64))
                nn.init.constant_(layers[-1].weight, gamma)
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def gaussian(m: int, n: int, seed: int = 1) -> Tensor:
    return torch.randn(m, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "model, inputs, statistics, message",
    [
        (network((6, 9, 3), "none"), gaussian(8, 6), "exact", "batch, detached, population"),
        (network((6, 9, 3), "none"), gaussian(1, 6), "batch", "two or more"),
        (nn.ReLU(), gaussian(8, 6), "batch", "no linear layers"),
        (mlp((6, 9, 3), norm="l1"), gaussian(8, 6), "detached", "not for LpNorm"),
        (nn.Linear(6, 3, dtype=torch.float64), gaussian(16, 6).reshape(4, 4, 6), "batch", "no linear layers"),
    ],
)
def test_bad_input_is_one_line(model: nn.Module, inputs: Tensor, statistics: str, message: str) -> None:
    with pytest.raises(BnbookError, match=message):
        measure(model, inputs, statistics)


# The theory against real finite networks: Gaussian inputs, as it assumes


def test_through_the_batch_only_the_last_layer_keeps_a_bound_of_the_width() -> None:
    """f of the layers below is of order N/m and grows towards the input by π/(π-1) a layer."""
    inputs, found = 80, []
    for seed in range(6):
        orthogonal = (
            torch.linalg.qr(gaussian(300, inputs, seed))[0].T * 300**0.5
        )  # equal inner products: none
        found.append(measure(network(WIDE, "batch", 1.3, seed), orthogonal, "batch"))
    theory = solve(FullyConnected(WIDE), "batch", 1.3, equations="through_batch", batch=inputs)
    measured = np.mean([one.f for one in found], axis=0)
    np.testing.assert_allclose(measured, theory.f, rtol=0.08)
    endless = solve(FullyConnected(WIDE), "batch", 1.3, equations="through_batch")
    np.testing.assert_allclose(endless.f, [0, 0, 0, 300 * 1.69 / (2 * np.pi)])
    np.testing.assert_allclose(theory.f[:2] / theory.f[1:3], np.pi / (np.pi - 1), rtol=0.05)


def test_a_padded_convolution_is_taken_with_its_padding():
    torch.manual_seed(0)
    layers = [nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(3 * 4 * 4, 2)]
    model, inputs = nn.Sequential(*layers).double(), torch.randn(5, 2, 4, 4).double()
    (slope,) = torch.autograd.grad(model(inputs)[:, 0].mean(), [model[0].weight])
    assert measure(model, inputs, "batch").f[0] == pytest.approx(slope.square().sum().item())


@pytest.mark.parametrize("make", ["fully connected", "convolutional"])
def test_weight_gradients_of_many_inputs(make):
    """More inputs than are held at once; f by autograd, over pairs of different inputs by one pass each."""
    torch.manual_seed(0)
    m = CHUNK + 3
    if make == "convolutional":
        model = nn.Sequential(
            nn.Conv2d(2, 3, 2, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2)
        ).double()
        x = torch.randn(m, 2, 4, 4).double()
    else:
        model, x = mlp((4, 6, 5, 2), init="meanfield").double(), torch.randn(m, 4).double()
    seen = measure(model, x)
    weights = [p for p in model.parameters() if p.ndim >= 2]
    each = [torch.autograd.grad(model(x[k : k + 1])[0, 0], weights) for k in range(m)]
    for layer in range(len(weights)):
        rows = torch.stack([gradients[layer].flatten() for gradients in each])
        gram = rows @ rows.T
        assert seen.f[layer] == pytest.approx(gram.mean().item())
        apart = (gram.sum() - gram.trace()).item() / (m * (m - 1))
        assert seen.f_pairs[layer] == pytest.approx(apart)
    assert seen.lambda_bound == pytest.approx(seen.f.sum()) and seen.inputs == m
