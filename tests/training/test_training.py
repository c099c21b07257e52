"""The engine against a loop in plain torch, whatever its arm has; its evaluations, and what a divergence leaves."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrize

from bnbook import models
from bnbook.chapters.vgg import HE
from bnbook.data import load, normalise
from bnbook.data.batches import Batches
from bnbook.normalizers.per_example import RmsNorm
from bnbook.normalizers.standardized import Affine, WeightStandardization
from bnbook.training.arm import Arm, build_model
from bnbook.training.engine import SGD, Evaluation, Seen, evaluate, train
from bnbook.training.flops import estimate_operations
from bnbook.training.numerics import numerics
from bnbook.training.practice import Practice

SMALL = Arm(width=1 / 32, steps=5, batch_size=16, data="textures-standin", evaluate_every=0)
WATCHED = dict(activation_layers=(2, 9), activation_units=2, activation_examples=16)
TINY = replace(
    SMALL, norm="batch", steps=6, batch_size=8, evaluate_every=3, train_examples=16, test_examples=24
)
SEED = 3


@pytest.fixture(scope="module")
def textures():
    return load("textures-standin")


def weighted(network):
    """Layers with weights, but for the readout."""
    return [layer for layer in network.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))][:-1]


NORMS = {"rms": RmsNorm, "standardized": Affine, "centred": partial(Affine, centred=True)}
NORMS["standardized_centred"] = NORMS["centred"]


def by_hand(arm, dataset, step):
    """Losses of a loop that calls `step(weights, gradients, number, what it keeps)` to move the weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        make, norm = getattr(models, arm.architecture), NORMS.get(arm.norm, arm.norm)
        network = make(width=arm.width, norm=norm, **dict(arm.options)).train()
        network = network.to(memory_format=torch.channels_last)
    for layer in weighted(network) if arm.norm.startswith("standardized") else ():
        parametrize.register_parametrization(layer, "weight", WeightStandardization())
    made = Batches(dataset, arm.batch_size, torch.Generator().manual_seed(1_000_003 + SEED))
    losses, kept = [], {"layers": weighted(network)}
    for number in range(arm.steps):
        x, y = next(made)
        loss = F.cross_entropy(network(x), y)
        gradients = torch.autograd.grad(loss, list(network.parameters()))
        losses.append(loss.item())
        with torch.no_grad():
            step(list(network.parameters()), gradients, number, kept)
    return losses


def descend(rate, weights, gradients):
    for weight, slope in zip(weights, gradients, strict=True):
        weight.sub_(rate * slope)


def plainly(rate):
    return lambda weights, gradients, *_: descend(rate, weights, gradients)


def warm(weights, gradients, k, _):
    descend([0.001, 0.002, 0.003, 0.004, 0.004][k], weights, gradients)


def clipped(weights, gradients, *_):
    size = torch.cat([g.flatten() for g in gradients]).norm()
    assert size > 0.5
    descend(0.01, weights, [g * min(1.0, 0.5 / float(size)) for g in gradients])


def momentum(weights, gradients, _, v):
    """v ← 0.9 v + g + λ θ, θ ← θ - η v"""
    for place, (weight, g) in enumerate(zip(weights, gradients, strict=True)):
        v[place] = 0.9 * v.get(place, 0.0) + g + 0.1 * weight
        weight.sub_(0.01 * v[place])


def adamw(weights, gradients, k, kept):
    for place, (weight, g) in enumerate(zip(weights, gradients, strict=True)):
        m, v = kept.get(place, (0.0, 0.0))
        kept[place] = m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g.square()
        first, second = m / (1 - 0.9 ** (k + 1)), v / (1 - 0.999 ** (k + 1))
        weight.mul_(1 - 0.01 * 0.1).sub_(0.01 * first / (second.sqrt() + 1e-8))


def divided(weights, gradients, _, kept):
    first = kept.setdefault("first", [layer.weight.flatten(1).norm(dim=1) for layer in kept["layers"]])
    descend(0.1, weights, gradients)
    for layer, lengths in zip(kept["layers"], first, strict=True):
        for unit, length in enumerate(lengths):
            layer.weight[unit] *= length / layer.weight[unit].norm()


DECAYED = replace(SMALL, norm="batch", learning_rate=0.01, momentum=0.9, weight_decay=0.1)
ADAMW = replace(SMALL, norm="batch", learning_rate=0.01, weight_decay=0.1, optimizer=Practice("adamw"))
START = replace(SMALL, options=HE)
LOOPS = {  # an arm, the step by hand, how close the losses are
    "plain": (SMALL, plainly(0.1), 1e-5),
    "momentum": (DECAYED, momentum, 2e-3),
    "momentum, in practice": (replace(DECAYED, optimizer=Practice()), momentum, 2e-3),
    "vgg16": (replace(DECAYED, architecture="vgg16", options=(("gamma", 0.3),)), momentum, 2e-3),
    "resnet": (replace(DECAYED, architecture="resnet", options=(("gamma", 0.3),)), momentum, 2e-3),
    "warm-up": (replace(START, learning_rate=0.004, optimizer=Practice(warm_up=4)), warm, 1e-5),
    "clipped": (replace(START, learning_rate=0.01, optimizer=Practice(clip=0.5)), clipped, 1e-4),
    "AdamW": (ADAMW, adamw, 2e-3),
    "lengths kept": (replace(SMALL, norm="batch", optimizer=Practice(lengths_kept=True)), divided, 2e-3),
} | {norm: (replace(SMALL, norm=norm, learning_rate=0.05), plainly(0.05), 1e-3) for norm in NORMS}


