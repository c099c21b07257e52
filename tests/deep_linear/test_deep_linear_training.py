"""Stacked deep linear networks against the model of the same name, in data space, trained by autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.deep_linear import (
    LinearArm,
    descent,
    draw_examples,
    draw_problem,
    probed_arm,
    spread_probes,
    summaries,
    target,
    train_stack,
)
from bnbook.deep_linear.target import TargetArm
from bnbook.errors import BnbookError
from bnbook.models import deep_linear

NORMS = ("none", "batch", "l1", "l2", "linf")
SMALL = dict(depth=4, width=5, examples=40, steps=30, learning_rate=1e-3)


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
    return model, x, getattr(arm, "target_std", 1.0) * (x @ a.T)


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
        {},
        {"normalize_last": True},
        {"affine": False, "init": "glorot-normal"},
        {"momentum": 0.9, "data_std": 0.5},
        {"reduction": "mean", "learning_rate": 0.04},
        {"target_std": 0.3, "learning_rate": 3e-3},
    ],
)
def test_training_is_that_of_the_model_on_the_data(norm, changes):
    arm = (TargetArm if "target_std" in changes else LinearArm)(norm, **(SMALL | changes))
    expected, outputs = trained_twin(arm, seed=3)
    found = (target.start if "target_std" in changes else descent.start)([(arm, 3)]).to_the_end()
    assert found["loss"].shape == (1, 31) and not np.isnan(found["loss"]).any()
    np.testing.assert_allclose(found["loss"][0], expected, rtol=1e-9)
    assert abs(found["loss"][0, -1] / found["loss"][0, 0] - 1) > 0.05  # it did train
    np.testing.assert_allclose(found["final_energy"][0], torch.linalg.svdvals(outputs) ** 2, rtol=1e-8)
    _, _, y = twin(arm, 3)
    zero = squares(0, y).item() / (
        1 if arm.reduction == "sum" else arm.examples
    )  # the loss of answering zero
    np.testing.assert_allclose(summaries.loss_share(arm, found)[0], expected / zero, rtol=1e-9)


def test_rows_stand_for_the_examples():
    problem = draw_problem([7], width=5, examples=40, data_std=2.0)
    x, a = draw_examples(7, 5, 40, 2.0)
    basis = problem.basis[0]
    torch.testing.assert_close(basis @ basis.T, torch.eye(6, dtype=torch.float64))
    torch.testing.assert_close(basis.T @ problem.inputs[0], x)
    torch.testing.assert_close(basis.T @ problem.targets[0], x @ a.T)
    torch.testing.assert_close(problem.target_energies()[0], torch.linalg.svdvals(x @ a.T) ** 2)


def test_seeds_pair_the_arms():
    plain, deeper = draw_problem([4, 5], depth=3), draw_problem([5], depth=6, init="glorot-normal")
    torch.testing.assert_close(plain.inputs[1], deeper.inputs[0])
    torch.testing.assert_close(plain.targets[1], deeper.targets[0])
    assert not torch.allclose(plain.weights[:, 0], plain.weights[:, 1])
    many = draw_problem(list(range(40)), depth=25)
    normal = draw_problem(list(range(40)), depth=25, init="glorot-normal")
    assert many.weights.abs().max() < 0.3**0.5 < normal.weights.abs().max()  # a² = 6 / 20
    for drawn in (many, normal):
        assert abs(drawn.weights.var().item() - 0.1) < 0.002  # both have 2 / (fan_in + fan_out)


def test_a_diverged_member_stays_behind_alone():
    rates = (1e-3, 10.0, 2e-3)
    members = [
        (LinearArm("batch", **(SMALL | {"learning_rate": rate, "probe_steps": (0, 20)})), 1) for rate in rates
    ]
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
    """An overflow of the loss alone ends a member, though its gradient may still be finite or infinite, not
    NaN."""
    arm = LinearArm("none", **(SMALL | {"data_std": 1e155, "probe_steps": (0,)}))
    found = train_stack([(arm, 0)])
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
    assert probed_arm("none").probe_steps[-1] == 9_999 and len(probed_arm("none").probe_steps) == 30


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_loss_alone_is_that_beside_its_gradients(reduction):
    network, problem = LinearArm(reduction=reduction, **SMALL).network(), draw_problem([3], 4, 5, 40)
    start = network.start(problem)
    torch.testing.assert_close(network.loss(start, problem), network.loss_and_gradients(start, problem)[0])


def test_behind_batch_norm_a_scale_of_the_targets_is_one_of_the_inputs():
    """Batch norm takes the scale of x away again, and that of A x stays (but for ε)."""
    shape = SMALL | {"eps": 0.0, "probe_steps": (0, 7), "learning_rate": 3e-3}
    found = target.start([(TargetArm("batch", **shape, target_std=0.3), 4)]).to_the_end()
    inputs = train_stack([(LinearArm("batch", **shape, data_std=0.3), 4)])
    for name in ("loss", "landscape_loss", "shift_cosine", "target_energy"):
        np.testing.assert_allclose(found[name], inputs[name], rtol=1e-6, atol=1e-9)


def test_every_stream_of_random_numbers_is_its_own():
    x, a = draw_examples(3, 20, 400)
    weights = draw_problem([3], depth=1, width=20, examples=400, init="glorot-normal").weights[0, 0]
    for pair in ((weights, a), (weights, x[:20]), (a, x[:20])):
        assert abs(torch.corrcoef(torch.stack([each.flatten() for each in pair]))[0, 1]) < 0.2
    assert x.std() == pytest.approx(1, abs=0.05) and a.std() == pytest.approx(1, abs=0.1)
    assert draw_examples(3, 20, 400, 0.5)[0].std() == pytest.approx(0.5, abs=0.03)


def test_steps_that_are_looked_at():
    assert spread_probes(20) == (0, 1, 2, 5, 10, 15, 19) and spread_probes(1) == (0,)
    assert spread_probes(100, regular=2, early=(3, 100)) == (0, 3, 50, 99)
    steps = LinearArm(steps=400).loss_steps()
    assert steps[:7] == [0, 1, 2, 3, 4, 5, 6] and steps[-2:] == [398, 400]
    assert LinearArm(steps=1).loss_steps() == [0, 1] and LinearArm(steps=10_000).loss_steps()[-2] == 9950


def test_a_stable_rate_by_hand():
    runs = {rate: {"diverged_at": np.array(ends)} for rate, ends in ((1.0, [np.inf, 5]), (2.0, [7, np.inf]))}
    np.testing.assert_array_equal(summaries.largest_stable(runs), [1, np.nan])


def test_settled_means_a_flat_last_tenth():
    arm, steps = LinearArm(steps=100), np.array([[0.0, 50, 90, 95, 100]])
    run = {"loss_step": steps, "diverged_at": np.array([np.inf]), "target_energy": np.array([[1.0]])}
    for last, expected in ((0.4951, 1), (0.4949, 0), (0.6, 1)):
        assert summaries.settled(arm, run | {"loss": np.array([[9.0, 9.0, 0.5, 7.0, last]])}) == expected
    assert summaries.settled(arm, run | {"loss": np.full((1, 5), np.nan), "diverged_at": np.ones(1)}) == 0
