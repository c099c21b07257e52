"""The covariate-shift probe against partial updates done by hand."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bnbook import models
from bnbook.errors import BnbookError
from bnbook.probes.covariate_shift import measure

RATE = 0.3


def network(norm="batch", **options):
    torch.manual_seed(2)
    model = models.mlp((12, 8, 8, 8, 5), norm=norm, init="meanfield", **options).double().train()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "norm" in name:
                p += 0.2 * torch.randn_like(p)
    return model, (torch.randn(10, 12).double(), torch.arange(10) % 5)


def gradients(model, batch, state):
    torch.set_rng_state(state)
    loss = F.cross_entropy(model(batch[0]), batch[1])
    names = [name for name, _ in model.named_parameters()]
    return dict(zip(names, torch.autograd.grad(loss, list(model.parameters()))))


def by_hand(model, batch, layer, updated):
    """Gradient of one weight before and after the named parameters are updated, in a copy of the model."""
    state = torch.get_rng_state()
    before = gradients(copy.deepcopy(model), batch, state)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for name, p in other.named_parameters():
            if name in updated:
                p -= RATE * before[name]
    after = gradients(other, batch, state)
    torch.set_rng_state(state)
    return before[layer].flatten(), after[layer].flatten()


@pytest.mark.parametrize("norm", ["none", "batch", "noisy", "l1", "layer"])
def test_it_equals_partial_updates_by_hand(norm):
    model, batch = network(norm)
    seen = measure(model, F.cross_entropy, batch, RATE)
    assert seen.names == tuple(f"linear{k}.weight" for k in (1, 2, 3, 4))
    assert seen.distance[0] == 0 and seen.cosine[0] == 1
    for index, layer in enumerate(seen.names):
        # everything of the modules before: weights, biases, γ and β; nothing of the layer's own, nothing
        # later
        names = [name for name, _ in model.named_parameters()]
        updated = [n for n in names if int(n.split(".")[0][-1]) <= index]
        g, h = by_hand(model, batch, layer, updated)
        assert seen.distance[index].item() == pytest.approx((g - h).norm().item(), rel=1e-9, abs=1e-14)
        assert seen.cosine[index].item() == pytest.approx(F.cosine_similarity(g, h, dim=0).item(), abs=1e-12)
        assert seen.norm[index].item() == pytest.approx(g.norm().item(), rel=1e-12)


def test_the_biases_and_the_normalizers_of_the_layers_before_count_and_its_own_do_not():
    model, batch = network("batch")
    seen = measure(model, F.cross_entropy, batch, RATE).distance[2].item()
    before = [
        "linear1.weight", "linear1.bias", "norm1.weight", "norm1.bias", "linear2.weight", "linear2.bias",
        "norm2.weight", "norm2.bias",
    ]  # fmt: skip

    def distance(updated):
        g, h = by_hand(model, batch, "linear3.weight", updated)
        return (g - h).norm().item()

    assert seen == pytest.approx(distance(before), rel=1e-9)
    others = [
        [n for n in before if "weight" in n and "linear" in n],
        before[:-1],
        [n for n in before if "bias" not in n],
        [*before, "norm3.weight"],
        [*before, "linear3.weight"],
        [*before, "linear4.weight"],
    ]
    for other in others:
        assert abs(distance(other) - seen) > 1e-6 * seen, other


def test_a_small_learning_rate_gives_the_mixed_second_derivative():
    model, batch = network("none")
    rate, layer = 1e-6, model.linear2.weight
    loss = F.cross_entropy(model(batch[0]), batch[1])
    first = [model.linear1.weight, model.linear1.bias]
    g1 = torch.autograd.grad(loss, first, create_graph=True)
    g2 = torch.autograd.grad(loss, layer, create_graph=True)[0]
    along = sum((g * g.detach()).sum() for g in g1)  # its gradient for the layer: H_21 g_1
    mixed = torch.autograd.grad(along, layer, retain_graph=True)[0]
    seen = measure(model, F.cross_entropy, batch, rate)
    assert seen.distance[1].item() == pytest.approx(rate * mixed.norm().item(), rel=1e-4)
    assert seen.norm[1].item() == pytest.approx(g2.norm().item(), rel=1e-12)


def test_a_weight_normalized_layer_is_one_layer_whose_own_bias_stays():
    _, batch = network("none")
    other = models.mlp((12, 8, 8, 8, 5), norm="weight").double().train()
    seen = measure(other, F.cross_entropy, batch, RATE)
    assert seen.names == tuple(f"linear{k}.weight" for k in (1, 2, 3, 4))
    updated = [n for n, _ in other.named_parameters() if n.startswith(("linear1.", "linear2."))]
    parts = [f"linear3.parametrizations.weight.original{k}" for k in (0, 1)]
    pairs = [by_hand(other, batch, part, updated) for part in parts]
    g, h = (torch.cat(side) for side in zip(*pairs))
    assert seen.distance[2].item() == pytest.approx((g - h).norm().item(), rel=1e-9)


@pytest.mark.parametrize("norm", ["batch", "noisy"])
def test_nothing_of_the_model_changes(norm):
    model, batch = network(norm)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.get_rng_state()
    measure(model, F.cross_entropy, batch, RATE)
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(random, torch.get_rng_state()) and model.training
    assert all(p.grad is None for p in model.parameters())


def test_batch_statistics_and_not_the_population_s():
    model, batch = network("batch")
    in_training = measure(model, F.cross_entropy, batch, RATE)
    in_evaluation = measure(model.eval(), F.cross_entropy, batch, RATE)
    assert (in_training.distance[1:] / in_evaluation.distance[1:] - 1).abs().min() > 1e-3


def test_impossible_input_is_refused():
    model, batch = network("none")
    for rate in (0.0, -1.0, float("nan")):
        with pytest.raises(BnbookError, match="expected a number above 0"):
            measure(model, F.cross_entropy, batch, rate)
    flat = nn.BatchNorm1d(12).double()
    with pytest.raises(BnbookError, match="without a layer"):
        measure(flat, F.cross_entropy, batch, RATE)
