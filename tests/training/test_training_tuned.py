"""What practice adds to plain SGD, each against a loop that says it once more in plain torch."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.chapters.vgg import HE
from bnbook.data import load
from bnbook.data.batches import Batches
from bnbook.errors import BnbookError
from bnbook.training.arm import Arm
from bnbook.training.engine import train
from bnbook.training.tuned import Diverged, Tuned, TunedArm, hidden, train_tuned

SMALL = dict(width=1 / 32, steps=5, batch_size=16, data="textures-standin", evaluate_every=0)
SEED = 3


@pytest.fixture(scope="module")
def dataset():
    return load("textures-standin")


def batches(arm, dataset):
    generator = torch.Generator().manual_seed(1_000_003 + SEED)
    made = Batches(dataset, arm.batch_size, generator, augment=arm.augment)
    return [next(made) for _ in range(arm.steps)]


def first_network(arm, dataset):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return arm.model(dataset).train()


def by_hand(arm, dataset, step):
    """Losses of a loop that calls `step(network, gradients, number, what it keeps)` to move the weights."""
    network, losses, kept = first_network(arm, dataset), [], {"first": rows(first_network(arm, dataset))}
    for number, (x, y) in enumerate(batches(arm, dataset)):
        loss = F.cross_entropy(network(x), y)
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        losses.append(loss.item())
        with torch.no_grad():
            step(network, gradients, number, kept)
    return losses


def rows(network):
    return [layer.weight.detach().flatten(1).norm(dim=1) for layer in hidden(network)]


def descend(rate, network, gradients):
    for weight, slope in zip(network.parameters(), gradients, strict=True):
        weight.sub_(rate * slope)


def warm(network, gradients, k, _):
    descend([0.001, 0.002, 0.003, 0.004, 0.004][k], network, gradients)


def clipped(network, gradients, *_):
    size = torch.cat([g.flatten() for g in gradients]).norm()
    assert size > 0.5
    descend(0.01, network, [g * min(1.0, 0.5 / float(size)) for g in gradients])


def momentum(network, gradients, _, v):
    """v ← 0.9 v + g + λ θ, θ ← θ - η v"""
    for place, (weight, g) in enumerate(zip(network.parameters(), gradients, strict=True)):
        v[place] = 0.9 * v.get(place, 0.0) + g + 0.1 * weight
        weight.sub_(0.01 * v[place])


def adamw(network, gradients, k, kept):
    for place, (weight, g) in enumerate(zip(network.parameters(), gradients, strict=True)):
        m, v = kept.get(place, (0.0, 0.0))
        kept[place] = m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g.square()
        first, second = m / (1 - 0.9 ** (k + 1)), v / (1 - 0.999 ** (k + 1))
        weight.mul_(1 - 0.01 * 0.1).sub_(0.01 * first / (second.sqrt() + 1e-8))


def divided(network, gradients, _, kept):
    descend(0.1, network, gradients)
    for layer, lengths in zip(hidden(network), kept["first"], strict=True):
        for unit, length in enumerate(lengths):
            layer.weight[unit] *= length / layer.weight[unit].norm()


RULES = {  # what is added to the arm, the step by hand, how close the losses are
    "warm-up": (dict(warm_up=4), dict(options=HE, learning_rate=0.004), warm, 1e-5),
    "clipped": (dict(clip=0.5), dict(options=HE, learning_rate=0.01), clipped, 1e-4),
    "momentum": (
        dict(momentum=0.9, weight_decay=0.1),
        dict(norm="batch", learning_rate=0.01),
        momentum,
        2e-3,
    ),
    "AdamW": (dict(optimizer="adamw", weight_decay=0.1), dict(norm="batch", learning_rate=0.01), adamw, 2e-3),
    "lengths kept": (dict(lengths_kept=True), dict(norm="batch", learning_rate=0.1), divided, 2e-3),
    "another layer": (
        dict(norm="standardized_centred"),
        dict(learning_rate=0.05),
        lambda network, gradients, *_: descend(0.05, network, gradients),
        1e-3,
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_a_loop_that_says_it_in_plain_torch(rule, dataset):
    added, arm, step, close = RULES[rule]
    arm = TunedArm(**SMALL, **arm)
    expected = by_hand(replace(arm, **added), dataset, step)
    losses = lambda arm: train_tuned(arm, SEED, dataset)["loss"]
    np.testing.assert_allclose(losses(replace(arm, **added)), expected, rtol=close)
    assert not np.allclose(losses(arm), expected, rtol=2 * close), "what is added changes the training"


def test_a_short_gradient_stays(dataset):
    arm = TunedArm(options=HE, clip=1e6, learning_rate=1e-4, **SMALL)
    losses = [train_tuned(each, SEED, dataset)["loss"] for each in (arm, replace(arm, clip=0.0))]
    np.testing.assert_allclose(*losses)


def test_without_anything_added_it_is_the_engines_training_to_the_last_bit(dataset):
    plain = train(Arm(norm="batch", **SMALL), SEED, dataset)
    tuned = train_tuned(TunedArm(norm="batch", **SMALL), SEED, dataset)
    assert plain.keys() == tuned.keys()
    for name, values in plain.items():
        np.testing.assert_array_equal(tuned[name], values)


def test_putting_lengths_back_changes_no_answer_of_batch_norm_and_those_of_a_plain_network(dataset):
    x, _ = batches(TunedArm(**SMALL), dataset)[0]
    for norm, same in (("batch", True), ("none", False)):
        training = Tuned(TunedArm(norm=norm, lengths_kept=True, **SMALL), SEED, dataset)
        model = training.model.double()
        with torch.no_grad():
            for layer in hidden(model):
                layer.weight.mul_(1 + torch.rand(len(layer.weight), *[1] * (layer.weight.dim() - 1)))
            before = copy.deepcopy(model)(x.double())
            training.first = [(layer, first.double()) for layer, first in training.first]
            training._after_step()
            after = model(x.double())
        # what is left is ε, 1e-5 beside a unit's variance
        assert torch.allclose(after, before, rtol=0, atol=2e-2 * float(before.std())) == same


def test_a_training_ends_at_its_first_loss_that_is_no_number(dataset):
    arm = TunedArm(learning_rate=1e8, **SMALL | dict(steps=50))
    training = Tuned(arm, SEED, dataset)
    training.to_the_end()
    assert training.step < 10
    assert train_tuned(arm, SEED, dataset)["diverged"] == 1
    assert Diverged(dataset).result(0.0) == {}


@pytest.mark.parametrize("wrong", [dict(optimizer="lion"), dict(warm_up=-1), dict(clip=-1.0)])
def test_what_it_does_not_know_is_refused_in_one_line(wrong):
    with pytest.raises(BnbookError, match="expected"):
        TunedArm(**wrong)
