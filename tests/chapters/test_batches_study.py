"""Networks side by side, the statistics that they answer by, and gradients added up: each against a slow twin."""

from __future__ import annotations

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bnbook.data import load
from bnbook.normalizers.batch import BatchNorm

PAGE = page_cells.functions("practice/batch", dataset=load("textures-standin"))
Recipe, network, orders, train, outputs, precise, error, gradient, distance, as_ghost = (
    PAGE[name]
    for name in "Recipe network orders train outputs precise error gradient distance as_ghost".split()
)
shrinkage, mode_gap, memory, shrink = (PAGE[name] for name in "shrinkage mode_gap memory shrink".split())
SEEDS = (3, 8, 5)


@pytest.fixture(scope="module")
def data():
    g = torch.Generator().manual_seed(0)
    return torch.randn(96, 3, 16, 16, generator=g), torch.arange(96) % 10


def layers_of(model):
    return [module for module in model.modules() if isinstance(module, BatchNorm)]


def by_hand(model, x, y, rate, ghost, steps):
    """Plain SGD on one network, every batch norm written out; its running means."""
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    weights = [c.weight.detach().double() for c in convs]
    rest = [torch.full((len(w),), fill).double() for w in weights for fill in (0.0, 1.0, 0.0)]  # bias, γ, β
    leaves = [p.requires_grad_() for p in (*weights, *rest[:-2])]
    means = [torch.zeros(len(w)).double() for w in weights[:-1]]
    for chosen in steps:
        h = x[chosen].double()
        for k, conv in enumerate(convs):
            h = F.conv2d(h, weights[k], rest[3 * k], conv.stride, conv.padding)
            if k == len(convs) - 1:
                break
            gamma, beta, parts = *(p[:, None, None] for p in rest[3 * k + 1 : 3 * k + 3]), []
            for part in h.split(ghost):
                mu, var = part.mean((0, 2, 3)), part.var((0, 2, 3), correction=0)
                means[k] = 0.9 * means[k] + 0.1 * mu.detach()
                hat = (part - mu[:, None, None]) / (var + 1e-5).sqrt()[:, None, None]
                parts.append(F.relu(gamma * hat + beta))
            h = torch.cat(parts)
        gradients = torch.autograd.grad(F.cross_entropy(h.flatten(1), y[chosen]), leaves)
        for p, g in zip(leaves, gradients):
            p.data -= rate * g
    return means


