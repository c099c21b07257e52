"""The chapter on residual networks: its stack, its descent and its instruments against one network written out."""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from descent import descend

from bnbook.chapters.shared import Rows

PAGE = page_cells.functions(
    "batch-norm/residual",
    pool=8,
    width=4,
    depths=[2, 3],
    depth_rates=[0.01, 0.1],
    depth_examples=16,
    depth_batch=8,
)
Arm, recipes, answers, first_order, draw, cut, gradients, lengths = (
    PAGE[name] for name in "Arm recipes answers first_order draw cut gradients lengths".split()
)
train, judged, far_change, images, with_negatives, grid, best_rate, best_place = (
    PAGE[name] for name in "train judged far_change images with_negatives grid best_rate best_place".split()
)
DOUBLE, INPUTS, BLOCKS, CLASSES = torch.float64, 7, 3, 4
X = torch.randn(40, INPUTS, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
Y = torch.arange(40) % CLASSES
NONE = Arm(), Arm(alpha=0.3, learned=True), Arm(divisor=2**0.5), Arm(skip=False), Arm(alpha=0, learned=True)
KINDS = {
    "none": NONE,
    "batch": (Arm("batch"), Arm("batch", gamma=0.0), Arm("batch", skip=False)),
    "constant": (Arm("constant"), Arm("constant", gamma=0.5)),
    "centre": (Arm("centre", alpha=0.4), Arm("centre", alpha=0.2), Arm("centre", alpha=0.3, divisor=2**0.5)),
}


def written_out(part, arm, x, given=None, used=None, watch=None):
    """The answers of one member on its own, by the parts of its network; `given` statistics of each norm or the
    batch's, `watch` takes mean squares."""
    given = iter(given or ())

    def norm(z, gamma, beta):
        if arm.norm == "none":
            return z + beta
        mean, var = next(given, (z.mean(0), z.var(0, correction=0)))
        if used is not None:
            used.append((mean, var * len(z) / (len(z) - 1)))
        if arm.norm == "centre":
            return z - mean + beta
        mean, var = (mean.detach(), var.detach()) if arm.norm == "constant" else (mean, var)
        return gamma * (z - mean) / torch.sqrt(var + 1e-5) + beta

    x = x @ part["stem"][0].T
    watch = [] if watch is None else watch
    watch.append([x.detach().square().mean()] * 2)
    for k in range(len(part["inner"])):
        h = norm(x @ part["inner"][k].T, part["inner_gamma"][k], part["inner_beta"][k]).relu()
        f = norm(h @ part["outer"][k].T, part["outer_gamma"][k], part["outer_beta"][k])
        f = part["alpha"][k] * f / arm.divisor
        x = arm.skip * x / arm.divisor + f
        watch.append([each.detach().square().mean() for each in (x, f)])
    x = x if arm.norm == "none" else norm(x, part["final_gamma"][0], part["final_beta"][0])
    return x @ part["readout"][0].T


def uneven(arms):
    """Members whose biases, γ and β are not at their start."""
    network = draw(arms, INPUTS, 5, BLOCKS, 1, DOUBLE, CLASSES)
    for name, part in network.items():
        if "beta" in name or "gamma" in name:
            part += 0.3 * torch.sin(torch.arange(part.numel(), dtype=DOUBLE)).view_as(part)
    return network


def of_member(network, arm, member):
    """The parts of a member, and those of them that are trained."""
    part = {name: values[:, member].clone() for name, values in network.items()}
    fixed = {"gamma"} if arm.norm in ("none", "centre") else set()
    fixed |= {"final"} if arm.norm == "none" else set()
    fixed |= set() if arm.learned else {"alpha"}
    leaves = [values.requires_grad_() for name, values in part.items() if not fixed & {*name.split("_")}]
    return part, leaves


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_answers_is_judged_and_is_trained_by_itself_at_its_own_rate(kind):
    arms = KINDS[kind]
    network, seen, rates = uneven(arms), [], [0.02 * (1 + k) for k in range(len(arms))]
    found = answers(network, arms, X, watch=seen)
    judgement = judged(network, arms, X, Y, X[:15], Y[:15])
    far, lengths_of = far_change(network, arms, rates, X, Y), lengths(gradients(network, arms, X, Y))
    ended = train(network, arms, rates, Rows(X, Y, 10, 5), 9)
    for member, arm in enumerate(arms):
        (part, leaves), used, watch = of_member(network, arm, member), [], []
        logits = written_out(part, arm, X, used=used, watch=watch)
        torch.testing.assert_close(found[member].T, logits, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(torch.stack(seen)[..., member], watch, rtol=1e-9, atol=1e-12)
        assert judgement["loss"][member] == pytest.approx(F.cross_entropy(logits, Y).item())
        right = written_out(part, arm, X[:15], given=used).argmax(1) == Y[:15]
        assert judgement["accuracy"][member] == pytest.approx(float(right.double().mean()))

        def loss(x, y, part=part, arm=arm):
            return F.cross_entropy(written_out(part, arm, x), y)

        descend(loss, leaves, Rows(X, Y, 10, 5), [rates[member]] * 9)
        for name, values in part.items():
            torch.testing.assert_close(ended[name][:, member], values.detach(), rtol=1e-9, atol=1e-10)
        part, leaves = of_member(network, arm, member)
        here = torch.autograd.grad(loss(X, Y, part), leaves)
        descend(lambda *_, part=part: loss(X, Y, part), leaves, iter([()]), [16 * rates[member]])
        there = torch.autograd.grad(loss(X, Y, part), leaves)
        length = math.hypot(*torch.cat([g.flatten() for g in here]))
        change = math.hypot(*torch.cat([(a - b).flatten() for a, b in zip(there, here)]))
        assert float(lengths_of[member]) == pytest.approx(length, rel=1e-9)
        assert far[member] == pytest.approx(change / length, rel=1e-9)


@pytest.mark.parametrize("name", ["plain", "scaled", "halved", "batch", "first"])
def test_squares_by_block_are_near_their_laws(name):
    blocks, one = 6, {"scaled": Arm(alpha=0.25), "halved": Arm(divisor=2**0.5), "plain": Arm()}
    arm, watch = one.get(name, Arm("batch")), []
    network = draw([arm], INPUTS, 400, blocks, 4, DOUBLE, CLASSES)
    u = X * math.sqrt(INPUTS) / X.norm(dim=1, keepdim=True)
    answers(network, [arm], u, watch=watch)
    square, of_branch = (first_order(network, u) if name == "first" else torch.stack(watch))[-1, :, 0]
    grows = (1 + arm.alpha**2) / arm.divisor**2
    law = (blocks + 1.0, 1.0) if arm.norm == "batch" else (grows**blocks, None)
    assert float(square) / law[0] == pytest.approx(1, abs=0.35)
    assert law[1] is None or float(of_branch) == pytest.approx(law[1], abs=0.15)


def test_the_best_rate_is_a_parabolas_and_stays_on_the_grid_where_there_is_none():
    rates = grid(2**-4, 29)
    assert rates[[0, 4, 28]].tolist() == [2**-4, 2**-3, 2**3]
    for true in (0.3, 0.7, 1.9):
        loss = np.exp(0.2 * (np.log(rates) - math.log(true)) ** 2 - 1)
        assert best_rate(2**-4, loss) == pytest.approx(true)
    bowl = np.abs(np.arange(29.0) - 10) + 1
    assert best_rate(2**-4, bowl) == pytest.approx(rates[10])
    bowl[14] = np.nan
    assert best_rate(2**-4, bowl) == rates[10] and best_place(bowl) == 10
    bowl[6], bowl[14] = 5.0, 3.0
    assert rates[10] < best_rate(2**-4, bowl) < rates[12]
    assert best_rate(2**-4, np.arange(29.0)[::-1] + 1) == rates[-1]
    assert best_rate(2**-4, np.full(29, np.nan)) == best_rate(2**-4, np.ones(29)) == rates[0]


def test_a_recipe_at_a_rate_is_that_training_by_itself():
    """Of the stacks of `at_depth` one member, trained and looked at alone."""
    found = PAGE["by_depth"](1)
    u, labels, tests, test_labels = images(16, 1)
    data = *with_negatives(u, labels), *with_negatives(tests[:2000], test_labels[:2000])
    for norm, name in {
        "none": "skipinit",
        "batch": "zero",
        "constant": "constant",
        "centre": "quiet_centre",
    }.items():
        arm, rows = [recipes(3)[norm][name]], Rows(*data[:2], 8, 1)
        alone = train(draw(arm, data[0].shape[1], 4, 3, 1), arm, [0.1], rows, 2)
        far = [far_change(alone, arm, [0.1], *next(rows))[0] for _ in range(2)]
        loud = alone["alpha"] if norm != "batch" else alone["outer_gamma"]
        wanted = {what: values[0] for what, values in judged(alone, arm, *data).items()}
        wanted["far"] = math.sqrt(far[0] * far[1])
        wanted["cut_loss"] = judged(cut(alone), arm, *data)["loss"][0]
        for what, value in wanted.items():
            assert found[f"{name}.d3.{what}"][1] == pytest.approx(value, rel=1e-3), (name, what)
        assert found[f"{name}.d3.awake"][1, 1] == pytest.approx(float(loud.square().mean().sqrt()), rel=1e-4)
    shares = [float((data[1] == k).double().mean()) for k in range(10)]
    assert found["entropy"] == pytest.approx(-sum(p * math.log(p) for p in shares if p))
    quiet = [recipes(3)[norm][name].alpha for norm, name in (("none", "scaled"), ("centre", "quiet_centre"))]
    assert quiet == pytest.approx([3**-0.5] * 2)


def test_without_its_branches_a_network_is_one_whose_branches_add_nothing():
    arms = KINDS["batch"][:1]
    network = uneven(arms)
    silent = network | {"alpha": 0 * network["alpha"]}
    torch.testing.assert_close(answers(cut(network), arms, X), answers(silent, arms, X))
    u, labels = with_negatives(X, Y)
    torch.testing.assert_close(u, torch.stack([X, -X], 1).view(80, INPUTS))
    assert labels.tolist() == [int(y) for y in Y for _ in range(2)]


def test_each_seed_is_judged_at_the_rate_that_is_best_for_the_others():
    loss = np.array([[1.0, 2.0, 0.0], [3.0, 2.0, np.nan], [2.5, 2.0, 0.0]])
    assert PAGE["others_best"](loss).tolist() == [1, 2, 0]
    assert PAGE["others_best"](np.full((3, 2), np.nan)).tolist() == [0, 0, 0]
