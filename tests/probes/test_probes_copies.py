"""A copy of a network with its loss: whatever a pass moves, moves in the copy."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import zoo
from torch import nn
from torch.nn.utils import parametrizations

from bnbook.probes.copies import Copies

TEACHER = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))  # in training mode, reached by a global name


def distilled(outputs, targets):
    return F.mse_loss(outputs, TEACHER(torch.ones(len(targets), 6)))


class Guided(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.Linear(6, 4)

    def forward(self, x):
        return self.own(x) + TEACHER(x)


@pytest.mark.parametrize(
    "model, loss", [(nn.Linear(6, 4), distilled), (Guided(), F.cross_entropy)], ids=["loss", "forward"]
)
def test_a_network_that_is_reached_by_a_global_name_is_copied_too(model, loss):
    before, teacher = zoo.everything(TEACHER), TEACHER
    with Copies(model, loss).fresh() as [twin, own]:
        assert TEACHER is not teacher
        own(twin(torch.randn(5, 6)), torch.arange(5) % 4).backward()
    assert TEACHER is teacher and zoo.everything(TEACHER) == before
    assert TEACHER[1].num_batches_tracked == 0 and all(p.grad is None for p in model.parameters())


def test_a_loss_that_names_the_network_reaches_the_copy():
    model = nn.Linear(3, 2)
    penalty = lambda outputs, targets: outputs.sum() + model.weight.square().sum()
    with Copies(model, penalty).fresh() as [twin, own]:
        own(twin(torch.ones(1, 3)), None).backward()
        assert twin.weight.grad.tolist() == (1 + 2 * twin.weight).tolist()
    assert model.weight.grad is None


def test_what_a_hook_or_a_parametrization_moves_is_the_copys():
    layer, seen = parametrizations.spectral_norm(nn.Linear(4, 3)), []
    layer.register_forward_hook(lambda m, _x, _y: seen.append(m))
    vectors = [b.clone() for b in layer.buffers()]
    with Copies(layer).fresh() as [twin]:
        twin(torch.randn(2, 4)).sum().backward()
    assert all(torch.equal(one, other) for one, other in zip(vectors, layer.buffers(), strict=True))
    assert all(p.grad is None for p in layer.parameters()) and not seen


def test_every_copy_draws_the_same_and_the_random_state_is_given_back():
    model = nn.Sequential(nn.Linear(6, 64), nn.Dropout())
    copies, state = Copies(model), torch.get_rng_state()
    found = []
    for _ in range(2):
        with copies.fresh() as [twin]:
            found.append(twin(torch.ones(1, 6)))
    assert torch.equal(*found) and torch.equal(state, torch.get_rng_state())
    assert torch.equal(found[0], model(torch.ones(1, 6)))
