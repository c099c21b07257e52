"""Stacked deep linear networks against the model of the same name, in data space, trained by autograd, and their
instruments against the book's probes of one model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bnbook.deep_linear import (
    LEVELS,
    LinearArm,
    Parameters,
    descent,
    draw_examples,
    draw_problem,
    spread_probes,
    summaries,
    train_stack,
)
from bnbook.deep_linear.instruments import correlations, random_direction
from bnbook.errors import BnbookError
from bnbook.models import deep_linear
from bnbook.probes.covariate_shift import measure
from bnbook.probes.landscape import along_direction, along_gradient

NORMS = ("none", "batch", "l1", "l2", "linf")
SMALL = dict(depth=4, width=5, examples=40, steps=30, learning_rate=1e-3)
SIZE = dict(depth=3, width=4, examples=30)
RATE, LENGTHS = 2e-3, (0.1, 1.0, 4.0)


def squares(outputs, targets):
    return ((outputs - targets) ** 2).sum()


def twin(arm, seed):
    """The arm's untrained model, in float64, its data (m, N) and its targets."""
    x, a = draw_examples(seed, arm.width, arm.examples, arm.data_std)
    model = deep_linear(arm.depth, arm.width, norm=arm.norm, normalize_last=arm.normalize_last).double()
    weights = draw_problem([seed], arm.depth, arm.width, arm.examples, arm.init, arm.data_std).weights[:, 0]
    with torch.no_grad():
        for index, weight in enumerate(weights):
            model.get_submodule(f"linear{index + 1}").weight.copy_(weight)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = arm.affine or name.startswith("linear")
    return model, x, arm.target_std * (x @ a.T)


def trained_twin(arm, seed):
    """Losses before each update and at the end, (steps + 1,); and the outputs at the end."""
    model, x, y = twin(arm, seed)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=arm.learning_rate, momentum=arm.momentum)
    losses = []
    for step in range(arm.steps + 1):
        loss = squares(model(x), y) / (1 if arm.reduction == "sum" else arm.examples)
        losses.append(loss.item())
        if step < arm.steps:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return np.array(losses), model(x).detach()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    "changes",
    [
        {"normalize_last": True},
        {"momentum": 0.9, "data_std": 0.5},
        {"affine": False, "init": "glorot-normal", "reduction": "mean", "learning_rate": 0.04},
        {"target_std": 0.3, "learning_rate": 3e-3},
    ],
)
def test_training_is_that_of_the_model_on_the_data(norm, changes):
    arm = LinearArm(norm, **(SMALL | changes))
    expected, outputs = trained_twin(arm, seed=3)
    found = descent.start([(arm, 3)]).to_the_end()
    assert found["loss"].shape == (1, 31) and not np.isnan(found["loss"]).any()
    np.testing.assert_allclose(found["loss"][0], expected, rtol=1e-9)
    assert abs(found["loss"][0, -1] / found["loss"][0, 0] - 1) > 0.05  # it did train
    np.testing.assert_allclose(found["final_energy"][0], torch.linalg.svdvals(outputs) ** 2, rtol=1e-8)
    unit = 1 if arm.reduction == "sum" else arm.examples
    of_zero = squares(0, twin(arm, 3)[2]).item() / unit
    np.testing.assert_allclose(summaries.loss_share(arm, found)[0], expected / of_zero, rtol=1e-9)


def test_seeds_pair_the_arms():
    plain, deeper = draw_problem([4, 5], depth=3), draw_problem([5], depth=6, init="glorot-normal")
    torch.testing.assert_close(plain.inputs[1], deeper.inputs[0])
    torch.testing.assert_close(plain.targets[1], deeper.targets[0])
    assert not torch.allclose(plain.weights[:, 0], plain.weights[:, 1])
    many, normal = (draw_problem(list(range(40)), depth=25, init=f"glorot{kind}") for kind in ("", "-normal"))
    assert many.weights.abs().max() < 0.3**0.5 < normal.weights.abs().max()  # a² = 6 / 20
    for drawn in (many, normal):
        assert abs(drawn.weights.var().item() - 0.1) < 0.002  # both have 2 / (fan_in + fan_out)
    # Every stream of random numbers is its own
    (x, a), weights = draw_examples(3, 20, 400), draw_problem([3], 1, 20, 400, "glorot-normal").weights[0, 0]
    for pair in ((weights, a), (weights, x[:20]), (a, x[:20])):
        assert abs(torch.corrcoef(torch.stack([each.flatten() for each in pair]))[0, 1]) < 0.2
    assert (x.std(), a.std()) == pytest.approx((1, 1), abs=0.1)


