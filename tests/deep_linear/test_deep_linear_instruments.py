"""The probes of a stack against the book's probes of one model, and against the plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_deep_linear_training import squares, twin

from bnbook.deep_linear import LEVELS, LinearArm, Parameters, draw_problem, train_stack
from bnbook.deep_linear.instruments import random_direction
from bnbook.probes.covariate_shift import measure
from bnbook.probes.landscape import along_direction, along_gradient

NORMS = ("none", "batch", "l1", "l2", "linf")
RATE, LENGTHS = 2e-3, (0.1, 1.0, 4.0)


def probed(norm, step=0, **changes):
    arm = LinearArm(
        norm,
        learning_rate=RATE,
        steps=step + 1,
        depth=4,
        width=5,
        examples=40,
        probe_steps=(step,),
        lengths=LENGTHS,
        random_lengths=(0.5, 3.0),
        **changes,
    )
    found = train_stack([(arm, 3)])
    model, x, y = twin(arm, 3)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
    for _ in range(step):
        optimizer.zero_grad()
        squares(model(x), y).backward()
        optimizer.step()
    return arm, {name: value[0, 0] for name, value in found.items() if value.ndim > 1}, model.train(), (x, y)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("changes", [{}, {"normalize_last": True, "affine": False}])
def test_along_the_gradient(norm, changes):
    _, found, model, batch = probed(norm, step=2, **changes)
    there = along_gradient(model, squares, batch, [RATE * length for length in LENGTHS])
    expected = {
        "landscape_loss": there.loss,
        "landscape_distance": there.gradient_distance,
        "landscape_norm": there.gradient_norm,
        "start_loss": there.start_loss,
        "start_norm": there.start_norm,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value.numpy(), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("changes", [{}, {"normalize_last": True}, {"affine": False}])
def test_covariate_shift(norm, changes):
    _, found, model, batch = probed(norm, step=2, **changes)
    expected = measure(model, squares, batch, RATE)
    assert (
        found["shift_distance"][0] == 0
        and found["shift_distance"][1:].min() > 1e-3 * found["shift_norm"].max()
    )
    np.testing.assert_allclose(found["shift_distance"], expected.distance.numpy(), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found["shift_cosine"], expected.cosine.numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["shift_norm"], expected.norm.numpy(), rtol=1e-9)


@pytest.mark.parametrize("changes", [{}, {"affine": False}])
def test_random_direction(changes):
    arm, found, model, batch = probed("batch", **changes)
    start = arm.network().start(draw_problem([3], arm.depth, arm.width, arm.examples))
    length = torch.tensor([2.0], dtype=torch.float64)
    drawn = random_direction(start, length, [1_000_003 * 3 + 500_000], arm.affine)
    order = [tensor for layer in range(arm.depth) for tensor in own(drawn, layer, arm.affine)]
    assert abs(sum((tensor**2).sum() for tensor in order).item() - 4) < 1e-12
    there = along_direction(model, squares, batch, [RATE * length for length in (0.5, 3.0)], direction=order)
    np.testing.assert_allclose(found["random_loss"], there.loss.numpy(), rtol=1e-9)
    np.testing.assert_allclose(found["random_distance"], there.gradient_distance.numpy(), rtol=1e-9)
    np.testing.assert_allclose(found["random_norm"], there.gradient_norm.numpy(), rtol=1e-9)


def own(parameters: Parameters, layer: int, affine: bool):
    """A layer's trained tensors in the order in which the model registers them."""
    yield parameters.weights[layer, 0]
    if affine and layer < len(parameters.gamma):
        yield from (parameters.gamma[layer, 0], parameters.beta[layer, 0])


@pytest.mark.parametrize("norm", ["none", "batch", "linf"])
def test_activations(norm):
    _, found, model, (x, _) = probed(norm, step=2)
    values, kept = x, []
    for name, module in model.named_children():
        values = module(values).detach()
        kept.append((name, values))
    for layer in (0, 2, 3):
        for prefix, name in (("", f"linear{layer + 1}"), ("handed_on_", f"norm{layer + 1}")):
            y = dict(kept).get(name, values)
            np.testing.assert_allclose(found[f"{prefix}mean"][layer], y.mean(0), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found[f"{prefix}deviation"][layer], y.std(0, correction=0), rtol=1e-5)
            expected = np.quantile(y[:, 0], LEVELS)
            np.testing.assert_allclose(found[f"{prefix}quantiles"][layer], expected, rtol=1e-5, atol=1e-6)


def test_probes_change_nothing():
    bare = LinearArm("batch", learning_rate=RATE, steps=12, depth=4, width=5, examples=40)
    looked = LinearArm(
        "batch", learning_rate=RATE, steps=12, depth=4, width=5, examples=40, probe_steps=(0, 3, 11)
    )
    one, other = train_stack([(bare, 0)]), train_stack([(looked, 0)])
    np.testing.assert_array_equal(one["loss"], other["loss"])
    np.testing.assert_array_equal(one["residual_energy"], other["residual_energy"])
    np.testing.assert_array_equal(other["start_loss"][0], other["loss"][0, [0, 3, 11]])
