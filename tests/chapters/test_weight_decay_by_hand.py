"""The chapter on weight decay: its network, optimizers and instruments against torch's own and slow twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from bnbook.chapters import shared, weight_decay
from bnbook.chapters.shared import Rows, pooled
from bnbook.chapters.weight_decay import (
    DECAYED,
    NO_EPS,
    Recipe,
    accuracies,
    angle_between,
    answers,
    answers_by_step,
    apart,
    copied,
    draw,
    mean_loss,
    scaled,
    train,
    trained,
)
from bnbook.data import load

WIDTHS = (6, 5, 5, 5, 3)
DOUBLE = torch.float64
INPUTS = torch.randn(60, 6, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
LABELS = torch.arange(60) % 3


def rows(seed=0):
    return Rows(INPUTS, LABELS, 20, seed)


def by_torch(network, member, norm="batch", eps=NO_EPS):
    """The same member of torch's own layers."""
    layers = []
    for weight, gamma, beta in zip(network["weights"], network["gammas"], network["betas"]):
        linear = nn.Linear(*weight.shape[1:], bias=norm == "none", dtype=DOUBLE)
        linear.weight.data = weight[member].T.clone()
        layers.append(linear)
        if norm == "none":
            linear.bias.data = beta[member].clone()
        else:
            layers.append(nn.BatchNorm1d(len(gamma[member]), eps=eps, momentum=1.0, dtype=DOUBLE))
            layers[-1].weight.data, layers[-1].bias.data = gamma[member].clone(), beta[member].clone()
        layers.append(nn.ReLU())
    last = nn.Linear(*network["readout"][0].shape[1:], bias=False, dtype=DOUBLE)
    last.weight.data = network["readout"][0][member].T.clone()
    return nn.Sequential(*layers, last)


def uneven(members=2):
    """Members that differ, γ and β not at their start."""
    networks = [draw(WIDTHS, seed, 1, DOUBLE) for seed in range(members)]
    network = {
        name: [torch.cat(parts) for parts in zip(*(one[name] for one in networks))] for name in networks[0]
    }
    for k, (gamma, beta) in enumerate(zip(network["gammas"], network["betas"])):
        gamma += 0.3 * torch.sin(torch.arange(gamma.numel(), dtype=DOUBLE)).view_as(gamma) + 0.1 * k
        beta += 0.2 * torch.cos(torch.arange(beta.numel(), dtype=DOUBLE)).view_as(beta)
    return network


@pytest.mark.parametrize("norm", ["batch", "none"])
def test_answers_and_accuracies_are_those_of_torchs_layers(norm):
    network = uneven()
    found = answers(network, INPUTS, norm)
    share = accuracies(network, norm, INPUTS, INPUTS[:30], LABELS[:30])
    for member in range(2):
        twin = by_torch(network, member, norm)
        torch.testing.assert_close(found[member], twin(INPUTS), rtol=1e-12, atol=1e-12)
        right = twin.eval()(INPUTS[:30]).argmax(1) == LABELS[:30]
        assert float(share[member]) == pytest.approx(float(right.double().mean()))


def test_a_loss_in_front_of_batch_norm_is_blind_to_length_and_its_gradient_at_right_angles():
    network = uneven()
    leaves = [w.requires_grad_() for w in network["weights"]]
    loss = mean_loss(answers(network, INPUTS), LABELS)
    for weight, gradient in zip(leaves, torch.autograd.grad(loss.sum(), leaves)):
        along = (weight * gradient).sum((1, 2)) / (weight.norm() * gradient.norm())
        assert along.abs().max() < 1e-12 and gradient.norm() > 1e-3
    longer = scaled(network, np.array([[1.0, 2.0, 3.0], [0.1, 0.7, 5.0]]))
    torch.testing.assert_close(answers(longer, INPUTS), answers(network, INPUTS), rtol=1e-12, atol=1e-12)
    assert (answers(longer, INPUTS, eps=1e-3) - answers(network, INPUTS, eps=1e-3)).abs().max() > 1e-4
    assert (answers(longer, INPUTS, "none") - answers(network, INPUTS, "none")).abs().max() > 0.1


