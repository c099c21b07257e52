"""The chapter on a textbook's exercises: its transforms against torch's own and slow twins, its network, its numbers."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from scipy.stats import norm as normal
from torch import nn

from bnbook.chapters import exercises as ex
from bnbook.chapters.shared import Rows

DOUBLE = torch.float64


def values(*shape, seed=0):
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    scale = torch.linspace(0.5, 2, shape[1], dtype=DOUBLE).view(1, -1, *[1] * (len(shape) - 2))
    return drawn * scale + scale


def applied(name, x):
    statistics, transform = ex.TRANSFORMS[name]
    return transform(x, *statistics(x))


@pytest.mark.parametrize("shape", [(12, 5), (6, 3, 4, 4)])
def test_batch_norm_and_its_halves(shape):
    x = values(*shape)
    own = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(shape[1], eps=ex.EPS, affine=False).double()
    torch.testing.assert_close(applied("batch", x), own(x))
    for j in range(shape[1]):
        unit = x[:, j].numpy()
        np.testing.assert_allclose(applied("mean", x)[:, j], unit - unit.mean())
        np.testing.assert_allclose(applied("variance", x)[:, j], unit / math.sqrt(unit.var() + ex.EPS))


def test_sparse_keeps_the_larger_half_of_a_normal_unit():
    assert math.isclose(ex.HALF, normal.ppf(0.75), rel_tol=1e-12)
    found = applied("sparse", values(20000, 2))
    assert abs((found == 0).double().mean() - 0.5) < 0.01
    kept = found[found != 0]
    assert kept.abs().min() > ex.HALF
    torch.testing.assert_close(kept, applied("batch", values(20000, 2))[found != 0])


def test_the_full_covariance_leaves_uncorrelated_units_of_variance_one(monkeypatch):
    monkeypatch.setattr(ex, "RIDGE", 1e-9)
    x = values(50, 4, 3, 3)
    x[:, 1] += x[:, 0]
    rows = applied("whitened", x).transpose(0, 1).flatten(1).numpy()
    np.testing.assert_allclose(rows @ rows.T / rows.shape[1], np.eye(4), atol=1e-7)
    np.testing.assert_allclose(rows.mean(1), 0, atol=1e-9)
    assert torch.isnan(applied("whitened", x * math.inf)).any()


def test_with_fewer_examples_than_units_the_full_covariance_puts_them_at_right_angles(monkeypatch):
    monkeypatch.setattr(ex, "RIDGE", 1e-9)
    found = applied("whitened", values(6, 20))
    products = found @ found.T
    # of 6 examples less their mean: 6 (I - 1/6)
    torch.testing.assert_close(products, 6 * torch.eye(6, dtype=DOUBLE) - 1, atol=1e-5, rtol=0)


def test_quantiles_and_the_integral_against_numpy():
    x = values(100, 3) ** 3
    (edges,) = ex.quantiles(x)
    for j in range(3):
        expected = np.quantile(x[:, j].numpy(), np.linspace(0, 1, ex.BINS + 1))
        np.testing.assert_allclose(edges[j], expected)
        inside = np.interp(x[:, j].numpy(), expected, np.linspace(0, 1, ex.BINS + 1))
        np.testing.assert_allclose(ex.integral(x, edges)[:, j], math.sqrt(12) * (inside - 0.5), atol=5e-3)


SHAPE = (1, 8, 8)
IMAGES = values(32, *SHAPE, seed=4).float()
LABELS = torch.arange(32) % 10


def by_hand(net, x, dropped=()):
    """The forward pass of an arm with batch norm in all layers, written out."""
    bend = torch.sigmoid if net.arm.sigmoid else torch.tanh
    for k, layer in enumerate(net.hidden):
        if k == 2:
            x = x.reshape(len(x), -1)
        z = layer(x)
        own = net.norms[str(k)]
        scale, shift = (own.gamma.detach(), own.beta.detach()) if net.arm.affine else (None, None)
        standard = lambda v, s=scale, b=shift: nn.functional.batch_norm(
            v, None, None, s, b, True, 0.0, ex.EPS
        )
        x = standard(bend(z)) if net.arm.after else bend(standard(z))
        if k < 2:
            x = nn.functional.avg_pool2d(x, 2)
        elif dropped:
            x = x * dropped[k - 2]
    return net.readout(x)


@pytest.mark.parametrize("name", ["batch", "fixed", "after", "sigmoid_batch"])
def test_the_network_is_the_one_written_out(name):
    net = ex.LeNet(ex.ARMS[name], SHAPE, 3)
    if net.arm.affine:
        for each in net.norms.values():
            each.gamma.data += 0.1 * torch.arange(len(each.gamma)) / len(each.gamma)
            each.beta.data -= 0.2
    torch.testing.assert_close(net(IMAGES), by_hand(net, IMAGES), rtol=1e-4, atol=1e-5)
    dropped = ex.masks(ex.FEW["both"], 32, torch.Generator().manual_seed(0))
    torch.testing.assert_close(net(IMAGES, dropped), by_hand(net, IMAGES, dropped), rtol=1e-4, atol=1e-5)


def test_arms_share_their_first_weights_and_biases():
    one, other = (ex.LeNet(ex.ARMS[name], SHAPE, 5) for name in ("none", "whitened_maps"))
    for a, b in zip((*one.hidden, one.readout), (*other.hidden, other.readout)):
        assert torch.equal(a.weight, b.weight) and torch.equal(a.bias, b.bias)
    fan = one.hidden[1].weight[0].numel(), ex.CHANNELS[1] * ex.KERNEL**2
    assert 0.9 < float(one.hidden[1].weight.detach().abs().max()) / math.sqrt(6 / sum(fan)) <= 1
    assert sorted(other.norms) == ["0", "1"] and not one.norms
    assert not torch.equal(one.hidden[0].weight, ex.LeNet(ex.PLAIN, SHAPE, 6).hidden[0].weight)


def test_dropout_leaves_out_half_and_keeps_the_mean():
    one, two = ex.masks(ex.FEW["dropout"], 2000, torch.Generator().manual_seed(0))
    assert (one.shape, two.shape) == ((2000, 120), (2000, 84))
    assert set(one.unique().tolist()) == {0.0, 2.0} and abs(one.mean() - 1) < 0.02
    assert ex.masks(ex.FEW["batch"], 2000, torch.Generator()) == []


def test_a_training_is_gradient_descent_whose_rate_falls_over_the_last_fifth():
    net = ex.LeNet(ex.ARMS["batch"], SHAPE, 0)
    twin = copy.deepcopy(net)
    losses = ex.train(net, Rows(IMAGES, LABELS, 16, 0), 10, 0.5, 0)
    rows, optimizer = Rows(IMAGES, LABELS, 16, 0), torch.optim.SGD(twin.parameters(), lr=0.5)
    for step, share in enumerate([1.0] * 8 + [2 / 3, 1 / 3]):
        inputs, labels = next(rows)
        optimizer.param_groups[0]["lr"] = 0.5 * share
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(twin(inputs), labels)
        assert math.isclose(float(loss.detach()), losses[step], rel_tol=1e-5)
        loss.backward()
        optimizer.step()
    for a, b in zip(net.parameters(), twin.parameters()):
        torch.testing.assert_close(a, b)


def test_what_diverges_has_no_more_losses_and_no_number_is_best():
    losses = ex.train(ex.LeNet(ex.PLAIN, SHAPE, 0), Rows(IMAGES, LABELS, 16, 0), 20, 1e38, 0)
    assert np.isfinite(losses[0]) and np.isnan(losses[-1])
    assert ex.best_of(np.array([[1.0] * 10, [np.nan] * 10, [2.0] * 8 + [0.5, 0.5]])) == 2


def test_inference_is_by_the_mean_statistics_of_training_batches(monkeypatch):
    monkeypatch.setattr(ex, "SEEN", 2)
    net = ex.LeNet(ex.ARMS["first"], SHAPE, 1)
    ex.settle(net, IMAGES, 16)
    z = net.hidden[0](IMAGES).detach()
    parts = [z[:16], z[16:]]
    mean, variance = (
        torch.stack([f(p) for p in parts]).mean(0)
        for f in (lambda p: p.mean((0, 2, 3)), lambda p: p.var((0, 2, 3), correction=0))
    )
    torch.testing.assert_close(net.norms["0"].fixed[0].flatten(), mean)
    torch.testing.assert_close(net.norms["0"].fixed[1].flatten(), variance)
    net.eval()
    one_by_one = torch.cat([net(IMAGES[k : k + 1]) for k in range(32)])
    torch.testing.assert_close(one_by_one, net(IMAGES))
    right = (one_by_one.argmax(1) == LABELS).double().mean()
    assert math.isclose(ex.accuracy(net, IMAGES, LABELS, 7), float(right))


def test_running_averages_are_torchs():
    net = ex.LeNet(ex.ARMS["first"], SHAPE, 1)
    net.norms["0"].running = {}
    twins = {"usual": 0.1, "textbook": 0.9, "all": None}
    twins = {name: nn.BatchNorm2d(6, momentum=w) for name, w in twins.items()}
    first = net.hidden[0](IMAGES[:16]).detach()
    for twin in twins.values():  # torch's begin at 0 and 1, ours at the first batch
        twin.running_mean.copy_(first.mean((0, 2, 3)))
    for part in (IMAGES[:16], IMAGES[16:], IMAGES[:16] * 2):
        net(part)
        for twin in twins.values():
            twin(net.hidden[0](part).detach())
    for name, twin in twins.items():
        torch.testing.assert_close(net.norms["0"].running[name][0].flatten(), twin.running_mean)


def test_biases_go_where_batch_norm_follows_and_nowhere_else():
    plan = ex.Plan("", 1, 8, 10, 5, (0.25, 1.0), 0.25, 4, 16, 5, (0.25,))
    found = ex.without_biases(plan, 0, (IMAGES, LABELS))
    assert found["batch"] < 1e-12 and found["none"] > 1e-4 and found["after"] > 1e-4


def test_an_arm_is_measured_at_all_rates_and_watched_at_its_best():
    plan = ex.Plan("", 1, 8, 60, 5, (0.0625, 1e30), 0.25, 4, 16, 5, (0.25,))
    for name in ("batch", "none"):
        found = ex.trial(name, ex.ARMS[name], plan, 0, (IMAGES, LABELS), (IMAGES, LABELS))
        assert found["best"] == -4 and len(found["curve"]) == 5
        assert found["late"][1] == math.log(10) > found["late"][0]
        assert ("by_all" in found) == (name == "batch")
    few = ex.trial_of_few(ex.FEW["both"], plan, 0, (IMAGES, LABELS), (IMAGES, LABELS))
    assert 0 <= few["test"] <= 1 and few["best"] == -2
    both = [{"main": {"a": {"x": 1.0}, "b": {}}}, {"main": {"a": {"x": 2.0}, "b": {}}}]
    assert {k: v.tolist() for k, v in ex.gathered(both, "main", "x").items()} == {"a": [1.0, 2.0]}
