"""The chapter on weight decay: its network, optimizers and instruments against torch's own and slow twins."""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest
import torch
from torch import nn

from bnbook.chapters.shared import Rows, mean_loss, pooled
from bnbook.data import load

PAGE = page_cells.functions(
    "decoupling/weight-decay", width=5, layers=3, rate=0.05, pair_steps=60, batch_size=20
)
draw, answers, accuracy, gradients, train, turned, sgd, adamw, apart, Recipe, e_folding = (
    PAGE[name]
    for name in "draw answers accuracy gradients train turned sgd adamw apart Recipe e_folding".split()
)
DECAYED = {
    "hidden": ("weights",),
    "weights": ("weights", "readout"),
    "all": ("weights", "readout", "gammas", "betas"),
}
DOUBLE = torch.float64
INPUTS = torch.randn(60, 6, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
LABELS = torch.arange(60) % 3


def rows(seed=0):
    return Rows(INPUTS, LABELS, 20, seed)


def by_torch(network, member, norm="batch", eps=1e-30):
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
    networks = [draw(6, seed, 1, DOUBLE) for seed in range(members)]
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
    share = accuracy(network, norm, INPUTS, INPUTS[:30], LABELS[:30])
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
    factors = torch.tensor([[1.0, 2.0, 3.0], [0.1, 0.7, 5.0]], dtype=DOUBLE)
    weights = [w.detach() * c.view(-1, 1, 1) for w, c in zip(network["weights"], factors.T)]
    longer = network | {"weights": weights}
    torch.testing.assert_close(answers(longer, INPUTS), answers(network, INPUTS), rtol=1e-12, atol=1e-12)
    assert (answers(longer, INPUTS, eps=1e-3) - answers(network, INPUTS, eps=1e-3)).abs().max() > 1e-4
    assert (answers(longer, INPUTS, "none") - answers(network, INPUTS, "none")).abs().max() > 0.1


@pytest.mark.parametrize("decayed", DECAYED)
@pytest.mark.parametrize("kind, norm", [("sgd", "batch"), ("sgd", "none"), ("adamw", "batch")])
def test_a_member_is_trained_as_by_torchs_own_optimizer(kind, norm, decayed):
    update, momentum = (sgd, 0.8) if kind == "sgd" else (adamw, 0.0)
    recipe = Recipe(0.05, 0.3, momentum, DECAYED[decayed], norm, update)
    network, other = uneven(), Recipe(0.01, 0.0, 0.0, DECAYED["all"], norm, update)
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
    recipe, states = Recipe(0.1, 0.2), [uneven(1)["weights"]]
    found = train(uneven(1), [recipe], rows(), 4, 2)
    for steps in range(1, 5):
        again = uneven(1)
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
    found = turned([before], [7 * before @ turn])
    assert found.flatten().tolist() == pytest.approx([angle] * 2, rel=1e-4)


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


def two(exponent=lambda t: 2 * t + 1, factor=2, norm="batch", eps=1e-30):
    steps, rate, decay, c = 60, 0.05, 0.4, 3.0
    growing = rate * (1 - rate * decay) ** -(exponent(np.arange(steps)) + 0.0)
    start, longer = draw(6, 1, 2, DOUBLE), draw(6, 1, 2, DOUBLE)
    for w in longer["weights"]:
        w[1] *= c
    schedule = np.stack([np.full(steps, rate), growing], 1), [decay, 0.0]
    constant = np.tile([rate, c**factor * rate], (steps, 1)), [decay, decay / c**factor]
    pairs = [(start, schedule), (longer, constant)]
    return [apart(one, rows(), *each, norm, eps).max() for one, each in pairs]


def test_two_recipes_are_one_training_and_no_other_exponent_would_do():
    assert max(two()) < 1e-11
    assert two(exponent=lambda t: 2 * t)[0] > 1e-3 and two(exponent=lambda t: t + 1)[0] > 1e-3
    assert two(factor=1)[1] > 1e-3 and two(factor=3)[1] > 1e-3
    assert min(two(eps=1e-3)) > 1e-5 and min(two(norm="none")) > 1e-2


def test_a_step_of_a_pair_is_that_of_the_training():
    """Of a pair only the hidden weights decay, as in the training; the other parameters have the page's rate."""
    network, twin, seen, batches = uneven(), uneven(), uneven(), rows()
    found = apart(network, rows(), np.full((7, 2), 0.05), [0.3, 0.3])
    train(twin, [Recipe(0.05, 0.3)] * 2, rows(), 7, 7)
    for name, parts in network.items():
        for part, other in zip(parts, twin[name]):
            torch.testing.assert_close(part, other, rtol=1e-10, atol=1e-12, msg=name)
    train(seen, [Recipe(0.05, 0.3)] * 2, batches, 2, 2)
    one, other = answers(seen, next(batches)[0]).numpy()
    wanted = math.sqrt(((other - one) ** 2).sum() / (one**2).sum())
    assert found[2] == pytest.approx(wanted, rel=1e-12)


def test_a_surplus_is_read_where_it_crosses_one_over_e():
    times = np.arange(400)
    for steps in (10.0, 77.5):
        assert e_folding(np.exp(-times / steps)) == pytest.approx(steps)
    assert e_folding((1 - 4 * 0.009) ** times) * 4 * 0.009 == pytest.approx(1, abs=0.02)
    assert np.isnan(e_folding(np.full(50, 0.5)))


def test_pooled_pixels_are_means_of_squares():
    dataset = load("textures-standin")
    found, labels = pooled(dataset, "test", 8)
    image = dataset.test_images[7].double()
    corner = (image[1, 8:16, 24:32].mean() / 255 - dataset.mean[1]) / dataset.std[1]
    assert found.shape == (500, 48) and torch.equal(labels, dataset.test_labels)
    assert float(found[7, 16 + 4 + 3]) == pytest.approx(float(corner), rel=1e-4)


def test_a_seed_gives_the_same_again_and_another_another():
    page = page_cells.functions("decoupling/weight-decay", pool=8, width=4)
    page["grid"] = [page["Recipe"](r, p / r) for p in page["products"] for r in page["rates"]]
    one, other, again = (page["trainings"]({"grid": page["grid"]}, seed) for seed in (1, 2, 1))
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not np.array_equal(one["grid.angle"], other["grid.angle"])
    assert (one["surplus"][..., 0] == 1).all()
