"""A training that stops between two steps and goes on in another object is the uninterrupted one, to the last
bit, whatever ran in between."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from functools import cache
from itertools import zip_longest

import numpy as np
import pytest
import torch

from bnbook.data import load
from bnbook.deep_linear import LinearArm
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.practice import Practice
from bnbook.training.probes import Probes
from bookpress.runs import kinds

TEXTURES = "textures-standin"
VGG = dict(
    width=1 / 32, steps=6, batch_size=16, data=TEXTURES, evaluate_every=3, train_examples=16, test_examples=16
)
WATCHED = dict(activation_layers=(2, 9), activation_units=2, activation_examples=16)
PROBES = Probes(
    probe_steps=(0, 1),
    landscape=(0.5,),
    random_directions=(1.0,),
    covariate_shift=True,
    placed_layers=(2, 9),
    removed_gradient=True,
)
SMALL = dict(hidden=(6, 5), batch_size=30, steps=7, data=TEXTURES, test_examples=20)
LINEAR = dict(depth=3, width=4, examples=20, steps=9, learning_rate=1e-3, probe_steps=(0, 4, 8))
KINDS = {
    "batch": [(Arm(norm="batch", momentum=0.9, weight_decay=1e-3, **VGG, **WATCHED), 1)],
    "noisy, augmented, two epochs": [
        (Arm(norm="noisy", augment=True, learning_rate=0.02, **VGG | dict(batch_size=30, steps=3)), 2)
    ],
    "diverges at the end": [(Arm(norm="none", **VGG | dict(learning_rate=1e9, steps=1)), 0)],
    "diverges": [(Arm(norm="none", **VGG | dict(learning_rate=300.0, evaluate_every=1)), 0)],
    "probed and placed, noisy": [
        (Arm(norm="noisy", **VGG | dict(steps=3, activation_examples=20), instruments=PROBES), 7)
    ],
    "tuned": [(Arm(norm="batch", optimizer=Practice("adamw", 3, 1.0, True), **VGG), 3)],
    "resnet": [(Arm("batch", architecture="resnet", momentum=0.9, **VGG | dict(steps=2, batch_size=8)), 7)],
    "small, fc": [
        (PhaseArm(**SMALL, learning_rate=rate), seed) for seed, rate in enumerate((0.01, 1e4, 0.05))
    ],
    "small, conv, chosen examples": [
        (PhaseArm(**SMALL, network="conv", norm="none", learning_rate=1e-3, examples=60), 2)
    ],
    "small, lost": [(PhaseArm(**SMALL, learning_rate=1e5), 0)],
    "linear": [(LinearArm("batch", **LINEAR), 0), (LinearArm("batch", **LINEAR | dict(momentum=0.9)), 1)],
    "linear, scaled targets": [(LinearArm("none", target_std=0.3, **LINEAR), 1)],
    "linear, one lost": [(LinearArm("l1", **LINEAR | dict(learning_rate=rate)), 1) for rate in (1e-3, 1e9)],
}


@cache
def few():
    """70 examples: an epoch ends after two batches of 30."""
    whole = load(TEXTURES)
    return replace(whole, train_images=whole.train_images[:70], train_labels=whole.train_labels[:70])


def begin(name):
    members = KINDS[name]
    return kinds.start(members, few() if hasattr(members[0][0], "data") else None)


def to_the_end(training):
    with np.errstate(invalid="ignore", over="ignore"):
        return training.to_the_end()


def identical(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype and one[name].shape == other[name].shape, name
        assert one[name].tobytes() == other[name].tobytes(), name


def moved(training, name):
    """The training in a new object, by way of what a file would hold; others draw numbers in between."""
    file = io.BytesIO()
    torch.save(training.state(), file)
    torch.manual_seed(12345)
    other = begin(name)
    if random.random() < 0.5:
        other.advance()  # it need not be fresh
    other.load_state(torch.load(io.BytesIO(file.getvalue()), weights_only=True, map_location="cpu"))
    return other


@pytest.mark.parametrize("name", KINDS)
def test_interrupted_at_any_step_it_is_the_same_training(name):
    whole, training = to_the_end(begin(name)), begin(name)
    random.seed(name)
    more = True
    while more:
        if random.random() < 0.6:
            training = moved(training, name)
        more = training.advance()
    identical(whole, training.result())
    ended = moved(training, name)  # also when nothing but the result is left to make
    assert not ended.advance()
    identical(whole, ended.result())


def test_two_trainings_in_turns_are_the_two_trainings():
    names = "noisy, augmented, two epochs", "batch"
    both = [begin(name) for name in names]
    for _ in zip_longest(*(iter(each.advance, False) for each in both)):
        torch.rand(3)
    for name, training in zip(names, both):
        identical(to_the_end(begin(name)), training.result())


@pytest.mark.parametrize("name", ["noisy, augmented, two epochs", "small, fc", "linear"])
def test_a_step_leaves_random_state_and_threads_as_they_were(name):
    torch.manual_seed(5)
    torch.set_num_threads(2)
    try:
        state = torch.get_rng_state()
        training = begin(name)
        training.advance()
        assert torch.equal(state, torch.get_rng_state()) and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_a_state_is_a_copy():
    training = begin("batch")
    training.advance()
    before = training.state()
    kept = {name: tensor.clone() for name, tensor in before["model"].items()} | {
        "losses": before["losses"].clone()
    }
    same = lambda: all(
        torch.equal(kept[name].nan_to_num(), now.nan_to_num())
        for name, now in [*before["model"].items(), ("losses", before["losses"])]
    )
    training.advance()
    assert same()
    training.load_state(before)
    training.advance()
    assert same() and training.step == 2
