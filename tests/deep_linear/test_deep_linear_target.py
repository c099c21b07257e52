"""A linear network that fits c · A x, against the model on the data, and against two other ways to say it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.deep_linear import LinearArm, draw_examples, draw_problem, summaries
from bnbook.deep_linear.descent import train_stack
from bnbook.deep_linear.target import TargetArm, start
from bnbook.models import deep_linear
from bookpress.runs.runner import train_all

SMALL = dict(depth=4, width=5, examples=40, steps=30, learning_rate=3e-3)
C = 0.3


def trained(arm, seed):
    return start([(arm, seed)]).to_the_end()


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_training_is_that_of_the_model_on_scaled_targets(norm):
    arm = TargetArm(norm, **SMALL, target_std=C)
    x, a = draw_examples(3, arm.width, arm.examples)
    model = deep_linear(arm.depth, arm.width, norm=norm).double()
    weights = draw_problem([3], arm.depth, arm.width, arm.examples).weights[:, 0]
    with torch.no_grad():
        for index, weight in enumerate(weights):
            model.get_submodule(f"linear{index + 1}").weight.copy_(weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=arm.learning_rate)
    losses = []
    for _ in range(arm.steps + 1):
        loss = (model(x) - C * (x @ a.T)).square().sum()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = trained(arm, 3)
    np.testing.assert_allclose(found["loss"][0], losses, rtol=1e-9)
    assert abs(losses[-1] / losses[0] - 1) > 0.05  # it did train
    zero = (C * (x @ a.T)).square().sum().item()  # the loss of answering zero
    np.testing.assert_allclose(summaries.loss_share(arm, found)[0], np.array(losses) / zero, rtol=1e-9)
    assert not np.allclose(train_stack([(LinearArm(norm, **SMALL), 3)])["loss"], found["loss"], rtol=0.01)


def test_behind_batch_norm_it_is_a_scale_of_the_inputs():
    """Batch norm takes the scale of x away again, and that of A x stays (but for ε)."""
    shape = SMALL | {"eps": 0.0, "probe_steps": (0, 7)}
    found = trained(TargetArm("batch", **shape, target_std=C), 4)
    inputs = train_stack([(LinearArm("batch", **shape, data_std=C), 4)])
    for name in ("loss", "landscape_loss", "shift_cosine", "target_energy"):
        np.testing.assert_allclose(found[name], inputs[name], rtol=1e-6, atol=1e-9)


def test_a_factor_of_one_is_the_usual_training_bit_for_bit():
    shape = SMALL | {"probe_steps": (0, 7)}
    found, usual = trained(TargetArm(**shape, target_std=1.0), 2), train_stack([(LinearArm(**shape), 2)])
    for name in usual:
        np.testing.assert_array_equal(found[name], usual[name])


def test_a_stack_and_the_store_have_it(monkeypatch, tmp_path):
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path))
    arms = [TargetArm(norm, **SMALL, target_std=c) for norm in ("none", "batch") for c in (C, 1.0)]
    found = train_all(arms, range(2), workers=1)
    for arm in arms:
        for seed in range(2):
            np.testing.assert_array_equal(found[arm]["loss"][seed], trained(arm, seed)["loss"][0])
