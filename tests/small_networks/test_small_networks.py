"""Stacks of small networks against the same networks one by one, and the search for where training breaks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.data import fixed_sample, load, normalise
from bnbook.errors import BnbookError
from bnbook.meanfield import FullyConnected, solve
from bnbook.probes.fisher import largest_eigenvalue
from bnbook.small_networks import (
    PhaseArm,
    bisect,
    descent,
    full_batch,
    linear_growth,
    train_model,
    train_part,
    train_stack,
    works,
)
from bnbook.small_networks.descent import STATISTICS_EXAMPLES

FC = dict(network="fc", hidden=(12, 9), batch_size=16, steps=12, data="textures-standin")
CONV = dict(network="conv", hidden=(5, 6), batch_size=16, steps=6, data="textures-standin")
TEXTURES = load("textures-standin")
DOUBLE = torch.float64


def train(*members: tuple[PhaseArm, int], **how) -> dict[str, np.ndarray]:
    return train_stack(members, TEXTURES, dtype=DOUBLE, **how)


def network(arm: PhaseArm, seed: int) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return arm.model(tuple(TEXTURES.train_images.shape[1:])).double()


def loss_of(outputs: torch.Tensor, labels: torch.Tensor, kind: str = "squared") -> torch.Tensor:
    if kind == "squared":
        return 0.5 * (outputs - F.one_hot(labels, 10)).square().sum() / len(labels)
    return F.cross_entropy(outputs, labels)


def alone(arm: PhaseArm, seed: int) -> dict[str, np.ndarray]:
    """The same training by torch's own layers, optimizer and order of batches."""
    model = network(arm, seed)
    optimizer = torch.optim.SGD(model.parameters(), arm.learning_rate, arm.momentum)
    generator, order, at, losses = torch.Generator().manual_seed(1_000_003 + seed), None, 10**9, []
    for _ in range(arm.steps):
        if at + arm.batch_size > len(TEXTURES.train_labels):
            order, at = torch.randperm(len(TEXTURES.train_labels), generator=generator), 0
        chosen = order[at : at + arm.batch_size]
        at += arm.batch_size
        outputs = model(normalise(TEXTURES.train_images[chosen], TEXTURES).double())
        loss = loss_of(outputs, TEXTURES.train_labels[chosen], arm.loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    pooled: dict[torch.nn.Module, int] = {}  # how many values of a unit: examples times places
    for module in model.modules():
        if hasattr(module, "running_mean"):
            module.momentum, module.num_batches_tracked = 1.0, torch.tensor(0)
            module.register_forward_hook(lambda m, _, y: pooled.update({m: y.numel() // y.shape[1]}))
    images, labels = fixed_sample(TEXTURES, arm.test_examples, "test")
    with torch.no_grad():
        model.train()(normalise(fixed_sample(TEXTURES, STATISTICS_EXAMPLES, "train")[0], TEXTURES).double())
        for module, values in pooled.items():  # the stack divides by the count, running_var by count - 1
            module.running_var.mul_((values - 1) / values)
        outputs = model.eval()(normalise(images, TEXTURES).double())
    accuracy = (outputs.argmax(1) == labels).double().mean().item()
    return {"loss": losses, "test_accuracy": accuracy, "test_loss": loss_of(outputs, labels, arm.loss).item()}


@pytest.mark.parametrize(
    "kind, unfolded, loss, norm",
    [
        (FC, None, "squared", "batch"),
        (CONV, False, "squared", "none"),
        (CONV, False, "squared", "batch"),
        (CONV, True, "cross_entropy", "batch"),
    ],
)
def test_a_stack_is_its_members_trained_alone(kind, unfolded, norm, loss):
    common = dict(norm=norm, loss=loss, test_examples=50)
    members = [
        (PhaseArm(**kind, **common, gamma=gamma, learning_rate=rate if norm == "batch" else rate / 30), seed)
        for gamma, rate, seed in ((1.0, 0.01, 0), (0.5, 0.05, 0), (2.0, 0.003, 1))
    ]
    found = train(*members, unfolded=unfolded)
    for place, (arm, seed) in enumerate(members):
        for name, expected in alone(arm, seed).items():
            np.testing.assert_allclose(found[name][place], expected, rtol=1e-8, err_msg=name)
    assert np.isinf(found["exploded_step"]).all() and np.isfinite(found["test_loss"]).all()


def test_a_member_that_explodes_is_frozen_and_the_others_do_not_notice(monkeypatch):
    calm, wild = ((PhaseArm(**FC, learning_rate=rate, test_examples=20), 0) for rate in (0.01, 1e4))
    both, single, lost = train(wild, calm), train(calm), train(wild)
    end = int(both["exploded_step"][0])
    assert end < 5 and np.isinf(both["exploded_step"][1]) and list(works(both["loss"])) == [False, True]
    assert np.isnan(both["loss"][0, end:]).all() and np.isnan(both["test_loss"][0])
    for place, one in enumerate((lost, single)):  # the lost one ends early, and says the same
        for name, values in one.items():
            np.testing.assert_allclose(both[name][place], values[0], rtol=1e-12, err_msg=name)
    frozen = train((replace(wild[0], steps=end + 1), 0))["exploded_step"]
    assert frozen == end, "also at the last step"
    monkeypatch.setattr(descent, "EXPLOSION", 1.0)  # as large as the first is not above it
    assert np.isinf(train((replace(wild[0], steps=1), 0))["exploded_step"])


def test_full_batches_are_the_same_batch_at_every_step():
    arm = PhaseArm(**FC | dict(batch_size=30, steps=20), examples=30, learning_rate=1e-3, momentum=0.0)
    loss = train((arm, 0))["loss"][0]
    assert (np.diff(loss) < 0).all(), "gradient descent below its critical rate goes down at every step"
    images, labels = full_batch(arm, 0, TEXTURES)
    assert loss[0] == pytest.approx(loss_of(network(arm, 0)(images.double()), labels).item())


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: train((PhaseArm(**FC, examples=10**6), 0)), "do not fit"),
        (lambda: train((PhaseArm(**FC), 0), (PhaseArm(**FC, loss="cross_entropy"), 0)), "2 kinds of members"),
        (lambda: train_part(PhaseArm(**FC, loss="cross_entropy"), 0, TEXTURES, "hidden"), "and 'squared'"),
        (lambda: train_model(PhaseArm(**FC, examples=20), 0, TEXTURES), "expected 'squared' on all"),
    ],
)
def test_what_does_not_fit_is_one_line(call, words):
    with pytest.raises(BnbookError, match=words):
        call()


@pytest.mark.parametrize("kind, norm", [(FC, "none"), (FC, "batch"), (CONV, "batch")])
def test_the_linear_regime_breaks_at_two_times_one_plus_momentum_over_the_largest_eigenvalue(kind, norm):
    arm = PhaseArm(**kind, norm=norm, gamma=0.7)
    images, _ = full_batch(arm, 3, TEXTURES)
    value = float(largest_eigenvalue(network(arm, 3), images.double(), "all", "all", statistics="batch"))
    how = dict(steps=150, closeness=1e-6, dtype=DOUBLE)
    arms = [replace(arm, learning_rate=2 * (1 + arm.momentum) / value * factor) for factor in (0.97, 1.03)]
    below, above = (linear_growth(each, 3, TEXTURES, **how) for each in arms)
    assert below < 1 and above > 100


def test_training_the_hidden_weights_alone_leaves_the_rest_and_only_lengthens_them():
    arm = PhaseArm(**FC | dict(steps=40), learning_rate=0.3, momentum=0.0)
    loss = train_part(arm, 0, TEXTURES, "hidden weights", dtype=DOUBLE)
    model, (images, labels) = network(arm, 0), full_batch(arm, 0, TEXTURES)
    hidden = [p for p in model.parameters() if p.ndim >= 2][:-1]
    optimizer = torch.optim.SGD(hidden, arm.learning_rate)
    lengths, expected = [], []
    for _ in range(40):
        expected.append(loss_of(model(images.double()), labels))
        lengths.append(hidden[0].detach().norm().item())
        optimizer.zero_grad()
        expected[-1].backward()
        optimizer.step()
    np.testing.assert_allclose(loss, [one.item() for one in expected], rtol=1e-9)
    assert (np.diff(lengths) > 0).all() and lengths[-1] > 1.01 * lengths[0]


@pytest.mark.parametrize("kind", [FC, CONV])
def test_a_trained_network_is_that_of_the_stack(kind):
    arm = PhaseArm(
        **kind | dict(steps=9, batch_size=250), learning_rate=0.02
    )  # more than once through the data
    state = torch.get_rng_state()
    model, loss = train_model(arm, 2, TEXTURES, dtype=DOUBLE)
    np.testing.assert_allclose(loss, train((arm, 2))["loss"][0], rtol=1e-9)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(next(network(arm, 2).parameters()), next(model.parameters()))


def contraction(eta_lambda: float, momentum: float) -> float:
    """Size of the largest root of the heavy ball on one quadratic direction."""
    return np.abs(np.roots([1, -(1 + momentum - eta_lambda), momentum])).max()


def test_half_of_the_critical_rate_is_best_without_momentum_only():
    rates = np.linspace(0.01, 1.99, 199)
    assert rates[np.argmin([contraction(rate, 0.0) for rate in rates])] == pytest.approx(1.0)
    momentum, theory = 0.9, solve(FullyConnected((4, 4, 4)))
    critical = float(theory.critical_learning_rate(momentum) * theory.lambda_max)
    assert contraction(critical * 0.999999, momentum) < 1 < contraction(critical * 1.000001, momentum)
    low, high = ((1 - momentum**0.5) ** 2 / critical, (1 + momentum**0.5) ** 2 / critical)
    assert low == pytest.approx(7e-4, rel=0.02) and high == pytest.approx(0.9993, abs=1e-4)
    inside = [contraction(share * critical, momentum) for share in np.linspace(low * 1.01, high * 0.9999, 50)]
    np.testing.assert_allclose(inside, momentum**0.5, rtol=1e-6)
    assert contraction(0.9 * low * critical, momentum) > momentum**0.5 + 1e-3


def test_training_works_by_the_mean_of_its_last_tenth():
    assert not works(np.array([[1.0] * 18 + [3.0, 0.5]])).any()  # 1.75, whatever the very last is
    assert works(np.array([[1.0] * 18 + [3.0, 0.5]]), threshold=2.0).all()
    assert not works(np.array([[1.0] * 20])).any()  # as large is not below
    assert [bool(works(np.array([1.0, last]))) for last in (0.9, np.nan, -np.inf)] == [True, False, False]
    assert works(np.array([1.0] * 89 + [9.0] + [0.9] * 10))  # the step before the last ten does not count
    assert not works(np.array([1.0] * 90 + [2.0] + [0.9] * 9))  # the first of them does: 10.1 / 10


def test_a_boundary_by_hand():
    """Works below 0.3: 0 to 1 halves to ½, ¼, ⅜; a bracket of the wrong side moves by its own width first."""
    below, above = bisect(lambda rates: rates < 0.3, [0.0], [1.0], 3)
    assert (below, above) == ([0.25], [0.375])
    for low, high in ((2.0, 3.0), (-3.0, -2.0)):
        asked = []
        below, above = bisect(lambda rates: asked.append(rates[0]) or rates < 0.3, [low], [high], 1)
        assert below < 0.3 <= above and above - below == 0.5 and asked[0] == low
    below, above = bisect(lambda rates: rates < 0.3, [0.0, 2.0], [1.0, 3.0], 0)
    assert below.tolist() == [0, 0] and above.tolist() == [1, 1] or above.tolist() == [1, 2]