def test_a_diverged_member_stays_behind_alone():
    arm = LinearArm("batch", **SMALL, probe_steps=(0, 20))
    members = [(replace(arm, learning_rate=rate), 1) for rate in (1e-3, 10.0, 2e-3)]
    found = train_stack(members)
    lost = int(found["diverged_at"][1])
    assert list(found["diverged_at"][[0, 2]]) == [np.inf, np.inf] and 0 < lost < 20
    assert np.isfinite(found["loss"][1, :lost]).all() and np.isnan(found["loss"][1, lost:]).all()
    assert np.isnan(found["shift_distance"][1, 1]).all() and np.isnan(found["final_energy"][1]).all()
    for index in (0, 2):
        alone = train_stack([members[index]])
        for name, values in alone.items():
            np.testing.assert_array_equal(found[name][index], values[0], err_msg=name)


def test_a_lost_member_shows_nothing_more():
    """An overflow of the loss alone ends a member, though its gradient may still be finite."""
    found = train_stack([(LinearArm("none", **SMALL, data_std=1e155, probe_steps=(0,)), 0)])
    assert found["diverged_at"][0] == 0
    for name in ("loss", "start_norm", "landscape_norm", "shift_norm", "deviation"):
        assert np.isnan(found[name]).all(), name


def test_sum_is_mean_at_another_rate():
    whole = train_stack([(LinearArm("l1", **SMALL), 2)])
    mean = train_stack([(LinearArm("l1", **(SMALL | {"reduction": "mean", "learning_rate": 1e-3 * 40})), 2)])
    np.testing.assert_allclose(mean["loss"] * 40, whole["loss"], rtol=1e-9)
    np.testing.assert_allclose(mean["residual_energy"], whole["residual_energy"], rtol=1e-9)


def test_residual_and_plateau():
    """The residual lies along the targets' directions and adds up to the loss; the best map of rank k leaves
    the tail."""
    arm = LinearArm("none", **SMALL | {"steps": 300})
    found, (_, outputs) = train_stack([(arm, 0)]), trained_twin(arm, 0)
    np.testing.assert_allclose(found["residual_energy"].sum(), found["loss"][0, -1], rtol=1e-10)
    x, a = draw_examples(0, 5, 40)
    left, values, right = torch.linalg.svd(x @ a.T, full_matrices=False)
    along = [squares((outputs - x @ a.T) @ v, torch.zeros(())) for v in right]
    np.testing.assert_allclose(found["residual_energy"][0], along, rtol=1e-8)
    kept = (left[:, :2] * values[:2]) @ right[:2]
    np.testing.assert_allclose(squares(kept, x @ a.T), found["target_energy"][0, 2:].sum())
    assert found["loss_step"][0, 0] == 0 and found["loss_step"][0, -1] == 300


def test_bad_settings_say_what_to_do():
    with pytest.raises(BnbookError, match="examples"):
        draw_problem([0], width=10, examples=11)
    with pytest.raises(BnbookError, match="stack"):
        train_stack([(LinearArm("none", **SMALL), 0), (LinearArm("batch", **SMALL), 0)])
    problem, network = draw_problem([0], **SIZE), LinearArm("batch", **SIZE).network()
    with pytest.raises(BnbookError, match="norm 'batch'"):
        correlations(network, network.start(problem), problem)


def test_steps_that_are_looked_at():
    assert spread_probes(20) == (0, 1, 2, 5, 10, 15, 19) and spread_probes(1) == (0,)
    assert spread_probes(100, regular=2, early=(3, 100)) == (0, 3, 50, 99)
    steps = LinearArm(steps=400).loss_steps()
    assert steps[:7] == [0, 1, 2, 3, 4, 5, 6] and steps[-2:] == [398, 400]
    assert LinearArm(steps=1).loss_steps() == [0, 1] and LinearArm(steps=10_000).loss_steps()[-2] == 9950


def probed(norm, step=0, **changes):
    settings = SMALL | dict(learning_rate=RATE, steps=step + 1, probe_steps=(step,), lengths=LENGTHS)
    arm = LinearArm(norm, **settings, random_lengths=(0.5, 3.0), **changes)
    found = train_stack([(arm, 3)])
    model, x, y = twin(arm, 3)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=RATE)
    for _ in range(step):
        optimizer.zero_grad()
        squares(model(x), y).backward()
        optimizer.step()
    return arm, {name: value[0, 0] for name, value in found.items() if value.ndim > 1}, model.train(), (x, y)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("changes", [{"normalize_last": True}, {"affine": False}])
def test_a_stack_sees_what_the_probes_of_one_model_see(norm, changes):
    _, found, model, batch = probed(norm, step=2, **changes)
    there = along_gradient(model, squares, batch, [RATE * a for a in LENGTHS])
    shift = measure(model, squares, batch, RATE)
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
    arm = LinearArm("batch", **SMALL)
    one, other = train_stack([(arm, 0)]), train_stack([(replace(arm, probe_steps=(0, 3, 11)), 0)])
    for name in ("loss", "residual_energy"):
        np.testing.assert_array_equal(one[name], other[name])
    np.testing.assert_array_equal(other["start_loss"][0], other["loss"][0, [0, 3, 11]])


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
