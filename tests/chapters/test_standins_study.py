"""The chapter on stand-ins for batch norm: its layers, instruments and ranks against torch's own and slow twins."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from descent import SHARES, descend
from scipy.stats import spearmanr
from torch import nn

from bnbook.chapters.stand_ins import ALONE, INSTRUMENTS, OUTCOMES, TABLE
from bnbook.normalizers.lp import LpNorm

CONSTANTS = "meets", "shaken", "LAYERS", "full", "everywhere"
CHANGED = dict(width=8, layers=2, batch_size=16, steps=10, rates=[0.03125, 0.25, 2.0])
CELLS = page_cells.functions("practice/stand-ins", *CONSTANTS, **CHANGED)
SI = SimpleNamespace(**CELLS)
LAYERS, EPS = SI.LAYERS, 1e-5
DOUBLE = torch.float64
WIDTHS = (6, 8, 8, 8, 3)
INPUTS = torch.randn(24, 6, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
LABELS = torch.arange(24) % 3
BATCH = (INPUTS, LABELS)


def uneven(name, copies=1, seed=0):
    """A network whose γ, β and α are not at their start."""
    network = SI.draw(LAYERS[name], WIDTHS, seed, copies, DOUBLE)
    for (part, k), values in network.items():
        wave = torch.arange(values.numel(), dtype=DOUBLE).view_as(values)
        if part == "gammas":
            values.mul_(1 + 0.2 * torch.sin(wave + k))
        elif part == "betas":
            values += 0.2 * torch.cos(wave + k)
        elif part == "alphas":
            values.mul_(1 + 0.1 * k)
    return network


def answers(one, network, inputs, shaken=()):
    return SI.answers(one, network, inputs, shaken)[0]


def noise(name, *settings):
    return [(s.to(DOUBLE), m.to(DOUBLE)) for s, m in SI.noise(LAYERS[name], *settings)]


def test_layers_are_torchs_and_the_packages_own():
    drawn = torch.randn(2, 10, 16, generator=torch.Generator().manual_seed(5), dtype=DOUBLE)
    values = 1.5 * drawn + torch.linspace(-1, 2, 16, dtype=DOUBLE)
    torch_own = {
        "batch": nn.BatchNorm1d(16, affine=False, track_running_stats=False),
        "layer": nn.LayerNorm(16, elementwise_affine=False),
        "group2": nn.GroupNorm(2, 16, affine=False),
        "group8": nn.GroupNorm(8, 16, affine=False),
        "l1": LpNorm(16, p=1).double(),
        "l2": LpNorm(16, p=2).double(),
        "linf": LpNorm(16, p=math.inf).double(),
        "rms": nn.RMSNorm(16, EPS, elementwise_affine=False),
        "mean": lambda x: x - x.mean(0),
        "variance": lambda x: x / (x.var(0, correction=0) + EPS).sqrt(),
    }
    for name, module in torch_own.items():
        mean, divisor = LAYERS[name].statistics(values)
        torch.testing.assert_close(((values - mean) / divisor)[0], module(values[0]), rtol=1e-10, atol=1e-10)
    v, gamma = values[:, :7, :5], torch.linspace(0.5, 2, 10, dtype=DOUBLE).view(2, 5)
    direction = v[1] / v[1].square().sum(0).sqrt()
    torch.testing.assert_close(SI.weight_norm(v, gamma)[1], gamma[1] * direction, rtol=1e-12, atol=1e-12)
    standard = SI.standardized(3 * v, gamma) / gamma.unsqueeze(1)
    assert standard.mean(1).abs().max() < 1e-12
    expected = torch.full_like(gamma, 2 / 7)
    torch.testing.assert_close(standard.var(1, correction=0), expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", list(TABLE))
def test_a_network_is_that_of_layers_one_by_one(name):
    one, network = LAYERS[name], uneven(name)
    shaken = noise(name, 24, WIDTHS, 7)
    h = INPUTS
    for place in range(3):
        weight, gamma, beta, alpha = (
            network[part, place] for part in ("weights", "gammas", "betas", "alphas")
        )
        here = name not in ("first", "last") or place == {"first": 0, "last": 2}[name]
        x = h @ (one.weights(weight, gamma)[0] if one.weights else weight[0])
        if here and one.alpha:
            x = gamma[0] * torch.tanh(alpha[0] * x) + beta[0]
        elif here and one.statistics:
            x = x.relu() if one.after else x
            mean, divisor = one.statistics(x[None])
            x = gamma[0] * ((x - mean[0]) / divisor[0]) + beta[0]
            x = x * shaken[place][0] + shaken[place][1] if shaken else x
        else:
            x = x + beta[0]
        h = x if here and one.after else x.relu()
    found = answers(one, network, INPUTS, shaken)
    torch.testing.assert_close(found[0], h @ network["readout", 3][0], rtol=1e-12, atol=1e-12)
    keys = SI.trained(one, network)
    scaled = bool(one.statistics or one.weights or one.alpha)
    assert any(part == "gammas" for part, _ in keys) == (scaled and not one.frozen)
    assert any(part == "alphas" for part, _ in keys) == bool(one.alpha)
    leaves = [network[key].requires_grad_() for key in keys]
    torch.autograd.grad(answers(one, network, INPUTS, shaken).sum(), leaves)  # each counts, or this raises
    others = torch.cat([INPUTS[:12], INPUTS[12:] + 1])
    apart = (found - answers(one, network, others, shaken))[0, :12].abs().max()
    assert (apart < 1e-12) == (name in ALONE) == (not one.meet)


def test_noise_has_the_moments_of_its_text_and_is_the_same_for_one_key():
    s, m = noise("shaken", 4000, (2, 300, 2), 5)[0]
    assert torch.equal(s, noise("shaken", 4000, (2, 300, 2), 5)[0][0])
    assert not torch.equal(s, noise("shaken", 4000, (2, 300, 2), 6)[0][0])
    centres, scales = m.mean(0), s.mean(0)  # of units: uniform up to 1/2 and from 1 to 1.25
    assert 0.45 < centres.abs().max() < 0.52 and scales.min() > 0.98 and scales.max() < 1.27
    assert float((s - scales).std()) == pytest.approx(0.1, rel=0.02)
    assert float((m - centres).std()) == pytest.approx(0.1 / 3**0.5, rel=0.02)
    torch.testing.assert_close(noise("shaken_twice", 4000, (2, 300, 2), 5)[0][1], 2 * m, rtol=1e-5, atol=1e-6)
    assert noise("batch", 4, (2, 3, 2), 5) == []


def loss_of(one, network, changed=None):
    """Loss and its gradients by autograd, of a network with some parts replaced: {(name, layer): tensor}."""
    leaves = {key: network[key].clone() for key in SI.trained(one, network)} | (changed or {})
    leaves = {key: part.detach().requires_grad_() for key, part in leaves.items()}
    loss = F.cross_entropy(answers(one, network | leaves, INPUTS)[0], LABELS)
    return float(loss.detach()), dict(zip(leaves, torch.autograd.grad(loss, [*leaves.values()])))


def length(parts):
    return float(torch.cat([part.flatten() for part in parts]).norm())


@pytest.mark.parametrize("name", ["none", "batch", "weight", "tanh_two", "last"])
def test_the_walk_is_one_step_after_another(name):
    one, network, rate = LAYERS[name], uneven(name), 0.1
    found, (_, gradient) = SI.walk(one, network, BATCH, rate), loss_of(one, network)

    def at(a, layers=4):
        """Loss and gradient after a step of so many of the first layers."""
        moved = {key: network[key] - a * g for key, g in gradient.items() if key[1] < layers}
        return loss_of(one, network, moved)

    def change(a):
        return length(g - gradient[key] for key, g in at(a)[1].items()) / length(gradient.values())

    assert found["far"] == pytest.approx(change(16 * rate), rel=1e-9)
    assert found["near"] == pytest.approx(change(rate / 20) / (rate / 20), rel=1e-9)
    within = [rate * a for a in (0.5, 1, 2, 4)]
    assert found["beta"] == pytest.approx(max(change(a) / a for a in within), rel=1e-9)
    losses = [at(a)[0] for a in within]
    assert found["range"] == pytest.approx(max(losses) - min(losses), rel=1e-9)
    pairs = []
    for layer in (1, 2, 3):
        key = ("readout", 3) if layer == 3 else ("weights", layer)
        pairs.append((at(rate, layer)[1][key], gradient[key]))
    distances = [length([after - before]) for after, before in pairs]
    cosines = [float((a * b).sum()) / (length([a]) * length([b])) for a, b in pairs]
    assert found["shift_distance"] == pytest.approx(np.mean(distances), rel=1e-9)
    assert found["shift_cosine"] == pytest.approx(np.mean(cosines), rel=1e-9)


@pytest.mark.parametrize("name", ["none", "batch"])
def test_largest_curvature_and_the_readouts_rate_are_those_of_dense_matrices(name):
    one, network = LAYERS[name], uneven(name)
    keys = SI.trained(one, network)
    sizes = [network[key].numel() for key in keys]

    def loss(flat):
        own = {key: part.view_as(network[key]) for key, part in zip(keys, flat.split(sizes))}
        return F.cross_entropy(answers(one, network | own, INPUTS)[0], LABELS)

    start = torch.cat([network[key].flatten() for key in keys])
    dense = torch.autograd.functional.hessian(loss, start)
    top = float(torch.linalg.eigvalsh(dense)[-1])
    assert SI.curvature(one, network, BATCH) == pytest.approx(top, rel=1e-3)
    assert keys[-1] == ("readout", 3)
    block = float(torch.linalg.eigvalsh(dense[-sizes[-1] :, -sizes[-1] :])[-1])
    assert SI.readout_rate(one, network, INPUTS) == pytest.approx(2 / block, rel=1e-3)


def test_growth_and_moments_are_read_from_what_rectifiers_receive():
    one, network = LAYERS["none"], uneven("none")
    h, received = INPUTS, []
    for k in range(3):
        received.append(h @ network["weights", k][0] + network["betas", k][0].clone().requires_grad_())
        h = received[-1].relu()
    loss = F.cross_entropy(h @ network["readout", 3][0], LABELS)
    first, last = (slope.norm() for slope in torch.autograd.grad(loss, received[::2]))
    assert SI.growth(one, network, BATCH) == pytest.approx(float(first / last), rel=1e-9)
    mean, variance = SI.moments(one, network, INPUTS)
    torch.testing.assert_close(mean[8:16], received[1].detach().mean(0))
    torch.testing.assert_close(variance[8:16], received[1].detach().var(0, correction=0))


def test_stacked_members_descend_as_each_would_alone_at_a_rate_that_falls_over_the_last_fifth():
    one, stack = LAYERS["batch"], uneven("batch", 3)
    single = SI.members(stack, 1)
    leaves = [single[key].requires_grad_() for key in SI.trained(one, single)]
    for step in range(10):
        SI.descend(one, stack, BATCH, step)
    loss = lambda: F.cross_entropy(answers(one, single, INPUTS)[0], LABELS)
    descend(loss, leaves, iter([()] * 10), [0.25 * share for share in SHARES])
    for key in single:
        torch.testing.assert_close(stack[key][1], single[key][0].detach(), rtol=1e-7, atol=1e-8)


def test_accuracy_takes_the_average_of_the_batches_statistics():
    network, h, seen = uneven("batch"), INPUTS[:9], INPUTS.split(16)  # batches of 16 and of 8
    share = SI.test_accuracy(LAYERS["batch"], network, INPUTS, (h, LABELS[:9]))
    for k in range(3):
        weight, gamma, beta = (network[name, k][0] for name in ("weights", "gammas", "betas"))
        z, own = h @ weight, [part @ weight for part in seen]
        means, divisors = zip(*((part.mean(0), (part.var(0, correction=0) + EPS).sqrt()) for part in own))
        seen = [(gamma * (part - m) / d + beta).relu() for part, m, d in zip(own, means, divisors)]
        h = (gamma * (z - sum(means) / 2) / (sum(divisors) / 2) + beta).relu()
    right = (h @ network["readout", 3][0]).argmax(1) == LABELS[:9]
    assert share == pytest.approx(float(right.double().mean()))


def test_signs_correlations_and_what_is_kept():
    values = np.arange(len(TABLE), dtype=float)[None]
    table = dict.fromkeys((*INSTRUMENTS, *OUTCOMES), values)
    found = SI.correlations(table)
    for name, (sign, _) in INSTRUMENTS.items():
        assert found[f"{name}.rate"][0] == pytest.approx(sign)
    rate = np.zeros((1, len(TABLE)))
    rate[0, list(TABLE).index("batch")], rate[0, list(TABLE).index("mean")] = 4, 3
    assert SI.over_half(rate, "mean")[0] == 1 and SI.share_kept(rate, "mean")[0] == 0.75
    assert SI.agreement(np.tile(values, (3, 1))) == pytest.approx(1)
    rng, size = np.random.default_rng(1), len(TABLE)
    table = {name: rng.normal(size=(2, size)).round(1) for name in (*INSTRUMENTS, *OUTCOMES)}
    found = SI.resampled(table)
    drawn = np.random.default_rng(0).integers(size, size=(2000, size))
    for k in (0, 7, 1999):
        for seed in (0, 1):
            for name, sign in (("drift_mean", -1), ("readout", 1)):
                score, outcome = sign * table[name][seed, drawn[k]], table["speed"][seed, drawn[k]]
                assert found[f"{name}.speed"][seed, k] == pytest.approx(spearmanr(score, outcome)[0])
    with_nan = np.where(np.arange(size) == 3, np.nan, table["far"][0])
    lowest = np.where(np.arange(size) == 3, -9, with_nan)
    assert SI.spearman(with_nan, lowest) == pytest.approx(1)


def test_the_usable_rate_is_read_before_the_rate_falls():
    guess = math.log(10)
    losses = np.full((10, 3), 0.5 * guess)
    losses[6:8, 2], losses[8:, 2] = guess, 0.1  # good only while the rate falls
    one, images = LAYERS["none"], (torch.randn(32, 48), torch.arange(32) % 10)
    network = SI.draw(one, (48, 8, 8, 10), 0, 3)
    found = SI.outcomes(one, network, losses, images, images)
    crossed = -2 + 3 * (0.9 - 0.5) / (1 - 0.5)  # of the way from 2^-2 to 2^1
    assert found["rate"] == pytest.approx(crossed) and found["speed"] == pytest.approx(-0.5 * guess)
    losses[3, 1] = np.nan
    crossed = -5 + 3 * (0.9 - 0.5) / (1 - 0.5)  # what has diverged counts as guessing
    for worse, rate in ((losses, crossed), (np.ones((10, 3)), 1), (np.full((10, 3), np.inf), -6)):
        assert SI.outcomes(one, network, worse, images, images)["rate"] == pytest.approx(rate)


def test_a_trial_has_every_number_and_what_diverges_has_none(monkeypatch):
    inputs = torch.randn(200, 12, generator=torch.Generator().manual_seed(1))
    images = (inputs, torch.arange(200) % 10)
    found = SI.trial(LAYERS["variance"], 3, images, images)
    assert set(found) == {*INSTRUMENTS, *OUTCOMES} and np.isfinite([*found.values()]).all()
    monkeypatch.setitem(CELLS, "rates", [1e12, 1e13])
    monkeypatch.setitem(CELLS, "common", 1e12)
    lost = SI.trial(LAYERS["none"], 3, images, images)
    assert not np.isfinite(lost["far"]) and lost["rate"] == math.log2(1e12) - 1


def test_softmax_regression_is_a_network_without_a_hidden_layer(monkeypatch):
    x, y = torch.randn(64, 12, generator=torch.Generator().manual_seed(1)), torch.arange(64) % 10
    monkeypatch.setitem(CELLS, "images", lambda split: (x, y))
    monkeypatch.setitem(CELLS, "rates", [0.25])
    drawn = torch.randn(13, 10, generator=torch.Generator().manual_seed(2), dtype=DOUBLE) * (2 / 13) ** 0.5
    weight, x1 = drawn.float().requires_grad_(), torch.cat([x, torch.ones(64, 1)], 1)
    loss = lambda images, labels: F.cross_entropy(images @ weight, labels)
    losses = descend(loss, [weight], SI.Rows(x1, y, 16, 2), [0.25 * share for share in SHARES])
    found, right = SI.linear(LAYERS["none"], 2), (x1 @ weight).argmax(1) == y
    assert found["speed"] == pytest.approx(-np.mean(losses[:8]), rel=1e-5)
    assert found["accuracy"] == pytest.approx(float(right.double().mean()))
