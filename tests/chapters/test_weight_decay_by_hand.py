"""The chapter on weight decay: its network, optimizers and instruments against torch's own and slow twins."""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F

from bnbook.chapters.shared import Rows, pooled
from bnbook.data import load

PAGE = page_cells.functions(
    "decoupling/weight-decay", width=5, layers=3, rate=0.05, pair_steps=60, batch_size=20
)
draw, answers, accuracy, train, turned, sgd, adamw, apart, Recipe, e_folding = (
    PAGE[name] for name in "draw answers accuracy train turned sgd adamw apart Recipe e_folding".split()
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


def of_member(network, member):
    return {name: [part[member].clone() for part in parts] for name, parts in network.items()}


def by_torch(network, x, norm="batch", held=None, training=True):
    """A member's answers by torch's functions; `held`: (means, variances) to fill or to answer by."""
    for k, parts in enumerate(zip(network["weights"], network["gammas"], network["betas"])):
        weight, gamma, beta = parts
        if norm == "none":
            x = (x @ weight + beta).relu()
        else:
            given = held[k] if held else (None, None)
            x = F.batch_norm(x @ weight, *given, gamma, beta, training, 1.0, 1e-30).relu()
    return x @ network["readout"][0]


def uneven(members=2):
    """Members that differ, no part at its start."""
    network = draw(6, 0, members, DOUBLE)
    for part in (part for parts in network.values() for part in parts):
        part += 0.3 * torch.sin(torch.arange(part.numel(), dtype=DOUBLE)).view_as(part)
    return network


@pytest.mark.parametrize("norm", ["batch", "none"])
def test_answers_and_accuracies_are_those_of_torchs_functions(norm):
    network = uneven()
    found = answers(network, INPUTS, norm)
    share = accuracy(network, norm, INPUTS, INPUTS[:30], LABELS[:30])
    for member in range(2):
        own, held = of_member(network, member), [torch.zeros(2, 5, dtype=DOUBLE) for _ in range(3)]
        torch.testing.assert_close(found[member], by_torch(own, INPUTS, norm, held), rtol=1e-12, atol=1e-12)
        right = by_torch(own, INPUTS[:30], norm, held, False).argmax(1) == LABELS[:30]
        assert float(share[member]) == pytest.approx(float(right.double().mean()))


@pytest.mark.parametrize("decayed", DECAYED)
@pytest.mark.parametrize("kind, norm", [("sgd", "batch"), ("sgd", "none"), ("adamw", "batch")])
def test_a_member_is_trained_as_by_torchs_own_optimizer_and_angles_and_lengths_are_its(kind, norm, decayed):
    update, momentum = (sgd, 0.8) if kind == "sgd" else (adamw, 0.0)
    recipe = Recipe(0.05, 0.3, momentum, DECAYED[decayed], norm, update)
    network, other, batches = uneven(), Recipe(0.01, 0.0, 0.0, DECAYED["all"], norm, update), rows()
    leaves = of_member(network, 1)
    found = train(network, [other, recipe], rows(), 12, 4)
    options = [
        {"params": [p.requires_grad_() for p in parts], "weight_decay": 0.3 * (name in DECAYED[decayed])}
        for name, parts in leaves.items()
    ]
    of = torch.optim.SGD if kind == "sgd" else torch.optim.AdamW
    descent = of(options, lr=0.05, **({"momentum": momentum} if kind == "sgd" else {}))
    angle, norms = np.empty((3, 3)), np.empty((3, 3))
    for step in range(12):
        inputs, labels = next(batches)
        before = [w.detach().flatten().clone() for w in leaves["weights"]]
        descent.zero_grad()
        F.cross_entropy(by_torch(leaves, inputs, norm), labels).backward()
        descent.step()
        for layer, (a, w) in enumerate(zip(before, leaves["weights"])):
            b = w.detach().flatten()
            angle[layer, step // 4] = math.acos(float(a @ b / (a.norm() * b.norm())))
            norms[layer, step // 4] = float(a.norm())
    np.testing.assert_allclose(found["angle"][1], angle, rtol=1e-6)
    np.testing.assert_allclose(found["norm"][1], norms, rtol=1e-8)
    for name in leaves.keys() - ({"gammas"} if norm == "none" else set()):
        for part, own in zip(network[name], leaves[name]):
            torch.testing.assert_close(part[1], own.detach(), rtol=1e-8, atol=1e-10)


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
    (network, twin, seen), batches = (uneven() for _ in range(3)), rows()
    found = apart(network, rows(), np.full((7, 2), 0.05), [0.3, 0.3])
    train(twin, [Recipe(0.05, 0.3)] * 2, rows(), 7, 7)
    for part, other in ((p, o) for name in network for p, o in zip(network[name], twin[name])):
        torch.testing.assert_close(part, other, rtol=1e-10, atol=1e-12)
    train(seen, [Recipe(0.05, 0.3)] * 2, batches, 2, 2)
    one, other = answers(seen, next(batches)[0])
    assert found[2] == pytest.approx(float((other - one).norm() / one.norm()), rel=1e-12)


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


def test_a_surplus_of_length_falls_by_four_times_rate_and_decay_a_step():
    page = page_cells.functions("decoupling/weight-decay", pool=8, width=4)
    page["grid"] = [page["Recipe"](r, p / r) for p in page["products"] for r in page["rates"]]
    found = page["trainings"]({"one": page["grid"][:1], "grid": page["grid"]}, 1)["surplus"]
    for product, layers in zip(page["products"][:2], found):
        np.testing.assert_allclose(
            layers[:, [5, 20]].T, [[(1 - 4 * product) ** t] * 3 for t in (5, 20)], atol=0.05
        )
