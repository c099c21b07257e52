"""Per-layer gradient norms against finite differences, a closed form and scale invariance."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bnbook import models
from bnbook.chapters.gradient_explosion import chain
from bnbook.errors import BnbookError
from bnbook.probes.layer_gradients import measure


def network(norm="batch"):
    torch.manual_seed(5)
    return models.mlp((7, 6, 5, 4), norm, "meanfield").double(), (
        torch.randn(9, 7).double(),
        torch.arange(9) % 4,
    )


@pytest.mark.parametrize("norm", ["none", "batch", "layer"])
def test_finite_differences(norm):
    model, (x, y) = network(norm)
    seen = measure(model, F.cross_entropy, (x, y))
    assert seen.names == ("linear1", "linear2", "linear3")
    for index, name in enumerate(seen.names):
        weight, slopes, h = model.get_submodule(name).weight, [], 1e-6
        for place in np.ndindex(*weight.shape):
            values = []
            for sign in (1, -1):
                other = copy.deepcopy(model)
                with torch.no_grad():
                    other.get_submodule(name).weight[place] += sign * h
                    values.append(F.cross_entropy(other(x), y).item())
            slopes.append((values[0] - values[1]) / (2 * h))
        assert seen.weight[index] == pytest.approx(np.linalg.norm(slopes), rel=1e-6)
        assert seen.along[index] == pytest.approx(np.dot(slopes, weight.detach().flatten().numpy()), abs=1e-8)
        assert seen.size[index] == pytest.approx(weight.detach().norm().item())


def test_statistics_held_constant_give_another_gradient():
    model, batch = network()
    through, held = (
        measure(model, F.cross_entropy, batch, statistics) for statistics in ("batch", "detached")
    )
    assert held.preactivation[-1] == pytest.approx(through.preactivation[-1])
    assert (
        held.preactivation[:-1] > through.preactivation[:-1] * 1.01
    ).all()  # the projections only take away, layer by layer


def test_a_normalized_layer_does_not_hear_the_size_of_its_weights():
    torch.manual_seed(0)
    model = chain((7, 6, 6, 4)).double()
    for module in model.modules():
        if hasattr(module, "eps"):
            module.eps = 1e-30
    batch = torch.randn(9, 7).double(), torch.arange(9) % 4
    before = measure(model, F.cross_entropy, batch)
    assert before.along[:-1] == pytest.approx(0, abs=1e-12) and abs(before.along[-1]) > 1e-3
    with torch.no_grad():
        model.linear1.weight.mul_(7)
    after = measure(model, F.cross_entropy, batch)
    assert after.weight[0] == pytest.approx(before.weight[0] / 7, rel=1e-10)
    assert after.scale_free == pytest.approx(before.scale_free, rel=1e-10)
    assert after.turn(0.3)[0] == pytest.approx(before.turn(0.3)[0] / 49, rel=1e-10)


def test_the_model_stays_as_it_was():
    model, batch = network()
    model.eval()
    model.linear2.weight.requires_grad_(False)
    before, state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    measure(model, F.cross_entropy, batch)
    assert all(torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values()))
    assert not model.training and torch.equal(state, torch.get_rng_state())
    assert all(p.grad is None for p in model.parameters()) and not model.linear2.weight.requires_grad


def test_what_is_refused():
    with pytest.raises(BnbookError, match="no linear"):
        measure(nn.Sequential(nn.ReLU()), F.cross_entropy, (torch.randn(3, 2), torch.zeros(3).long()))
    same = nn.Linear(4, 4)
    with pytest.raises(BnbookError, match="runs twice"):
        measure(nn.Sequential(same, same), F.cross_entropy, (torch.randn(3, 4), torch.zeros(3).long()))
