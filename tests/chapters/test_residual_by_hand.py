"""The chapter on residual networks: its stack, its descent and its instruments against torch's own layers and loops."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import page_cells
import pytest
import torch
from torch import nn

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
DOUBLE, INPUTS, WIDTH, BLOCKS, CLASSES = torch.float64, 7, 5, 3, 4
X = torch.randn(40, INPUTS, generator=torch.Generator().manual_seed(3), dtype=DOUBLE)
Y = torch.arange(40) % CLASSES
PLAIN = [
    Arm(),
    Arm(alpha=0.3, learned=True),
    Arm(divisor=2**0.5),
    Arm(skip=False),
    Arm(alpha=0.0, learned=True),
]
NORMED = [Arm("batch"), Arm("batch", gamma=0.0), Arm("batch", skip=False)]
CONSTANT = [Arm("constant"), Arm("constant", gamma=0.5)]
CENTRED = [Arm("centre", alpha=0.4), Arm("centre", alpha=0.2), Arm("centre", alpha=0.3, divisor=2**0.5)]
KINDS = pytest.mark.parametrize(
    "arms", [PLAIN, NORMED, CONSTANT, CENTRED], ids=["none", "batch", "constant", "centre"]
)


class Held(nn.Module):
    """The statistics of a batch (B, N), held constant; or the mean alone, which is not; by hand."""

    def __init__(self, gamma, beta, divides):
        super().__init__()
        self.weight, self.bias = nn.Parameter(gamma, requires_grad=divides), nn.Parameter(beta)
        self.divides, self.mean, self.var = divides, None, None

    def forward(self, z):
        if self.training:
            self.mean = z.sum(0) / len(z)
            self.var = ((z - self.mean) ** 2).sum(0) / len(z)
            if self.divides:
                self.mean, self.var = self.mean.detach(), self.var.detach()
        if not self.divides:
            return z - self.mean + self.bias
        var = self.var if self.training else self.var * len(X) / (len(X) - 1)  # that of inference
        return self.weight * (z - self.mean) / torch.sqrt(var + 1e-5) + self.bias


class Twin(nn.Module):
    """One member, of torch's own layers."""

    def __init__(self, network, arm, member):
        super().__init__()
        self.arm = arm
        normed = arm.norm != "none"

        def linear(weight, bias=None):
            layer = nn.Linear(*weight.shape[::-1], bias=bias is not None, dtype=DOUBLE)
            layer.weight.data = weight.clone()
            if bias is not None:
                layer.bias.data = bias.clone()
            return layer

        def norm(gamma, beta):
            if arm.norm != "batch":
                return Held(gamma.clone(), beta.clone(), arm.norm == "constant")
            layer = nn.BatchNorm1d(len(gamma), momentum=1.0, dtype=DOUBLE)
            layer.weight.data, layer.bias.data = gamma.clone(), beta.clone()
            return layer

        part = network
        self.stem, self.readout = linear(part["stem"][0, member]), linear(part["readout"][0, member])
        self.blocks = nn.ModuleList()
        for k in range(len(part["inner"])):
            betas = [part[f"{where}_beta"][k, member] for where in ("inner", "outer")]
            weights = [part[where][k, member] for where in ("inner", "outer")]
            if normed:
                gammas = [part[f"{where}_gamma"][k, member] for where in ("inner", "outer")]
                one, two = (nn.Sequential(linear(w), norm(g, b)) for w, g, b in zip(weights, gammas, betas))
            else:
                one, two = (linear(w, b) for w, b in zip(weights, betas))
            self.blocks.append(nn.Sequential(one, nn.ReLU(), two))
        self.alphas = nn.ParameterList(
            nn.Parameter(part["alpha"][k, member].clone(), requires_grad=arm.learned)
            for k in range(len(part["inner"]))
        )
        self.final = (
            norm(part["final_gamma"][0, member], part["final_beta"][0, member]) if normed else nn.Identity()
        )

    def forward(self, u):
        x = self.stem(u)
        for branch, alpha in zip(self.blocks, self.alphas):
            kept = x if self.arm.skip else 0 * x
            x = (kept + alpha * branch(x)) / self.arm.divisor
        return self.readout(self.final(x))


def uneven(arms):
    """Members whose biases, γ and β are not at their start."""
    network = draw(arms, INPUTS, WIDTH, BLOCKS, 1, DOUBLE, CLASSES)
    for name, part in network.items():
        if "beta" in name or "gamma" in name:
            part += 0.3 * torch.sin(torch.arange(part.numel(), dtype=DOUBLE)).view_as(part)
    return network