@pytest.mark.parametrize("decayed", DECAYED)
@pytest.mark.parametrize("kind, norm", [("sgd", "batch"), ("sgd", "none"), ("adamw", "batch")])
def test_a_member_is_trained_as_by_torchs_own_optimizer(kind, norm, decayed):
    recipe = Recipe(0.05, 0.3, 0.8 if kind == "sgd" else 0.0, decayed, norm, kind)
    network, other = uneven(), Recipe(0.01, 0.0, 0.0, "all", norm, kind)
    twin = by_torch(network, 1, norm)
    train(network, [other, recipe], rows(), 12, 4)
    groups = {"weights": [], "readout": [twin[-1].weight], "gammas": [], "betas": []}
    for module in list(twin)[:-1]:
        if isinstance(module, nn.Linear):
            groups["weights"].append(module.weight)
            groups["betas"] += [module.bias] if module.bias is not None else []
        elif isinstance(module, nn.BatchNorm1d):
            groups["gammas"].append(module.weight)
            groups["betas"].append(module.bias)
    options = [
        {"params": group, "weight_decay": recipe.decay * (name in DECAYED[decayed])}
        for name, group in groups.items()
        if group
    ]
    of = torch.optim.SGD if kind == "sgd" else torch.optim.AdamW
    descent = of(options, lr=recipe.rate, **({"momentum": recipe.momentum} if kind == "sgd" else {}))
    for _, (inputs, labels) in zip(range(12), iter_of(rows())):
        descent.zero_grad()
        nn.functional.cross_entropy(twin(inputs), labels).backward()
        descent.step()
    for name, parts in network.items():
        for part, own in zip(parts, groups[name]):
            wanted = own.T if part.ndim == 3 else own
            torch.testing.assert_close(part[1], wanted.detach(), rtol=1e-8, atol=1e-10)


def iter_of(batches):
    while True:
        yield next(batches)


def test_angles_and_lengths_are_those_of_each_layer_by_hand():
    network, recipe = uneven(1), Recipe(0.1, 0.2)
    found = train(copied(network, [0]), [recipe], rows(), 4, 2)
    before = copied(network, [0])
    states = [before["weights"]]
    for steps in range(1, 5):
        again = copied(network, [0])
        train(again, [recipe], rows(), steps, steps)
        states.append(again["weights"])
    for look, step in enumerate((1, 3)):
        for layer in range(3):
            a, b = (states[k][layer].flatten().numpy() for k in (step, step + 1))
            cosine = a @ b / math.sqrt((a @ a) * (b @ b))
            assert found["angle"][0, layer, look] == pytest.approx(math.acos(cosine), rel=1e-6)
            assert found["norm"][0, layer, look] == pytest.approx(math.sqrt(a @ a), rel=1e-12)