@pytest.mark.parametrize(("dense", "ghost"), [(True, 0), (True, 4), (False, 0)])
def test_each_of_the_networks_side_by_side_is_the_one_written_out(data, dense, ghost):
    recipe = Recipe("batch", 8, 0.05, ghost=ghost, dense=dense)
    model = train(recipe, SEEDS, *data, 24)
    drawn = network(recipe, SEEDS[1:2], (3, 16, 16))
    steps = orders(recipe, SEEDS[1:2], data[1], 24)[..., 0]
    assert steps.shape == (3, 8) and len(set(steps.flatten().tolist())) == 24
    means = by_hand(drawn, *data, 0.05, ghost or 8, steps)
    for layer, mean in zip(layers_of(model), means, strict=True):
        torch.testing.assert_close(layer.running_mean.view(3, -1)[1].double(), mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_no_member_hears_of_another_and_the_normalizer_draws_nothing(data, norm):
    recipe = Recipe(norm, 16, 0.1)
    together, alone = (outputs(train(recipe, s, *data, 64), data[0], len(s), 16) for s in (SEEDS, SEEDS[:1]))
    torch.testing.assert_close(together[0], alone[0], rtol=1e-3, atol=1e-4)
    assert not torch.allclose(together[0], together[1], atol=0.1)
    same = [network(Recipe(n, 2, 0.1), SEEDS, (3, 16, 16))[0].weight.detach() for n in ("none", norm)]
    assert torch.equal(*same) and float(same[0].std() * (27 / 2) ** 0.5) == pytest.approx(1, abs=0.1)


def test_precise_averages_answer_as_one_batch_of_all_the_images_does(data):
    model = train(Recipe("batch", 4, 0.05), SEEDS, *data, 64)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    exact = precise(model, data[0], 3)
    at_once = outputs(model, data[0], 3, len(data[0]))
    torch.testing.assert_close(outputs(exact, data[0], 3), at_once, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(outputs(model, data[0], 3), at_once, atol=1e-2)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    whole = model[0](data[0].repeat(1, 3, 1, 1)).double()
    torch.testing.assert_close(
        layers_of(exact)[0].running_mean.double(), whole.mean((0, 2, 3)).detach(), rtol=1e-4, atol=1e-6
    )


def test_an_error_is_counted_and_a_batch_of_the_test_answers_by_itself(data):
    model = train(Recipe("batch", 8, 0.05), SEEDS, *data, 64)
    for batch in (0, 8, 40):
        logits, count = outputs(model, data[0], 3, batch), 80 if batch == 40 else 96
        model.train(bool(batch))
        slow = [model(part.repeat(1, 3, 1, 1)).detach() for part in data[0][:count].split(batch or 96)]
        wanted = torch.cat(slow).view(count, 3, 10)
        torch.testing.assert_close(logits, wanted.transpose(0, 1), rtol=1e-4, atol=1e-5)
        hits = [[int(row.argmax()) == int(y) for row, y in zip(wanted[:, s], data[1])] for s in range(3)]
        np.testing.assert_allclose(error(logits, data[1]), 1 - np.mean(hits, axis=1))


def test_batches_of_one_class_hold_one_and_mixed_ones_the_same_images(data):
    (mixed, one) = (
        orders(Recipe("batch", 3, 0.1, by_class=c), (3,), data[1], 96)[..., 0] for c in (False, True)
    )
    assert all(len(set(data[1][batch].tolist())) == 1 for batch in one)
    assert set(one.flatten().tolist()) <= set(mixed.flatten().tolist()) and len(one) >= 30
    assert data[1][one[:, 0]].unique_consecutive().numel() > 15, "the classes come mixed"


def test_what_is_added_up_is_the_batch_without_a_norm_and_ghosts_with_one(data):
    x, y = data[0][:32].double(), data[1][:32]
    for norm, same in (("none", True), ("group", True), ("batch", False)):
        model = network(Recipe(norm, 8, 0.1), SEEDS, (3, 16, 16)).double()
        whole, parts = (gradient(model, x, y, 3, part) for part in (32, 8))
        assert (distance(parts, whole) < 1e-13).all() == same
    assert (distance(parts, whole) > 0.1).all()
    assert (distance(parts, gradient(as_ghost(model, 8), x, y, 3, 32)) < 1e-13).all()
    for member in range(3):
        model.zero_grad()
        F.cross_entropy(model(x.repeat(1, 3, 1, 1)).view(32, 3, 10)[:, member], y).backward()
        slow = torch.cat([p.grad.unflatten(0, (3, -1))[member].flatten() for p in model.parameters()])
        torch.testing.assert_close(whole[member], slow)


def test_the_laws_of_one_layer():
    assert shrinkage(2) == pytest.approx((1 / np.pi) ** 0.5)  # E|z| / √2, z of variance 2, halved
    assert [mode_gap(m) * (m / 1.5) ** 0.5 for m in (200, 2000)] == pytest.approx([1, 1], rel=5e-3)
    x = np.random.default_rng(1).standard_normal((40_000, 5))
    hat = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    assert np.sqrt(((hat - x) ** 2).mean()) == pytest.approx(mode_gap(5), rel=5e-3)
    weights = 0.1 * 0.9 ** np.arange(400)
    assert memory(0.1) == pytest.approx(np.sqrt((weights**2).sum()))


def test_images_are_halved():
    data = load("textures-standin")
    found = shrink(data.train_images[:3])
    pixels = data.train_images[:3].double() / 255
    by_hand = (pixels - data.mean.double()[:, None, None]) / data.std.double()[:, None, None]
    by_hand = by_hand.view(3, 3, 16, 2, 16, 2).mean((3, 5))
    torch.testing.assert_close(found.double(), by_hand, rtol=1e-4, atol=1e-5)
