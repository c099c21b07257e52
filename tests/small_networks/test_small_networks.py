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
    full_batch,
    linear_growth,
    train_hidden,
    train_model,
    train_stack,
    works,
)
from bnbook.small_networks.descent import STATISTICS_EXAMPLES

FC = dict(network="fc", hidden=(12, 9), batch_size=16, steps=12, data="textures-standin")
CONV = dict(network="conv", hidden=(5, 6), batch_size=16, steps=6, data="textures-standin")


def alone(arm: PhaseArm, seed: int, dataset) -> dict[str, np.ndarray]:
    """The same training by torch's own layers, optimizer and order of batches."""
    torch.manual_seed(seed)
    model = arm.model(tuple(dataset.train_images.shape[1:])).double()
    optimizer = torch.optim.SGD(model.parameters(), arm.learning_rate, arm.momentum)
    generator, order, at, losses = torch.Generator().manual_seed(1_000_003 + seed), None, 10**9, []
    for _ in range(arm.steps):
        if at + arm.batch_size > len(dataset.train_labels):
            order, at = torch.randperm(len(dataset.train_labels), generator=generator), 0
        chosen = order[at : at + arm.batch_size]
        at += arm.batch_size
        outputs = model(normalise(dataset.train_images[chosen], dataset).double())
        if arm.loss == "squared":
            loss = (
                0.5 * (outputs - F.one_hot(dataset.train_labels[chosen], 10)).square().sum() / arm.batch_size
            )
        else:
            loss = F.cross_entropy(outputs, dataset.train_labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found = {"loss": np.array(losses)}
    if arm.test_examples:
        images, labels = fixed_sample(dataset, arm.test_examples, "test")
        pooled: dict[torch.nn.Module, int] = {}  # how many values of a unit: examples times places

        def count(module, _, outputs) -> None:
            pooled.setdefault(module, outputs.numel() // outputs.shape[1])

        if arm.norm == "batch":
            for module in model.modules():
                if hasattr(module, "running_mean"):
                    module.momentum, module.num_batches_tracked = 1.0, torch.tensor(0)
                    module.register_forward_hook(count)
            with torch.no_grad():
                seen = normalise(fixed_sample(dataset, STATISTICS_EXAMPLES, "train")[0], dataset).double()
                model.train()(seen)
        with torch.no_grad():
            for module, values in pooled.items():  # the stack divides by the count, running_var by count - 1
                module.running_var.mul_((values - 1) / values)
            outputs = model.eval()(normalise(images, dataset).double())
        found["test_accuracy"] = (outputs.argmax(1) == labels).double().mean().item()
        if arm.loss == "squared":
            found["test_loss"] = 0.5 * (outputs - F.one_hot(labels, 10)).square().sum().item() / len(labels)
        else:
            found["test_loss"] = F.cross_entropy(outputs, labels).item()
    return found


@pytest.mark.parametrize(
    "kind, unfolded, loss, norm",
    [
        (FC, None, "squared", "batch"),
        (FC, None, "cross_entropy", "none"),
        (CONV, False, "squared", "none"),
        (CONV, False, "squared", "batch"),
        (CONV, True, "cross_entropy", "batch"),
    ],
)
def test_a_stack_is_its_members_trained_alone(kind, unfolded, norm, loss) -> None:
    dataset = load(kind["data"])
    members = [
        (
            PhaseArm(
                **kind,
                norm=norm,
                loss=loss,
                gamma=gamma,
                learning_rate=rate if norm == "batch" else rate / 30,
                test_examples=50,
            ),
            seed,
        )
        for gamma, rate, seed in ((1.0, 0.01, 0), (0.5, 0.05, 0), (2.0, 0.003, 1))
    ]
    found = train_stack(members, dataset, dtype=torch.float64, unfolded=unfolded)
    for place, (arm, seed) in enumerate(members):
        expected = alone(arm, seed, dataset)
        np.testing.assert_allclose(found["loss"][place], expected["loss"], rtol=1e-9)
        assert found["test_accuracy"][place] == pytest.approx(expected["test_accuracy"])
        assert found["test_loss"][place] == pytest.approx(expected["test_loss"], rel=1e-8)
    assert np.isinf(found["exploded_step"]).all() and np.isfinite(found["test_loss"]).all()


def test_a_member_that_explodes_is_frozen_and_the_others_do_not_notice() -> None:
    dataset = load(FC["data"])
    calm = (PhaseArm(**FC, learning_rate=0.01, test_examples=20), 0)
    wild = (PhaseArm(**FC, learning_rate=1e4, test_examples=20), 0)
    both, single = (train_stack(members, dataset, dtype=torch.float64) for members in ([wild, calm], [calm]))
    assert both["exploded_step"][0] < 5 and np.isinf(both["exploded_step"][1])
    assert np.isnan(both["loss"][0, int(both["exploded_step"][0]) :]).all() and np.isnan(both["test_loss"][0])
    np.testing.assert_allclose(both["loss"][1], single["loss"][0], rtol=1e-12)
    assert both["test_loss"][1] == pytest.approx(single["test_loss"][0])
    assert list(works(both["loss"])) == [False, True]
    alone = train_stack([wild], dataset, dtype=torch.float64)  # ends early, and says the same
    np.testing.assert_allclose(alone["loss"][0], both["loss"][0], rtol=1e-12)
    assert alone["exploded_step"][0] == both["exploded_step"][0] and np.isnan(alone["test_accuracy"][0])


def test_full_batches_are_the_same_batch_at_every_step() -> None:
    dataset = load(FC["data"])
    arm = PhaseArm(**FC | dict(batch_size=30, steps=80), examples=30, learning_rate=1e-3, momentum=0.0)
    loss = train_stack([(arm, 0)], dataset, dtype=torch.float64)["loss"][0]
    assert (np.diff(loss) < 0).all(), "gradient descent below its critical rate goes down at every step"
    with pytest.raises(BnbookError, match="do not fit"):
        train_stack([(PhaseArm(**FC, examples=10**6), 0)], dataset)


def test_members_of_two_kinds_do_not_stack() -> None:
    with pytest.raises(BnbookError, match="2 kinds of members"):
        train_stack([(PhaseArm(**FC), 0), (PhaseArm(**FC, loss="cross_entropy"), 0)], load(FC["data"]))


@pytest.mark.parametrize("kind, norm", [(FC, "none"), (FC, "batch"), (CONV, "batch")])
def test_the_linear_regime_breaks_at_two_times_one_plus_momentum_over_the_largest_eigenvalue(
    kind, norm
) -> None:
    dataset = load(kind["data"])
    arm = PhaseArm(**kind, norm=norm, gamma=0.7)
    torch.manual_seed(3)
    model = arm.model(tuple(dataset.train_images.shape[1:])).double()
    images, labels = full_batch(arm, 3, dataset)
    value = largest_eigenvalue(model, images.double(), "all", "all", statistics="batch").value
    critical = 2 * (1 + arm.momentum) / value
    growth = [
        linear_growth(
            replace(arm, learning_rate=critical * factor),
            3,
            dataset,
            steps=150,
            closeness=1e-6,
            dtype=torch.float64,
        )
        for factor in (0.97, 1.03)
    ]
    assert growth[0] < 1 and growth[1] > 100


def test_the_linear_regime_has_the_images_of_a_training_on_one_full_batch() -> None:
    dataset = load(FC["data"])
    arm = PhaseArm(**FC, examples=FC["batch_size"], learning_rate=1e-12)
    torch.manual_seed(1)
    model = arm.model(tuple(dataset.train_images.shape[1:])).double()
    images, labels = full_batch(arm, 1, dataset)
    expected = 0.5 * (model(images.double()) - F.one_hot(labels, 10)).square().sum().item() / len(labels)
    found = train_stack([(arm, 1)], dataset, dtype=torch.float64)["loss"][0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_training_the_hidden_weights_alone_leaves_the_rest_and_only_lengthens_them() -> None:
    dataset = load(FC["data"])
    arm = PhaseArm(**FC | dict(steps=40), learning_rate=0.3, momentum=0.0)
    loss = train_hidden(arm, 0, dataset, dtype=torch.float64)
    assert loss.shape == (40,) and np.isfinite(loss).all()
    torch.manual_seed(0)
    model = arm.model(tuple(dataset.train_images.shape[1:])).double()
    images, labels = full_batch(arm, 0, dataset)
    targets, weight = F.one_hot(labels, 10).double(), next(p for p in model.parameters() if p.ndim >= 2)
    hidden = [p for p in model.parameters() if p.ndim >= 2][:-1]
    optimizer = torch.optim.SGD(hidden, arm.learning_rate)
    lengths, expected = [], []
    for _ in range(40):
        expected.append(0.5 * (model(images.double()) - targets).square().sum() / len(labels))
        lengths.append(weight.detach().norm().item())
        optimizer.zero_grad()
        expected[-1].backward()
        optimizer.step()
    np.testing.assert_allclose(loss, [one.item() for one in expected], rtol=1e-9)
    assert (np.diff(lengths) > 0).all() and lengths[-1] > 1.01 * lengths[0]
    with pytest.raises(BnbookError, match="expected 'squared'"):
        train_hidden(PhaseArm(**FC, loss="cross_entropy"), 0, dataset)


def contraction(eta_lambda: float, momentum: float) -> float:
    """Size of the largest root of the heavy ball on one quadratic direction."""
    return np.abs(np.roots([1, -(1 + momentum - eta_lambda), momentum])).max()


def test_half_of_the_critical_rate_is_best_without_momentum_only() -> None:
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


@pytest.mark.parametrize("kind", [FC, CONV])
def test_a_trained_network_is_that_of_the_stack(kind) -> None:
    dataset = load(kind["data"])
    arm = PhaseArm(
        **kind | dict(steps=9, batch_size=250), learning_rate=0.02
    )  # goes through the data more than once
    assert 9 * arm.batch_size > len(dataset.train_labels)
    model, loss = train_model(arm, 2, dataset, dtype=torch.float64)
    np.testing.assert_allclose(
        loss, train_stack([(arm, 2)], dataset, dtype=torch.float64)["loss"][0], rtol=1e-9
    )
    torch.manual_seed(2)
    before = next(arm.model(tuple(dataset.train_images.shape[1:])).double().parameters())
    assert not torch.equal(before, next(model.parameters()))
    with pytest.raises(BnbookError, match="expected 'squared' on all"):
        train_model(PhaseArm(**kind, examples=20), 0, dataset)


def test_torch_s_random_state_is_given_back() -> None:
    dataset, arm = load(FC["data"]), PhaseArm(**FC)
    torch.manual_seed(7)
    state = torch.get_rng_state()
    linear_growth(arm, 0, dataset, steps=1)
    train_hidden(arm, 0, dataset)
    train_model(arm, 0, dataset)
    train_stack([(arm, 0)], dataset)
    assert torch.equal(torch.get_rng_state(), state)


def test_an_explosion_is_a_loss_above_the_limit_also_at_the_last_step(monkeypatch) -> None:
    from bnbook.small_networks import descent

    dataset = load(FC["data"])
    wild = PhaseArm(**FC, learning_rate=1e4)
    at = train_stack([(wild, 0)], dataset, dtype=torch.float64)["exploded_step"][0]
    short = replace(wild, steps=int(at) + 1)
    assert train_stack([(short, 0)], dataset, dtype=torch.float64)["exploded_step"][0] == at
    monkeypatch.setattr(descent, "EXPLOSION", 1.0)  # as large as the first is not above it
    found = train_stack([(replace(wild, steps=1), 0)], dataset, dtype=torch.float64)
    assert np.isinf(found["exploded_step"][0])


def test_training_works_by_the_mean_of_its_last_tenth():
    assert not works(np.array([[1.0] * 18 + [3.0, 0.5]])).any()  # 1.75, whatever the very last is
    assert works(np.array([[1.0] * 18 + [3.0, 0.5]]), threshold=2.0).all()
    assert works(np.array([[2.0] + [9.0] * 17 + [3.0, 0.5]])).all()
    assert not works(np.array([[1.0] * 20])).any()  # as large is not below
    assert [bool(works(np.array([1.0, last]))) for last in (0.9, np.nan, -np.inf)] == [True, False, False]
    assert works(np.array([1.0] * 28 + [0.5, 0.5])) and not works(np.array([1.0] * 27 + [3.0, 0.1, 0.1]))
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