@pytest.mark.parametrize("angle", [1e-4, 0.03, 1.5, 3.0])
def test_an_angle_is_that_of_a_rotation_also_where_an_arc_cosine_in_float32_fails(angle):
    before = torch.tensor([[[3.0, 0.0]], [[0.0, 2.0]]])
    turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    assert angle_between(before, 7 * before @ turn).tolist() == pytest.approx([angle] * 2, rel=1e-4)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_gradients_at_right_angles_turn_weights_by_the_formulas_angle(momentum):
    """Random weights on their own: ‖u‖² / ‖w‖² is 2ηλ/(1+α) whatever the gradients' lengths."""
    generator, recipe = np.random.default_rng(1), Recipe(0.1, 0.1, momentum)
    w, v, moved, lengths = generator.normal(size=200), np.zeros(200), [], []
    for step in range(6000):
        g = generator.normal(size=200)
        g -= w * (g @ w) / (w @ w)
        v = momentum * v + g * (1 + (step // 50) % 2) / np.linalg.norm(w) + recipe.decay * w
        w = w - recipe.rate * v
        moved.append(recipe.rate**2 * v @ v)
        lengths.append(w @ w)
    found = math.sqrt(np.mean(moved[3000:]) / np.mean(lengths[3000:]))
    assert found == pytest.approx(recipe.angle, rel=0.03)
    assert found != pytest.approx(math.sqrt(1 + momentum) * recipe.angle, rel=0.03) or not momentum


def two(exponent=lambda t: 2 * t + 1, factor=2, norm="batch", eps=NO_EPS):
    steps, rate, decay, c = 60, 0.05, 0.4, 3.0
    growing = rate * (1 - rate * decay) ** -(exponent(np.arange(steps)) + 0.0)
    start = draw(WIDTHS, 1, 2, DOUBLE)
    schedule = np.stack([np.full(steps, rate), growing], 1), np.array([decay, 0.0])
    longer = scaled(copied(start, (0, 1)), np.array([[1.0] * 3, [c] * 3]))
    constant = np.tile([rate, c**factor * rate], (steps, 1)), np.array([decay, decay / c**factor])
    pairs = [(start, schedule), (longer, constant)]
    return [apart(answers_by_step(one, rows(), *each, rate, norm, eps)).max() for one, each in pairs]


def test_two_recipes_are_one_training_and_no_other_exponent_would_do():
    assert max(two()) < 1e-11
    assert two(exponent=lambda t: 2 * t)[0] > 1e-3 and two(exponent=lambda t: t + 1)[0] > 1e-3
    assert two(factor=1)[1] > 1e-3 and two(factor=3)[1] > 1e-3
    assert min(two(eps=1e-3)) > 1e-5 and min(two(norm="none")) > 1e-2


def test_a_step_of_a_pair_is_that_of_the_training():
    rate, decay, steps = 0.1, 0.3, 7
    network, twin = uneven(), uneven()
    found = answers_by_step(network, rows(), np.full((steps, 2), rate), np.full(2, decay), rate)
    train(twin, [Recipe(rate, decay)] * 2, rows(), steps, steps)
    for (name, part), (_, other) in zip(trained(network, "batch"), trained(twin, "batch")):
        torch.testing.assert_close(part, other, rtol=1e-10, atol=1e-12, msg=name)
    one, other = found[2, 0].numpy(), found[2, 1].numpy()
    wanted = math.sqrt(((other - one) ** 2).sum() / (one**2).sum())
    assert apart(found)[2] == pytest.approx(wanted, rel=1e-12)


def test_a_surplus_is_read_where_it_crosses_one_over_e():
    times = np.arange(400)
    falling = np.exp(-times / np.array([[10.0], [77.5]]))
    assert weight_decay.e_folding(falling) == pytest.approx([10.0, 77.5])
    assert weight_decay.e_folding((1 - 4 * 0.009) ** times) * 4 * 0.009 == pytest.approx(1, abs=0.02)
    assert np.isnan(weight_decay.e_folding(np.full(50, 0.5)))


PLAN = weight_decay.Plan("textures-standin", 8, 4, 3, 16, 40, 2, 6, (0.03, 0.1, 0.3), (0.02, 0.04, 0.08))


def test_pooled_pixels_are_means_of_squares():
    dataset = load("textures-standin")
    found, labels = pooled(dataset, "test", 8)
    image = dataset.test_images[7].double()
    corner = (image[1, 8:16, 24:32].mean() / 255 - dataset.mean[1]) / dataset.std[1]
    assert found.shape == (500, 48) and torch.equal(labels, dataset.test_labels)
    assert float(found[7, 16 + 4 + 3]) == pytest.approx(float(corner), rel=1e-4)


def test_a_seed_gives_the_same_whatever_the_processes():
    one, other = shared.in_processes(weight_decay.trainings, PLAN, (1, 2), 1)
    again = weight_decay.trainings(PLAN, 1)
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["grid.angle"], other["grid.angle"])
    assert (one["surplus"][..., 0] == 1).all()
    assert not torch.equal(*(draw(WIDTHS, seed, 1)["weights"][0] for seed in (1, 2)))
    decays = [(one.rate, round(one.rate * one.decay, 10)) for one in PLAN.grid]
    assert decays == [(rate, product) for product in (0.02, 0.04, 0.08) for rate in (0.03, 0.1, 0.3)]
