"""The chapter on stand-ins for batch norm: its layers, instruments and ranks against torch's own and slow twins."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from bnbook.chapters import stand_ins
from bnbook.chapters.shared import Rows
from bnbook.chapters.stand_ins import (
    ALONE,
    EPS,
    TABLE,
    accuracy,
    answers,
    draw,
    mean_loss,
    members,
    noise,
    stands_in,
    trained,
)
from bnbook.normalizers.lp import LpNorm

DOUBLE = torch.float64
WIDTHS = (6, 8, 8, 8, 3)
INPUTS = torch.randn(24, 6, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
LABELS = torch.arange(24) % 3
BATCH = (INPUTS, LABELS)


def z(units=8):
    drawn = torch.randn(2, 10, units, generator=torch.Generator().manual_seed(5), dtype=DOUBLE)
    return 1.5 * drawn + torch.linspace(-1, 2, units, dtype=DOUBLE)


def uneven(name, copies=1, seed=0):
    """A network whose γ, β and α are not at their start."""
    network = draw(TABLE[name], WIDTHS, seed, copies, DOUBLE)
    for k, (gamma, beta) in enumerate(zip(network["gammas"], network["betas"])):
        wave = torch.arange(gamma.numel(), dtype=DOUBLE).view_as(gamma)
        gamma.mul_(1 + 0.2 * torch.sin(wave + k))
        beta += 0.2 * torch.cos(wave + k)
        network["alphas"][k].mul_(1 + 0.1 * k)
    return network


def test_layers_are_torchs_and_the_packages_own():
    values = z(16)
    x = values[0]
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
        mean, divisor = TABLE[name].statistics(values)
        torch.testing.assert_close(((values - mean) / divisor)[0], module(x), rtol=1e-10, atol=1e-10)


def test_weight_norm_is_torchs_and_standardized_weights_have_their_moments():
    v, gamma = z(5)[:, :7], torch.linspace(0.5, 2, 10, dtype=DOUBLE).view(2, 5)
    found = TABLE["weight"].weights(v, gamma)
    linear = nn.utils.parametrizations.weight_norm(nn.Linear(7, 5, bias=False, dtype=DOUBLE))
    linear.parametrizations.weight.original0.data = gamma[1].view(5, 1)
    linear.parametrizations.weight.original1.data = v[1].T.clone()
    torch.testing.assert_close(found[1], linear.weight.T, rtol=1e-12, atol=1e-12)
    standard = TABLE["standardized"].weights(v, gamma) / gamma.unsqueeze(1)
    assert standard.mean(1).abs().max() < 1e-12
    torch.testing.assert_close(
        standard.var(1, correction=0), torch.full_like(gamma, 2 / 7), rtol=1e-4, atol=0
    )
    torch.testing.assert_close(
        TABLE["standardized"].weights(3 * v, gamma), gamma.unsqueeze(1) * standard, rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("name", list(TABLE))
def test_a_network_is_that_of_layers_one_by_one(name):
    one, network = TABLE[name], uneven(name)
    shaken = [(s.to(DOUBLE), m.to(DOUBLE)) for s, m in noise(one, 24, WIDTHS, 7)]
    h = INPUTS
    for place in range(3):
        weight, gamma, beta = (network[part][place] for part in ("weights", "gammas", "betas"))
        here = stands_in(one, place, 3)
        x = h @ (one.weights(weight, gamma)[0] if one.weights else weight[0])
        if here and one.alpha:
            x = gamma[0] * torch.tanh(network["alphas"][place][0] * x) + beta[0]
        elif here and one.statistics:
            x = x.relu() if one.after else x
            mean, divisor = one.statistics(x[None])
            x = gamma[0] * ((x - mean[0]) / divisor[0]) + beta[0]
            x = x * shaken[place][0] + shaken[place][1] if shaken else x
        else:
            x = x + beta[0]
        h = x if here and one.after else x.relu()
    found = answers(one, network, INPUTS, shaken)
    torch.testing.assert_close(found[0], h @ network["readout"][0][0], rtol=1e-12, atol=1e-12)
    names = {part for part, _, _ in trained(network, one)}
    assert ("gammas" in names) == (one.scaled and not one.frozen) and ("alphas" in names) == bool(one.alpha)
    leaves = [part.requires_grad_() for _, _, part in trained(network, one)]
    torch.autograd.grad(answers(one, network, INPUTS, shaken).sum(), leaves)  # each counts, or this raises


def test_the_list_of_those_alone_is_that_in_which_an_example_is_answered_by_itself():
    for name, one in TABLE.items():
        network = uneven(name)
        shaken = [(s.to(DOUBLE), m.to(DOUBLE)) for s, m in noise(one, 24, WIDTHS, 7)]
        others = INPUTS.clone()
        others[12:] += 1
        same = torch.equal(*(answers(one, network, x, shaken)[0, :12] for x in (INPUTS, others)))
        close = (
            (answers(one, network, INPUTS, shaken) - answers(one, network, others, shaken))[0, :12]
            .abs()
            .max()
        )
        assert (same or close < 1e-12) == (name in ALONE)
    assert len(TABLE) >= 20 and len(ALONE) >= 10


def test_noise_has_the_moments_of_its_text_and_is_the_same_for_one_key():
    s, m = noise(TABLE["shaken"], 4000, (2, 300, 2), 5)[0]
    assert torch.equal(s, noise(TABLE["shaken"], 4000, (2, 300, 2), 5)[0][0])
    assert not torch.equal(s, noise(TABLE["shaken"], 4000, (2, 300, 2), 6)[0][0])
    centres, scales = m.mean(0), s.mean(0)  # of units: uniform up to 1/2 and from 1 to 1.25
    assert 0.45 < centres.abs().max() < 0.52 and scales.min() > 0.98 and scales.max() < 1.27
    assert float((s - scales).std()) == pytest.approx(0.1, rel=0.02)
    assert float((m - centres).std()) == pytest.approx(0.1 / 3**0.5, rel=0.02)
    twice = noise(TABLE["shaken_twice"], 4000, (2, 300, 2), 5)[0][1]
    torch.testing.assert_close(twice, 2 * m, rtol=1e-5, atol=1e-6)
    assert noise(TABLE["batch"], 4, (2, 3, 2), 5) == []


def loss_of(one, network, changed=None):
    """Loss and its gradients by autograd, of a network with some parts replaced: {(name, layer): tensor}."""
    parts = {(name, place): part.clone() for name, place, part in trained(network, one)} | (changed or {})
    built = {name: list(own) for name, own in network.items()}
    for (name, place), part in parts.items():
        built[name][0 if name == "readout" else place] = part.detach().requires_grad_()
    leaves = [built[name][0 if name == "readout" else place] for name, place in parts]
    loss = mean_loss(answers(one, built, INPUTS), LABELS).sum()
    return float(loss.detach()), dict(zip(parts, torch.autograd.grad(loss, leaves))), parts


def length(parts):
    return math.sqrt(sum(float((part**2).sum()) for part in parts))


@pytest.mark.parametrize("name", ["none", "batch", "layer", "weight", "tanh_two", "last"])
def test_the_walk_is_one_step_after_another(name):
    one, network, rate = TABLE[name], uneven(name), 0.1
    found = stand_ins.walk(one, network, BATCH, rate)
    start, gradient, parts = loss_of(one, network)

    def at(a):
        loss, there, _ = loss_of(one, network, {key: part - a * gradient[key] for key, part in parts.items()})
        return loss, length(there[key] - gradient[key] for key in parts)

    norm = length(gradient.values())
    assert found["far"] == pytest.approx(at(16 * rate)[1] / norm, rel=1e-9)
    assert found["near"] == pytest.approx(at(rate / 20)[1] / (rate / 20 * norm), rel=1e-9)
    within = [rate * a for a in (0.5, 1, 2, 4)]
    assert found["beta"] == pytest.approx(max(at(a)[1] / (a * norm) for a in within), rel=1e-9)
    losses = [at(a)[0] for a in within]
    assert found["range"] == pytest.approx(max(losses) - min(losses), rel=1e-9)
    distances, cosines = [], []
    for layer in (1, 2, 3):
        key = ("readout", 3) if layer == 3 else ("weights", layer)
        below = {k: part - rate * gradient[k] for k, part in parts.items() if k[1] < layer}
        after = loss_of(one, network, below)[1][key]
        distances.append(length([after - gradient[key]]))
        cosines.append(float((after * gradient[key]).sum()) / (length([after]) * length([gradient[key]])))
    assert found["shift_distance"] == pytest.approx(np.mean(distances), rel=1e-9)
    assert found["shift_cosine"] == pytest.approx(np.mean(cosines), rel=1e-9)


@pytest.mark.parametrize("name", ["none", "batch", "group2"])
def test_largest_curvature_and_the_readouts_rate_are_those_of_dense_matrices(name):
    one, network = TABLE[name], uneven(name)
    parts = trained(network, one)
    sizes = [part.numel() for _, _, part in parts]

    def loss(flat):
        built = {key: list(own) for key, own in network.items()}
        for (key, place, part), own in zip(parts, flat.split(sizes)):
            built[key][0 if key == "readout" else place] = own.view_as(part)
        return mean_loss(answers(one, built, INPUTS), LABELS).sum()

    dense = torch.autograd.functional.hessian(
        loss, torch.cat([part.detach().flatten() for *_, part in parts])
    )
    top = float(torch.linalg.eigvalsh(dense)[-1])
    assert stand_ins.curvature(one, network, BATCH) == pytest.approx(top, rel=1e-3)
    rows = slice(sum(sizes[: [key for key, *_ in parts].index("readout")]), None)
    block = dense[rows, rows][: sizes[-1], : sizes[-1]]
    assert parts[-1][0] == "readout"
    assert stand_ins.readout_rate(one, network, INPUTS) == pytest.approx(
        2 / float(torch.linalg.eigvalsh(block)[-1]), rel=1e-3
    )


def test_growth_and_moments_are_read_from_what_rectifiers_receive():
    one, network = TABLE["none"], uneven("none")
    h, received = INPUTS, []
    for weight, beta in zip(network["weights"], network["betas"]):
        received.append(h @ weight[0] + beta[0].requires_grad_())
        h = received[-1].relu()
    loss = nn.functional.cross_entropy(h @ network["readout"][0][0], LABELS)
    first, last = (slope.norm() for slope in torch.autograd.grad(loss, received[::2]))
    assert stand_ins.growth(one, network, BATCH) == pytest.approx(float(first / last), rel=1e-9)
    mean, variance = stand_ins.moments(one, network, INPUTS)
    torch.testing.assert_close(mean[8:16], received[1].detach().mean(0))
    torch.testing.assert_close(variance[8:16], received[1].detach().var(0, correction=0))


def test_stacked_members_descend_as_each_would_alone():
    one, rates = TABLE["batch"], (0.1, 0.5)
    stack = uneven("batch", 2)
    single = members(stack, [1])
    for _ in range(3):
        stand_ins.descend(one, stack, BATCH, rates, ())
        loss, gradient, parts = loss_of(one, single)
        for name, place in parts:
            own = single[name][0 if name == "readout" else place]
            own -= 0.5 * gradient[name, place]
    for name in ("weights", "gammas", "betas"):
        for whole, own in zip(stack[name], single[name]):
            torch.testing.assert_close(whole[1], own[0], rtol=1e-10, atol=1e-12)


def test_accuracy_takes_the_average_of_the_batches_statistics():
    one, network = TABLE["batch"], uneven("batch")
    share = float(accuracy(one, network, INPUTS, INPUTS[:9], LABELS[:9], 12))
    used = [[], []]
    for half, rows in enumerate((INPUTS[:12], INPUTS[12:])):
        answers(one, network, rows, used=used[half])
    h = INPUTS[:9]
    for place, (weight, gamma, beta) in enumerate(
        zip(network["weights"], network["gammas"], network["betas"])
    ):
        mean, divisor = ((used[0][place][k] + used[1][place][k])[0] / 2 for k in (0, 1))
        h = (gamma[0] * ((h @ weight[0] - mean) / divisor) + beta[0]).relu()
    right = (h @ network["readout"][0][0]).argmax(1) == LABELS[:9]
    assert share == pytest.approx(float(right.double().mean()))


PLAN = stand_ins.Plan("textures-standin", 4, 8, 2, 16, 10, 2, (0.03125, 0.25, 2.0), 0.03125)


def test_signs_correlations_and_what_is_kept():
    values = np.arange(len(TABLE), dtype=float)[None]
    table = dict.fromkeys((*stand_ins.INSTRUMENTS, *stand_ins.OUTCOMES), values)
    found = stand_ins.correlations(table)
    for name, (sign, _) in stand_ins.INSTRUMENTS.items():
        assert found[f"{name}.rate"][0] == pytest.approx(sign)
    assert set(stand_ins.correlations(table, ALONE)) == set(found)
    rate = np.zeros((1, len(TABLE)))
    rate[0, list(TABLE).index("batch")], rate[0, list(TABLE).index("mean")] = 4, 3
    assert stand_ins.kept(rate, "mean")[0] == 1 and stand_ins.kept(rate, "none")[0] == -2
    same = {outcome: np.tile(values, (3, 1)) for outcome in stand_ins.OUTCOMES}
    assert all(np.allclose(own, 1) for own in stand_ins.agreement(same).values())


def test_the_usable_rate_is_read_before_the_rate_falls():
    guess = math.log(10)
    losses = np.full((10, 3), 0.5 * guess)
    losses[6:8, 2], losses[8:, 2] = guess, 0.1  # good only while the rate falls
    one, network = TABLE["none"], draw(TABLE["none"], (48, 8, 8, 10), 0, 3)
    images = (torch.randn(32, 48), torch.arange(32) % 10)
    found = stand_ins.outcomes(one, PLAN, network, losses, images, images)
    crossed = -2 + 3 * (0.9 - 0.5) / (1 - 0.5)  # of the way from 2^-2 to 2^1
    assert found["rate"] == pytest.approx(crossed) and found["speed"] == pytest.approx(-0.5 * guess)
    losses[3, 1] = np.nan
    crossed = -5 + 3 * (0.9 - 0.5) / (1 - 0.5)  # what has diverged counts as guessing
    assert stand_ins.outcomes(one, PLAN, network, losses, images, images)["rate"] == pytest.approx(crossed)
    losses[:] = 1.0
    assert stand_ins.outcomes(one, PLAN, network, losses, images, images)["rate"] == 1
    losses[:] = np.inf
    assert stand_ins.outcomes(one, PLAN, network, losses, images, images)["rate"] == math.log2(0.03125) - 1
    shares = [PLAN.share(step) for step in range(10)]
    assert PLAN.full == 8 and shares[:8] == [1.0] * 8 and shares[8:] == pytest.approx([2 / 3, 1 / 3])
    assert all(a >= b for a, b in pairwise(shares))


def test_a_trial_repeats_itself_and_what_diverges_has_no_number():
    inputs = torch.randn(200, 12, generator=torch.Generator().manual_seed(1))
    images = (inputs, torch.arange(200) % 10)
    found = stand_ins.trial(TABLE["variance"], PLAN, 3, images, images)
    assert found == stand_ins.trial(TABLE["variance"], PLAN, 3, images, images)
    assert set(found) == {*stand_ins.INSTRUMENTS, *stand_ins.OUTCOMES}
    wild = stand_ins.Plan("textures-standin", 4, 8, 2, 16, 10, 2, (1e12, 1e13), 1e12)
    lost = stand_ins.trial(TABLE["none"], wild, 3, images, images)
    assert not np.isfinite(lost["far"]) and lost["rate"] == math.log2(1e12) - 1
    assert next(Rows(*images, 16, 3))[0].shape == (16, 12)