@pytest.mark.parametrize("name", LOOPS)
def test_a_training_is_a_loop_in_plain_torch(name, textures):
    arm, step, close = LOOPS[name]
    np.testing.assert_allclose(train(arm, SEED, textures)["loss"], by_hand(arm, textures, step), rtol=close)


def test_a_practice_of_plain_sgd_is_plain_sgd_to_the_last_bit(textures):
    arm = replace(SMALL, norm="batch")
    plain, tuned = (train(each, SEED, textures) for each in (arm, replace(arm, optimizer=Practice())))
    assert plain.keys() == tuned.keys()
    for name, values in plain.items():
        np.testing.assert_array_equal(tuned[name], values)


def test_in_practice_a_training_ends_at_its_first_loss_that_is_no_number(textures):
    training = SGD(replace(SMALL, learning_rate=1e8, steps=50, optimizer=Practice()), SEED, textures)
    assert training.to_the_end()["diverged"] == [1] and training.step < 10


def test_looking_changes_nothing_and_a_shorter_run_is_the_beginning(textures):
    watched = train(replace(TINY, **WATCHED), 0, textures, threads=1)
    alone = train(replace(TINY, evaluate_every=0, steps=4), 0, textures, threads=1)
    assert np.array_equal(watched["loss"][:4], alone["loss"])
    assert "test_loss" not in alone and list(watched["step"]) == [0, 3, 6]
    assert watched["histogram"].shape[:3] == (3, 2, 2) and watched["mean_2"].shape[0] == 3


def test_an_evaluation_uses_population_statistics_and_keeps_the_mode(textures):
    torch.manual_seed(0)
    model = build_model(TINY, textures).train()
    images, labels = textures.test_images[:10], textures.test_labels[:10]
    with torch.no_grad():
        model(normalise(textures.train_images[:64], textures))  # moves the running statistics
        model.eval()
        outputs = torch.cat([model(normalise(image[None], textures)) for image in images])
    model.train()
    loss, accuracy = evaluate(model, images, labels, textures)
    assert loss == pytest.approx(F.cross_entropy(outputs, labels).item(), rel=1e-5)
    assert accuracy == (outputs.argmax(1) == labels).double().mean().item() and model.training
    evaluate(model.eval(), images, labels, textures)
    assert not any(module.training for module in model.modules())


def test_divergence_is_a_result(textures):
    arm = replace(TINY, norm="none", learning_rate=1e9, steps=12, **WATCHED)
    found = train(arm, 0, textures)
    last = int(found["diverged_step"])
    assert found["diverged"] == 1 and 1 <= last <= 6
    for name in ("loss", "accuracy"):
        assert np.isfinite(found[name][:last]).all() and np.isnan(found[name][last:]).all()
    assert found["test_accuracy"].shape == (5,) and np.isfinite(found["test_accuracy"][0])
    assert np.isnan(found["test_accuracy"][-1]) and np.isnan(found["histogram"][-1]).all()


def test_what_was_evaluated_before_the_batch_that_diverged_is_kept():
    """Checkpoints 0, 3, 6; the loss of the batch after three updates is no number: the network of three is
    known."""
    names = [f"{part}_{what}" for part in ("train", "test") for what in ("loss", "accuracy")]
    seen = Seen({step: dict.fromkeys(names, torch.tensor(0.5)) for step in (0, 3, 6)})
    lost = lambda diverged: np.isnan(Evaluation().result(TINY, seen, diverged)["test_loss"]).tolist()
    assert lost(3.0) == [False, False, True] and lost(math.nan) == [False] * 3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here: CPU and GPU cannot be compared")
def test_cpu_and_gpu_agree_within_a_stated_tolerance(textures):
    """Full float32 on both: 20 losses without batch norm agree to 1e-3, with it the first one."""
    there = load("textures-standin", device="cuda")
    for norm, steps in (("none", 20), ("batch", 1)):
        arm = replace(SMALL, norm=norm, width=1 / 16, batch_size=32, steps=20, learning_rate=0.02)
        here, gpu = train(arm, 0, textures, device="cpu"), train(arm, 0, there, device="cuda")
        np.testing.assert_allclose(gpu["loss"][:steps], here["loss"][:steps], rtol=1e-3)


def test_numerics_are_put_back_after_an_error():
    before = torch.backends.cudnn.allow_tf32, torch.are_deterministic_algorithms_enabled()
    with pytest.raises(ZeroDivisionError), numerics(torch.device("cuda"), 1):
        assert not torch.backends.cuda.matmul.allow_tf32 and torch.are_deterministic_algorithms_enabled()
        raise ZeroDivisionError
    assert before == (torch.backends.cudnn.allow_tf32, torch.are_deterministic_algorithms_enabled())


def test_operations_against_a_count_by_hand(textures):
    """Multiply-adds twice, forward once and backward twice, but for the gradient of the images, which nobody
    needs."""
    sizes = [
        (3, 64, 32), (64, 128, 16), (128, 256, 8), (256, 256, 8), (256, 512, 4), (512, 512, 4), (512, 512, 2),
        (512, 512, 2),
    ]  # fmt: skip
    forward = [9 * a * b * side**2 for a, b, side in sizes] + [512 * 512, 512 * 512, 512 * 10]
    expected = 2 * (3 * sum(forward) - forward[0]) * 128 * 15_000
    found = estimate_operations(Arm(norm="batch", data="textures-standin"), textures)
    assert found == pytest.approx(expected, rel=1e-9)
