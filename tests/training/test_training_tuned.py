"""What practice adds to plain SGD, each against a loop that says it once more in plain torch."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.chapters.training import HE
from bnbook.data import load
from bnbook.data.batches import Batches
from bnbook.errors import BnbookError
from bnbook.training.arm import Arm
from bnbook.training.engine import train
from bnbook.training.tuned import Diverged, Tuned, TunedArm, hidden, train_tuned

SMALL = dict(width=1 / 16, steps=5, batch_size=16, data="textures-standin", evaluate_every=0)
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
    """Losses of a loop that calls `step(network, gradients, number)` to move the weights."""
    network, losses = first_network(arm, dataset), []
    for number, (x, y) in enumerate(batches(arm, dataset)):
        loss = F.cross_entropy(network(x), y)
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        losses.append(loss.item())
        with torch.no_grad():
            step(network, gradients, number)
    return losses, network


def descend(rate, network, gradients):
    for weight, slope in zip(network.parameters(), gradients, strict=True):
        weight.sub_(rate * slope)


def losses_of(arm, dataset):
    return train_tuned(arm, SEED, dataset)["loss"]


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_without_anything_added_it_is_the_engines_training_to_the_last_bit(norm, dataset):
    plain = train(Arm(norm=norm, **SMALL), SEED, dataset)
    tuned = train_tuned(TunedArm(norm=norm, **SMALL), SEED, dataset)
    assert plain.keys() == tuned.keys()
    for name, values in plain.items():
        np.testing.assert_array_equal(tuned[name], values)


def test_warm_up_grows_along_a_line_to_the_rate(dataset):
    arm = TunedArm(options=HE, warm_up=4, learning_rate=0.004, **SMALL)
    rates = [0.001, 0.002, 0.003, 0.004, 0.004]
    expected, _ = by_hand(arm, dataset, lambda net, g, k: descend(rates[k], net, g))
    np.testing.assert_allclose(losses_of(arm, dataset), expected, rtol=1e-5)
    assert not np.allclose(losses_of(replace(arm, warm_up=0), dataset)[1:], expected[1:], rtol=1e-3)


def test_a_long_gradient_is_cut_over_all_parameters_together_and_a_short_one_stays(dataset):
    seen = []

    def clipped(network, gradients, _):
        size = torch.cat([g.flatten() for g in gradients]).norm()
        seen.append(float(size))
        descend(0.01, network, [g * min(1.0, 0.5 / float(size)) for g in gradients])

    arm = TunedArm(options=HE, clip=0.5, learning_rate=0.01, **SMALL)
    expected, _ = by_hand(arm, dataset, clipped)
    np.testing.assert_allclose(losses_of(arm, dataset), expected, rtol=1e-4)
    assert max(seen) > 0.5
    longer = replace(arm, clip=1e6, learning_rate=1e-4)
    np.testing.assert_allclose(losses_of(longer, dataset), losses_of(replace(longer, clip=0.0), dataset))


@pytest.mark.parametrize(("momentum", "optimizer"), [(0.9, "sgd"), (0.0, "adamw")], ids=["momentum", "AdamW"])
def test_optimizers_are_their_formulas(momentum, optimizer, dataset):
    arm = TunedArm(
        norm="batch", optimizer=optimizer, momentum=momentum, weight_decay=0.1, learning_rate=0.01, **SMALL
    )
    m, v = {}, {}

    def step(network, gradients, k):
        for place, (weight, g) in enumerate(zip(network.parameters(), gradients, strict=True)):
            if optimizer == "sgd":  # v ← 0.9 v + g + λ θ, θ ← θ - η v
                m[place] = 0.9 * m.get(place, 0.0) + g + 0.1 * weight
                weight.sub_(0.01 * m[place])
                continue
            m[place] = 0.9 * m.get(place, 0.0) + 0.1 * g
            v[place] = 0.999 * v.get(place, 0.0) + 0.001 * g.square()
            first, second = m[place] / (1 - 0.9 ** (k + 1)), v[place] / (1 - 0.999 ** (k + 1))
            weight.mul_(1 - 0.01 * 0.1).sub_(0.01 * first / (second.sqrt() + 1e-8))

    expected, _ = by_hand(arm, dataset, step)
    np.testing.assert_allclose(losses_of(arm, dataset), expected, rtol=2e-3)


def test_crop_and_flip_are_those_of_the_engine(dataset):
    arm = TunedArm(norm="batch", augment=True, **SMALL)
    expected, _ = by_hand(arm, dataset, lambda net, g, _: descend(0.1, net, g))
    np.testing.assert_allclose(losses_of(arm, dataset), expected, rtol=1e-4)
    assert not np.allclose(losses_of(replace(arm, augment=False), dataset)[0], expected[0], rtol=1e-4)


def rows(network):
    return [layer.weight.detach().flatten(1).norm(dim=1) for layer in hidden(network)]


def test_lengths_put_back_stay_the_first_of_each_unit_and_the_readout_is_left_alone(dataset):
    arm = TunedArm(norm="batch", lengths_kept=True, learning_rate=0.5, **SMALL)
    training = Tuned(arm, SEED, dataset)
    first, readout = rows(training.model), training.model.linear11.weight.detach().clone()
    directions = [layer.weight.detach().clone() for layer in hidden(training.model)]
    training.to_the_end()
    for before, after in zip(first, rows(training.model), strict=True):
        torch.testing.assert_close(after, before, rtol=1e-5, atol=0)
    for before, layer in zip(directions, hidden(training.model), strict=True):
        assert not torch.allclose(layer.weight, before, rtol=1e-3)
    assert not torch.allclose(training.model.linear11.weight.norm(dim=1), readout.norm(dim=1), rtol=1e-4)
    free = Tuned(replace(arm, lengths_kept=False), SEED, dataset)
    free.to_the_end()
    assert all(bool((after > before).all()) for before, after in zip(first, rows(free.model), strict=True))


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


def test_lengths_put_back_are_a_loop_that_divides_by_hand(dataset):
    arm = TunedArm(norm="batch", lengths_kept=True, learning_rate=0.1, **SMALL)
    first = rows(first_network(arm, dataset))

    def step(network, gradients, _):
        descend(0.1, network, gradients)
        for layer, lengths in zip(hidden(network), first, strict=True):
            for unit, length in enumerate(lengths):
                layer.weight[unit] *= length / layer.weight[unit].norm()

    expected, _ = by_hand(arm, dataset, step)
    np.testing.assert_allclose(losses_of(arm, dataset), expected, rtol=2e-3)


@pytest.mark.parametrize("norm", ["rms", "standardized", "standardized_centred", "layer"])
def test_other_layers_train_as_plain_torch_does(norm, dataset):
    arm = TunedArm(norm=norm, learning_rate=0.05, **SMALL)
    expected, _ = by_hand(arm, dataset, lambda net, g, _: descend(0.05, net, g))
    np.testing.assert_allclose(losses_of(arm, dataset), expected, rtol=1e-3)


def test_a_training_ends_at_its_first_loss_that_is_no_number(dataset):
    arm = TunedArm(learning_rate=1e8, **SMALL | dict(steps=50))
    training = Tuned(arm, SEED, dataset)
    training.to_the_end()
    assert training.step < 10
    assert train_tuned(arm, SEED, dataset)["diverged"] == 1
    assert Diverged(dataset).result(0.0) == {}


@pytest.mark.parametrize(
    "own",
    [
        dict(norm="batch", lengths_kept=True),
        dict(optimizer="adamw", warm_up=3, clip=1.0, options=HE),
        dict(norm="standardized_centred", momentum=0.9),
    ],
    ids=lambda own: own.get("norm", "adamw"),
)
def test_it_goes_on_from_a_checkpoint_to_the_last_bit(own, dataset):
    arm = TunedArm(learning_rate=0.01, **own, **SMALL)
    whole = train_tuned(arm, SEED, dataset)
    begun = Tuned(arm, SEED, dataset)
    begun.advance(), begun.advance()
    other = Tuned(arm, SEED, dataset)
    other.load_state(begun.state())
    np.testing.assert_array_equal(other.to_the_end()["loss"][0], whole["loss"])


@pytest.mark.parametrize("wrong", [dict(optimizer="lion"), dict(warm_up=-1), dict(clip=-1.0)])
def test_what_it_does_not_know_is_refused_in_one_line(wrong):
    with pytest.raises(BnbookError, match="expected"):
        TunedArm(**wrong)
