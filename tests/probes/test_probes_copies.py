"""Copies of a network with its loss: whatever a pass moves, moves in the copy. On a zoo of networks nothing of the
original moves, and each number is that of a slow twin."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
import zoo
from torch import nn

from bnbook.errors import BnbookError
from bnbook.probes import fisher, hessian, landscape, layer_gradients
from bnbook.probes.copies import Copies
from bnbook.probes.statistics import copied

TEACHER = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))  # in training mode, reached by a global name
CE = F.cross_entropy
#: The names of the zoo that no probe can take: they do not go (inputs) -> what the loss takes, or by no autograd.
REFUSED = ("reentrant checkpoint", "several outputs", "a dictionary", "a dataclass")
SPARSE = "embeddings with sparse gradients"  # whose norm torch does not take
#: What else a probe does not give, beside those: layers that run twice or whose output has no gradient, and kernels
#: without a second derivative.
NO_LAYERS = (
    "one layer run twice",
    "an unused layer",
    "a zero at the end",
    "checkpoint",
    "a slope inside",
    "attention over the batch",
    "two views under vmap",
)
NO_CURVATURE = ("attention", "attention with a fast path", "averages by hand")
ERRORS = (BnbookError, RuntimeError, ValueError, TypeError, AttributeError)
#: Those of which a probe has something of its own to get wrong; the report goes through all of them.
WATCHED = """plain, batch norm, filled averages, no averages, images, tokens, recurrent, dropout, added in place, tied weights,
a frozen part, ghost batches, weight norm, spectral norm, weight norm by a hook, single precision, Python's random numbers,
a generator of its own, counts in itself, hooks of the owner, averages in buffers, experts, pruned, by keyword"""
FEW = [*WATCHED.replace("\n", " ").split(", "), *REFUSED, SPARSE, *NO_LAYERS, *NO_CURVATURE]


@pytest.mark.parametrize("name", FEW)
def test_on_a_zoo_nothing_moves_and_the_landscape_is_that_of_a_slow_twin(name):
    animal = zoo.ZOO[name]
    model, batch = animal.build(), animal.batch()
    zoo.seed(7)
    before, drawn = zoo.everything(model), zoo.states()
    lengths = [zoo.RATE * each for each in zoo.LENGTHS]
    probes = {
        "landscape": lambda: landscape.along_gradient(model, animal.loss, batch, lengths),
        "layers": lambda: layer_gradients.measure(model, animal.loss, batch),
        "curvature": lambda: hessian.curvature_along_gradient(model, animal.loss, batch),
    }
    found, refused = {}, set()
    for which, probe in probes.items():
        try:
            found[which] = probe()
        except ERRORS as error:
            refused.add(which)
            assert str(error)
        assert zoo.states() == drawn, which
    after = zoo.everything(model)
    assert [key for key in {**before, **after} if before.get(key) != after.get(key)] == []
    assert ("landscape" in refused) == (name in (*REFUSED, SPARSE))
    assert ("layers" in refused) == (name in (*REFUSED, *NO_LAYERS))
    assert ("curvature" in refused) == (name in (*REFUSED, SPARSE, *NO_CURVATURE))
    if "landscape" in found:  # the twin draws: last
        seen, exact = found["landscape"], animal.exact
        assert float(seen.start_loss) == pytest.approx(
            zoo.gradient(animal)[0], rel=max(exact, 1e-6), abs=1e-9
        )
        assert float(seen.effective_smoothness) == pytest.approx(zoo.smoothness(animal), rel=max(exact, 1e-5))


def distilled(outputs, targets):
    return F.mse_loss(outputs, TEACHER(torch.ones(len(targets), 6)))


class Guided(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.Linear(6, 4)

    def forward(self, x):
        return self.own(x) + TEACHER(x)


@pytest.mark.parametrize(
    "model, loss", [(nn.Linear(6, 4), distilled), (Guided(), CE)], ids=["loss", "forward"]
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


def test_instance_norm_is_not_over_the_batch_and_averages_that_are_not_kept_are_refused():
    images = torch.randn(4, 3, 5, 5)
    instance = nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4), nn.Flatten(), nn.Linear(36, 2))
    assert fisher.largest_eigenvalue(instance, images, statistics="population", tolerance=0.1).value > 0
    untracked = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 2))
    with pytest.raises(BnbookError, match="no population statistics"), copied(untracked, "population"):
        pass