@KINDS
def test_a_member_answers_and_is_judged_as_torchs_layers(arms):
    network, keep = uneven(arms), []
    found = answers(network, arms, X, used=keep)
    judgement = judged(network, arms, X, Y, X[:15], Y[:15])
    for member, arm in enumerate(arms):
        twin = Twin(network, arm, member)
        torch.testing.assert_close(found[member].T, twin(X), rtol=1e-11, atol=1e-11)
        assert judgement["loss"][member] == pytest.approx(nn.functional.cross_entropy(twin(X), Y).item())
        right = twin.eval()(X[:15]).argmax(1) == Y[:15]
        assert judgement["accuracy"][member] == pytest.approx(float(right.double().mean()))
    assert len(keep) == (0 if arms is PLAIN else 2 * BLOCKS + 1)


@KINDS
def test_a_member_is_trained_as_by_torchs_own_optimizer_at_its_own_rate(arms):
    network, rates = uneven(arms), [0.02 * (1 + k) for k in range(len(arms))]
    twins = [Twin(network, arm, member) for member, arm in enumerate(arms)]
    ended = train(network, arms, rates, Rows(X, Y, 10, 5), 9)
    for member, (twin, rate) in enumerate(zip(twins, rates)):
        rows = Rows(X, Y, 10, 5)
        descent = torch.optim.SGD([p for p in twin.parameters() if p.requires_grad], lr=rate)
        for _ in range(9):
            inputs, labels = next(rows)
            descent.zero_grad()
            nn.functional.cross_entropy(twin(inputs), labels).backward()
            descent.step()
        wanted = Twin(ended, arms[member], member)
        for (name, one), (_, other) in zip(twin.named_parameters(), wanted.named_parameters()):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10, msg=name)


@KINDS
def test_how_wrong_a_gradient_is_far_along_itself_by_a_loop(arms):
    network, rates = uneven(arms), [0.003 * (1 + k) for k in range(len(arms))]
    found = far_change(network, arms, rates, X, Y)
    parts = gradients(network, arms, X, Y)
    for member, (arm, rate) in enumerate(zip(arms, rates)):
        twin = Twin(network, arm, member)
        leaves = [p for p in twin.parameters() if p.requires_grad]

        def gradient(twin=twin, leaves=leaves):
            return torch.autograd.grad(nn.functional.cross_entropy(twin(X), Y), leaves)

        here = gradient()
        with torch.no_grad():
            for leaf, step in zip(leaves, here):
                leaf -= 16 * rate * step
        change = math.sqrt(sum(float((b - a).square().sum()) for a, b in zip(here, gradient())))
        length = math.sqrt(sum(float(a.square().sum()) for a in here))
        assert found[member] == pytest.approx(change / length, rel=1e-9)
        assert float(lengths(parts)[member]) == pytest.approx(length, rel=1e-9)


