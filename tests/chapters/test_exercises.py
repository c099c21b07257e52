"""The chapter on a textbook's exercises: its transforms against torch's own and slow twins, its network, its numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from descent import SHARES, descend
from scipy.stats import norm as normal
from torch import nn

from bnbook.chapters.shared import Rows

DOUBLE, EPS = torch.float64, 1e-5
CONSTANTS = "WIDTHS", "PLAIN", "BATCH", "ARMS", "FEW", "others"
CHANGED = dict(batch_size=8, rates=[0.0625, 1e30], steps=60, exact_steps=4, few=16, few_steps=5)
CELLS = page_cells.functions("practice/exercises", *CONSTANTS, **CHANGED)
EX = SimpleNamespace(**CELLS)


def values(*shape, seed=0):
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=DOUBLE)
    scale = torch.linspace(0.5, 2, shape[1], dtype=DOUBLE).view(1, -1, *[1] * (len(shape) - 2))
    return drawn * scale + scale


SHAPE = (1, 8, 8)
IMAGES, LABELS = values(32, *SHAPE, seed=4).float(), torch.arange(32) % 10


def applied(transform, x):
    return transform(x, *EX.moments(x))


@pytest.mark.parametrize("shape", [(12, 5), (6, 3, 4, 4)])
def test_batch_norm_and_its_halves(shape):
    x = values(*shape)
    own = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(shape[1], eps=EPS, affine=False).double()
    torch.testing.assert_close(applied(EX.batch_norm, x), own(x))
    for j in range(shape[1]):
        unit = x[:, j].numpy()
        np.testing.assert_allclose(applied(EX.mean_alone, x)[:, j], unit - unit.mean())
        np.testing.assert_allclose(applied(EX.variance_alone, x)[:, j], unit / math.sqrt(unit.var() + EPS))


def test_sparse_keeps_the_larger_half_of_a_normal_unit():
    x = values(20000, 2)
    found, own = applied(EX.sparse, x), applied(EX.batch_norm, x)
    torch.testing.assert_close(found, own.where(own.abs() > normal.ppf(0.75), torch.zeros(2, dtype=DOUBLE)))
    assert abs((found == 0).double().mean() - 0.5) < 0.01


def test_the_full_covariance_leaves_uncorrelated_units_and_puts_few_examples_at_right_angles():
    x = values(50, 4, 3, 3)
    x[:, 1] += x[:, 0]
    rows = EX.whitened(x, *EX.covariance(x), eps=1e-9).transpose(0, 1).flatten(1)
    identity = torch.eye(4, dtype=DOUBLE)
    torch.testing.assert_close(rows @ rows.T / rows.shape[1], identity, atol=1e-7, rtol=0)
    np.testing.assert_allclose(rows.mean(1), 0, atol=1e-9)
    wild = x * math.inf
    assert torch.isnan(EX.whitened(wild, *EX.covariance(wild))).any()
    fewer = values(6, 20)
    found = EX.whitened(fewer, *EX.covariance(fewer), eps=1e-9)
    # of 6 examples less their mean: 6 (I - 1/6)
    expected = 6 * torch.eye(6, dtype=DOUBLE) - 1
    torch.testing.assert_close(found @ found.T, expected, atol=1e-5, rtol=0)


def test_quantiles_and_the_integral_against_numpy():
    x = values(100, 3) ** 3
    (edges,) = EX.quantiles(x)
    for j in range(3):
        expected = np.quantile(x[:, j].numpy(), np.linspace(0, 1, 17))
        np.testing.assert_allclose(edges[j], expected)
        inside = np.interp(x[:, j].numpy(), expected, np.linspace(0, 1, 17))
        np.testing.assert_allclose(EX.integral(x, edges)[:, j], math.sqrt(12) * (inside - 0.5), atol=5e-3)


@pytest.mark.parametrize("name", ["batch", "fixed", "after", "sigmoid_batch"])
def test_the_network_is_the_one_written_out(name):
    net = EX.LeNet(EX.ARMS[name], SHAPE, 3)
    for each in net.norms if net.arm.affine else []:
        each.gamma.data += 0.1 * torch.arange(len(each.gamma)) / len(each.gamma)
        each.beta.data -= 0.2
    assert all(each.gamma.requires_grad == each.beta.requires_grad == (name != "fixed") for each in net.norms)
    for dropped in ((), EX.masks(32, torch.Generator().manual_seed(0))):
        x = IMAGES
        for k, (layer, norm) in enumerate(zip(net.hidden, net.norms)):
            z = layer(x.flatten(1) if k == 2 else x)
            z = net.arm.bend(z) if net.arm.after else z
            x = F.batch_norm(z, None, None, norm.gamma, norm.beta, True, 0.0, EPS)
            x = x if net.arm.after else net.arm.bend(x)
            x = F.avg_pool2d(x, 2) if k < 2 else x * dropped[k - 2] if dropped else x
        torch.testing.assert_close(net(IMAGES, dropped), net.readout(x), rtol=1e-4, atol=1e-5)


def test_arms_share_their_first_weights_and_biases():
    one, other = (EX.LeNet(arm, SHAPE, 5) for arm in (EX.PLAIN, EX.others["whitened_maps"]))
    for a, b in zip((*one.hidden, one.readout), (*other.hidden, other.readout)):
        assert torch.equal(a.weight, b.weight) and torch.equal(a.bias, b.bias)
    fan = one.hidden[1].weight[0].numel(), 16 * 5**2
    assert 0.9 < float(one.hidden[1].weight.detach().abs().max()) / math.sqrt(6 / sum(fan)) <= 1
    assert [isinstance(each, EX.Norm) for each in other.norms] == [True, True, False, False]
    assert not torch.equal(one.hidden[0].weight, EX.LeNet(EX.PLAIN, SHAPE, 6).hidden[0].weight)


def test_dropout_leaves_out_half_and_keeps_the_mean():
    one, two = EX.masks(2000, torch.Generator().manual_seed(0))
    assert (one.shape, two.shape) == ((2000, 120), (2000, 84))
    assert set(one.unique().tolist()) == {0.0, 2.0} and abs(one.mean() - 1) < 0.02
    losses = [EX.train(EX.LeNet(EX.FEW[n], SHAPE, 0), Rows(IMAGES, LABELS, 16, 0), 5, 0.1, 0) for n in EX.FEW]
    assert len({tuple(each) for each in losses}) == len(EX.FEW)


def test_a_training_is_gradient_descent_whose_rate_falls_over_the_last_fifth():
    net, twin = (EX.LeNet(EX.BATCH, SHAPE, 0) for _ in range(2))
    losses = EX.train(net, Rows(IMAGES, LABELS, 16, 0), 10, 0.5, 0)
    loss = lambda inputs, labels: F.cross_entropy(twin(inputs), labels)
    leaves, rates = [*twin.parameters()], [0.5 * share for share in SHARES]
    found = descend(loss, leaves, Rows(IMAGES, LABELS, 16, 0), rates)
    np.testing.assert_allclose(losses, found, rtol=1e-5)
    for a, b in zip(net.parameters(), leaves):
        torch.testing.assert_close(a, b)
    losses, _, best = EX.at_best(EX.PLAIN, 0, (IMAGES, LABELS), 20, (1e38, 0.25, 1e-9))
    assert np.isfinite(losses[0, 0]) and np.isnan(losses[0, -1]) and best == 0.25


def test_inference_is_by_the_mean_statistics_of_training_batches():
    net = EX.LeNet(EX.ARMS["first"], SHAPE, 1)
    EX.settle(net, IMAGES, batches=2)  # of eight images
    z = net.hidden[0](IMAGES[:16]).detach()
    mean = torch.stack([part.mean((0, 2, 3)) for part in z.split(8)]).mean(0)
    variance = torch.stack([part.var((0, 2, 3), correction=0) for part in z.split(8)]).mean(0)
    torch.testing.assert_close(net.norms[0].fixed[0].flatten(), mean)
    torch.testing.assert_close(net.norms[0].fixed[1].flatten(), variance)
    net.eval()
    one_by_one = torch.cat([net(IMAGES[k : k + 1]) for k in range(32)])
    torch.testing.assert_close(one_by_one, net(IMAGES))
    right = (one_by_one.argmax(1) == LABELS).double().mean()
    assert math.isclose(EX.right_answers(net, IMAGES, LABELS, 7), float(right))


def test_running_averages_are_torchs():
    net, running = EX.LeNet(EX.ARMS["first"], SHAPE, 1), {}
    z = [net.hidden[0](part).detach() for part in (IMAGES[:16], IMAGES[16:], IMAGES[:16] * 2)]
    twins = {"usual": 0.1, "textbook": 0.9, "all": None}
    twins = {name: nn.BatchNorm2d(6, momentum=weight) for name, weight in twins.items()}
    for twin in twins.values():  # torch's begin at 0 and 1, ours at the first batch
        twin.running_mean.copy_(z[0].mean((0, 2, 3)))
    for batches, part in enumerate((IMAGES[:16], IMAGES[16:], IMAGES[:16] * 2), start=1):
        net(part)
        EX.average(running, [net.norms[0].last], batches)
    for name, twin in twins.items():
        for part in z:
            twin(part)
        torch.testing.assert_close(running[name][0][0].flatten(), twin.running_mean)


def test_each_arm_is_measured_with_images_of_its_own(monkeypatch):
    monkeypatch.setitem(CELLS, "images", lambda split: (IMAGES, LABELS))
    found = EX.without_biases({name: EX.ARMS[name] for name in ("batch", "none", "after")}, 0)
    assert found["batch"] < 1e-12 and found["none"] > 1e-4 and found["after"] > 1e-4
    found = EX.trials({"batch": EX.BATCH}, 0)["batch"]
    assert found["best"] == 0.0625 and found["late"][1] == math.log(10) > found["late"][0]
    monkeypatch.setitem(CELLS, "places", [0, 12, 24, 36, 48])
    watched = EX.watched({name: {0: 0.0625} for name in ("none", "batch")}, 0)
    assert set(watched["none"]) == {"curve"} and len(watched["batch"]["curve"]) == 5
    assert {"by_usual", "by_textbook", "by_all", "by_batch", "gamma"} < set(watched["batch"])
    few = EX.trials_of_few({"both": EX.FEW["both"]}, 0)["both"]
    assert 0 <= few["test"] <= 1 and 0 <= few["train"] <= 1
    assert EX.gathered([watched], "by_all").keys() == {"batch"}
