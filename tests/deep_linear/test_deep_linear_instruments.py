"""The instruments of a stack against the book's probes of one model and plain definitions; their summaries on made-up curves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_deep_linear_training import squares, twin

from bnbook.deep_linear import LEVELS, LinearArm, Parameters, draw_examples, draw_problem, train_stack
from bnbook.deep_linear import summaries as of
from bnbook.deep_linear.instruments import correlations, random_direction
from bnbook.errors import BnbookError
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
@pytest.mark.parametrize("changes", [{}, {"normalize_last": True}, {"affine": False}])
def test_a_stack_sees_what_the_probes_of_one_model_see(norm, changes):
    _, found, model, batch = probed(norm, step=2, **changes)
    there, shift = (
        along_gradient(model, squares, batch, [RATE * a for a in LENGTHS]),
        measure(model, squares, batch, RATE),
    )
    expected = {
        "landscape_loss": there.loss,
        "landscape_distance": there.gradient_distance,
        "landscape_norm": there.gradient_norm,
        "start_loss": there.start_loss,
        "start_norm": there.start_norm,
        "shift_distance": shift.distance,
        "shift_cosine": shift.cosine,
        "shift_norm": shift.norm,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value.numpy(), rtol=1e-8, atol=1e-9, err_msg=name)
    assert found["shift_distance"][0] == 0
    assert found["shift_distance"][1:].min() > 1e-3 * found["shift_norm"].max()
    values, kept = batch[0], {}
    for name, module in model.named_children():
        kept[name] = values = module(values).detach()
    for layer in (0, 2, 3):
        for prefix, name in (("", f"linear{layer + 1}"), ("handed_on_", f"norm{layer + 1}")):
            y = kept.get(name, values)
            np.testing.assert_allclose(found[f"{prefix}mean"][layer], y.mean(0), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found[f"{prefix}deviation"][layer], y.std(0, correction=0), rtol=1e-5)
            expected = np.quantile(y[:, 0], LEVELS)
            np.testing.assert_allclose(found[f"{prefix}quantiles"][layer], expected, rtol=1e-5, atol=1e-6)


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


def test_probes_change_nothing():
    arm = LinearArm("batch", learning_rate=RATE, steps=12, depth=4, width=5, examples=40)
    one, other = train_stack([(arm, 0)]), train_stack([(replace(arm, probe_steps=(0, 3, 11)), 0)])
    for name in ("loss", "residual_energy"):
        np.testing.assert_array_equal(one[name], other[name])
    np.testing.assert_array_equal(other["start_loss"][0], other["loss"][0, [0, 3, 11]])


SIZE = dict(depth=3, width=4, examples=30)


def test_each_weight_against_the_examples():
    problem, arm = draw_problem([2, 5], **SIZE), LinearArm(**SIZE)
    network = arm.network()
    seen = correlations(network, network.start(problem), problem)
    for member, seed in enumerate((2, 5)):
        x, a = draw_examples(seed, SIZE["width"], SIZE["examples"])
        weights = problem.weights[:, member]
        for layer in range(SIZE["depth"]):
            inputs = x
            for weight in weights[:layer]:
                inputs = inputs @ weight.T
            y = (inputs @ weights[layer].T).requires_grad_()
            out = y
            for weight in weights[layer + 1 :]:
                out = out @ weight.T
            (g,) = torch.autograd.grad(((out - x @ a.T) ** 2).sum(), y)
            cosine = torch.nn.functional.cosine_similarity(g[:, :, None], inputs[:, None], dim=0)  # (j, i)
            floor = (1 + 1 / cosine.abs()) / 2
            share = (y.detach().std(0, correction=0)[:, None] >= floor).double().mean()
            c = np.sort((cosine**2).flatten().numpy())
            assert float(seen["correlation"][member, layer]) == pytest.approx(c[(len(c) - 1) // 2])
            assert float(seen["bounded"][member, layer]) == pytest.approx(float(share))


def test_a_training_of_the_plain_network_has_them_and_a_divergence_has_none():
    size = SIZE | dict(steps=3, probe_steps=(0, 2), lengths=(1.0,), random_lengths=(1.0,))
    run = train_stack([(LinearArm("none", 1e-3, **size), 0), (LinearArm("none", 1e6, **size), 0)])
    assert np.isfinite(run["correlation"][0]).all() and 0 <= run["bounded"][0].min() <= 1
    assert np.isnan(run["correlation"][1, 1]).all() and np.isnan(run["bounded"][1, 1]).all()
    assert "correlation" not in train_stack([(LinearArm("batch", 1e-3, **size), 0)])


def test_a_normalized_network_is_refused():
    problem, network = draw_problem([0], **SIZE), LinearArm("batch", **SIZE).network()
    with pytest.raises(BnbookError, match="norm 'batch'"):
        correlations(network, network.start(problem), problem)


NAN, INF = np.nan, np.inf


def made_up(loss, **more):
    loss = np.array(loss, dtype=float)
    ends = np.where(np.isfinite(loss).all(1), INF, 1.0)
    steps = np.tile(np.linspace(0, 100, loss.shape[1]), (len(loss), 1))
    energy = np.tile([6.0, 3.0, 1.0], (len(loss), 1))
    return {"loss": loss, "loss_step": steps, "diverged_at": ends, "target_energy": energy} | more


def test_losses():
    arm, run = LinearArm(steps=100), made_up([[10, 5, 2.5], [20, NAN, NAN]])
    np.testing.assert_allclose(of.loss_share(arm, run), [[1, 0.5, 0.25], [2, 1, 1]])
    np.testing.assert_allclose(of.mean_log_loss(arm, run), [0.5, 2**0.25])
    mean = LinearArm(steps=100, reduction="mean", examples=20)
    np.testing.assert_allclose(of.loss_share(mean, made_up([[1, 0.5]])), [[2, 1]])
    assert list(of.diverged(run)) == [0, 1]


def test_landscape():
    """Each measure against its definition, written out for one member and step."""
    arm = LinearArm(
        "batch", 1e-3, steps=4, depth=3, width=4, examples=20, probe_steps=(0, 3), lengths=(30.0, 0.1, 100.0)
    )
    run = train_stack([(arm, 0)])
    seen = of.landscape(arm, run)
    loss, distance = run["landscape_loss"][0, 1], run["landscape_distance"][0, 1]
    norm, whole = run["start_norm"][0, 1], run["target_energy"][0].sum()
    expected = {
        "loss_range": abs(loss[1] - loss[0]) / whole,
        "gradient_change": max(distance[:2]),
        "relative_change": max(distance[:2]) / norm,
        "smoothness": max(distance[1] / (1e-4 * norm), distance[0] / (0.03 * norm)),
        "local": distance[1] / (1e-4 * norm),  # of the smallest length, wherever it stands
        "beyond": distance[2] / (0.1 * norm),
        "random_change": np.abs(run["random_loss"][0, 1] - run["start_loss"][0, 1]).max() / whole,
        "cosine": run["shift_cosine"][0, 1, 1:].mean(),
        "absolute_cosine": np.abs(run["shift_cosine"][0, 1, 1:]).mean(),
        "shift": run["shift_distance"][0, 1, 1:].mean(),
        "relative_shift": (run["shift_distance"] / run["shift_norm"])[0, 1, 1:].mean(),
    }
    for name, value in expected.items():
        np.testing.assert_allclose(seen[name][0, 1], value, rtol=1e-12, err_msg=name)
    run["landscape_loss"][0, 0, 1] = NAN  # overflowed on the way
    run["start_loss"][0, 1] = NAN  # diverged
    run["landscape_loss"][0, 1] = NAN
    again = of.landscape(arm, run)
    assert np.isinf(again["loss_range"][0, 0]) and np.isnan(again["loss_range"][0, 1])
