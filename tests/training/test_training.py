"""The engine against slow twins and closed forms, also from several first values of γ."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.curves import guessing
from bnbook.data import load, normalise
from bnbook.data.batches import Batches
from bnbook.training import engine, first_gamma
from bnbook.training.arm import Arm, build_model
from bnbook.training.engine import evaluate, train
from bnbook.training.first_gamma import NETWORKS, ScaleArm
from bnbook.training.flops import estimate_operations
from bnbook.training.numerics import numerics

TINY = Arm(
    norm="batch",
    width=1 / 32,
    steps=6,
    batch_size=8,
    data="textures-standin",
    evaluate_every=3,
    train_examples=16,
    test_examples=24,
    activation_layers=(2, 9),
    activation_units=2,
    activation_examples=16,
)


@pytest.fixture(scope="module")
def textures():
    return load("textures-standin")


def test_looking_changes_nothing_and_a_shorter_run_is_the_beginning(textures):
    watched = train(TINY, 0, textures, threads=1)
    alone = train(replace(TINY, evaluate_every=0, activation_layers=(), steps=4), 0, textures, threads=1)
    assert np.array_equal(watched["loss"][:4], alone["loss"])
    assert "test_loss" not in alone and list(watched["step"]) == [0, 3, 6]
    assert watched["histogram"].shape[:3] == (3, 2, 2) and watched["mean_2"].shape[0] == 3


def test_evaluate_uses_population_statistics_and_keeps_the_mode(textures):
    torch.manual_seed(0)
    model = build_model(TINY, textures).train()
    images, labels = textures.test_images[:10], textures.test_labels[:10]
    with torch.no_grad():
        model(normalise(textures.train_images[:64], textures))  # moves the running statistics
        model.eval()
        one_by_one = [model(normalise(image[None], textures)) for image in images]
    model.train()
    loss, accuracy = evaluate(model, images, labels, textures)
    outputs = torch.cat(one_by_one)
    assert loss == pytest.approx(F.cross_entropy(outputs, labels).item(), rel=1e-5)
    assert accuracy == (outputs.argmax(1) == labels).double().mean().item() and model.training
    evaluate(model.eval(), images, labels, textures)
    assert not any(module.training for module in model.modules())


def test_divergence_is_a_result(textures):
    arm = replace(TINY, norm="none", learning_rate=1e9, steps=12)
    found = train(arm, 0, textures)
    last = int(found["diverged_step"])
    assert found["diverged"] == 1 and 1 <= last <= 6
    for name in ("loss", "accuracy"):
        assert np.isfinite(found[name][:last]).all() and np.isnan(found[name][last:]).all()
    assert found["test_accuracy"].shape == (5,) and np.isfinite(found["test_accuracy"][0])
    assert np.isnan(found["test_accuracy"][-1]) and np.isnan(found["histogram"][-1]).all()
    assert np.allclose(guessing(found["test_accuracy"])[-1], 0.1)
    assert train(TINY, 0, textures)["diverged"] == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here: CPU and GPU cannot be compared")
def test_cpu_and_gpu_agree_within_a_stated_tolerance(textures):
    """Full float32 on both: 20 losses without batch norm agree to 1e-3, with it the first one (see above)."""
    there = load("textures-standin", device="cuda")
    for norm, steps in (("none", 20), ("batch", 1)):
        arm = replace(
            TINY, norm=norm, width=1 / 16, batch_size=32, steps=20, learning_rate=0.02, evaluate_every=0
        )
        here = train(arm, 0, textures, device="cpu")["loss"]
        np.testing.assert_allclose(
            train(arm, 0, there, device="cuda")["loss"][:steps], here[:steps], rtol=1e-3
        )


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
    ]  # fmt: skip
    sizes += [(512, 512, 2)]
    forward = [9 * a * b * side**2 for a, b, side in sizes] + [512 * 512, 512 * 512, 512 * 10]
    by_hand = 2 * (3 * sum(forward) - forward[0]) * 128 * 15_000
    assert estimate_operations(Arm(norm="batch", data="textures-standin"), textures) == pytest.approx(
        by_hand, rel=1e-9
    )


def test_what_was_evaluated_before_the_batch_that_diverged_is_kept(textures):
    """Checkpoints 0, 3, 6; the loss of the batch after three updates is no number: the network of three is
    known."""
    seen = engine.Evaluation(replace(TINY, activation_layers=()), textures)
    row = {f"{part}_{what}": torch.tensor(0.5) for part in ("train", "test") for what in ("loss", "accuracy")}
    seen.rows = [row, row, row]
    assert np.isnan(seen.result(3.0)["test_loss"]).tolist() == [False, False, True]
    assert not np.isnan(seen.result(math.nan)["test_loss"]).any()


ARM = ScaleArm(
    data="textures-standin",
    width=0.0625,
    batch_size=8,
    steps=3,
    evaluate_every=0,
    train_examples=20,
    test_examples=20,
)


@pytest.mark.parametrize("network", NETWORKS)
def test_training_is_that_of_a_plain_loop(network):
    arm = replace(ARM, network=network, gamma=0.3)
    dataset = load(arm.data)
    torch.manual_seed(5)
    model = arm.model(dataset).train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.0005)
    batches = Batches(dataset, 8, torch.Generator().manual_seed(1_000_003 + 5))
    losses = []
    for _ in range(3):
        inputs, targets = next(batches)
        loss = F.cross_entropy(model(inputs.to(memory_format=torch.channels_last)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_array_equal(first_gamma.train(arm, 5)["loss"], np.float32(losses))


@pytest.mark.parametrize("network", NETWORKS)
def test_arms_differ_in_gamma_alone(network):
    dataset, models = load(ARM.data), []
    for gamma in (0.1, 1.0):
        torch.manual_seed(2)
        models.append(dict(replace(ARM, network=network, gamma=gamma).model(dataset).named_parameters()))
    small, usual = models
    scales = [name for name in small if not torch.equal(small[name], usual[name])]
    assert len(scales) == (15 if network == "vgg16" else 17)
    for name in scales:
        assert (small[name] == 0.1).all() and (usual[name] == 1.0).all()