def test_last_gammas_of_zero_leave_stem_norm_and_readout_and_are_woken_by_training():
    arms = [Arm("batch", gamma=0.0), Arm("batch")]
    network = draw(arms, INPUTS, WIDTH, 30, 2, DOUBLE, CLASSES)
    x = (network["stem"][0, 0] @ X.T).numpy()
    wanted = network["readout"][0, 0].numpy() @ (
        (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    )
    found = answers(network, arms, X).numpy()
    assert np.abs(found[0] - wanted).max() < 1e-12 and np.abs(found[1] - wanted).max() > 0.1
    parts = gradients(network, arms, X, Y)
    assert parts["outer_gamma"][:, 0].abs().min() > 0 and parts["inner"][:, 0].abs().max() == 0


@pytest.mark.parametrize("arm", [Arm(), Arm(alpha=0.25), Arm(divisor=2**0.5), Arm("batch")])
def test_squares_by_block_are_those_of_a_loop_and_near_their_laws(arm):
    width, blocks = 400, 6
    network, watch = draw([arm], INPUTS, width, blocks, 4, DOUBLE, CLASSES), []
    u = X * math.sqrt(INPUTS) / X.norm(dim=1, keepdim=True)
    answers(network, [arm], u, watch=watch)
    squares = torch.stack(watch)[..., 0].numpy()
    x = network["stem"][0, 0] @ u.T
    assert squares[0] == pytest.approx([float(x.square().mean())] * 2)
    for k in range(blocks):
        z, f = network["inner"][k, 0] @ x, None
        for weight in (None, network["outer"][k, 0]):
            z = z if weight is None else weight @ z.clamp(min=0)
            if arm.norm == "batch":
                z = (z - z.mean(1, keepdim=True)) / (z.var(1, correction=0, keepdim=True) + 1e-5).sqrt()
        f = arm.alpha * z / arm.divisor
        x = x / arm.divisor + f
        assert squares[k + 1] == pytest.approx([float(x.square().mean()), float(f.square().mean())])
    law = blocks + 1 if arm.norm == "batch" else ((1 + arm.alpha**2) / arm.divisor**2) ** blocks
    assert squares[-1, 0] / law == pytest.approx(1, abs=0.35)


def test_the_other_order_of_a_branch_by_a_loop():
    network = draw([Arm("batch")], INPUTS, 300, 4, 4, DOUBLE, CLASSES)
    squares = first_order(network, X)

    def norm(z):
        return (z - z.mean(1, keepdim=True)) / (z.var(1, correction=0, keepdim=True) + 1e-5).sqrt()

    x = network["stem"][0, 0] @ X.T
    for k in range(4):
        z = math.sqrt(2) * network["inner"][k, 0] @ norm(x).clamp(min=0)
        f = network["outer"][k, 0] @ norm(z).clamp(min=0)
        x = x + f
        wanted = [float(x.square().mean()), float(f.square().mean())]
        assert squares[k + 1, :, 0].tolist() == pytest.approx(wanted)
        assert wanted[1] == pytest.approx(1, abs=0.15)


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
    for norm, name in (
        ("none", "skipinit"),
        ("batch", "zero"),
        ("constant", "constant"),
        ("centre", "quiet_centre"),
    ):
        arm, rows = [recipes(3)[norm][name]], Rows(*data[:2], 8, 1)
        alone = train(draw(arm, data[0].shape[1], 4, 3, 1), arm, [0.1], rows, 2)
        far = [far_change(alone, arm, [0.1], *next(rows))[0] for _ in range(2)]
        loud = alone["alpha"] if norm != "batch" else alone["outer_gamma"]
        wanted = {
            "loss": judged(alone, arm, *data)["loss"][0],
            "accuracy": judged(alone, arm, *data)["accuracy"][0],
        }
        wanted["far"] = math.sqrt(far[0] * far[1])
        wanted["cut_loss"] = judged(cut(alone), arm, *data)["loss"][0]
        for what, value in wanted.items():
            assert found[f"{name}.d3.{what}"][1] == pytest.approx(value, rel=1e-3), (name, what)
        assert found[f"{name}.d3.awake"][1, 1] == pytest.approx(float(loud.square().mean().sqrt()), rel=1e-4)
    shares = [float((data[1] == k).double().mean()) for k in range(10)]
    assert found["entropy"] == pytest.approx(-sum(p * math.log(p) for p in shares if p))
    quiet = [recipes(3)[norm][name].alpha for norm, name in (("none", "scaled"), ("centre", "quiet_centre"))]
    assert quiet == pytest.approx([3**-0.5] * 2)


@KINDS
def test_without_its_branches_a_network_is_one_whose_branches_add_nothing_and_is_trained_alike(arms):
    arms = [replace(arm, skip=True, divisor=1.0, learned=False) for arm in arms]
    network, rates = uneven(arms), [0.05] * len(arms)
    silent = network | {"alpha": 0 * network["alpha"]}
    torch.testing.assert_close(answers(cut(network), arms, X), answers(silent, arms, X))
    shallow = train(cut(network), arms, rates, Rows(X, Y, 10, 5), 9)
    deep = train(silent, arms, rates, Rows(X, Y, 10, 5), 9)
    torch.testing.assert_close(answers(shallow, arms, X), answers(cut(deep), arms, X))
    assert not torch.allclose(answers(shallow, arms, X), answers(cut(network), arms, X))


@KINDS
def test_no_network_without_blocks_beats_a_constant_answer_on_images_and_their_negatives(arms):
    u, labels = with_negatives(X, Y)
    torch.testing.assert_close(u[0::2], X)
    torch.testing.assert_close(u[1::2], -X)
    assert labels.tolist() == [int(y) for y in Y for _ in range(2)]
    data, rows, rates = (u, labels, u[:6], labels[:6]), Rows(u, labels, 80, 5), [0.3] * len(arms)
    shallow, whole = cut(uneven(arms)), uneven(arms)
    ended = judged(train(shallow, arms, rates, rows, 100), arms, *data)["loss"]
    assert (ended > math.log(CLASSES) - 1e-12).all()
    if arms is NORMED:  # blocks do
        assert (
            judged(train(whole, arms, rates, rows, 100), arms, *data)["loss"] < math.log(CLASSES) - 0.3
        ).all()


def test_each_seed_is_judged_at_the_rate_that_is_best_for_the_others():
    loss = np.array([[1.0, 2.0, 0.0], [3.0, 2.0, np.nan], [2.5, 2.0, 0.0]])
    assert PAGE["others_best"](loss).tolist() == [1, 2, 0]
    assert PAGE["others_best"](np.full((3, 2), np.nan)).tolist() == [0, 0, 0]
