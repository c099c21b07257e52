"""The chapter on the spectrum: its network, its training and its looks against torch's own and dense matrices."""

from __future__ import annotations

import numpy as np
import page_cells
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from bnbook.chapters.shared import Rows, pooled
from bnbook.data import load

PAGE = page_cells.functions("theory/spectrum", steps=6, rate=0.05)
Block, images, residual, train, warm = (PAGE[name] for name in "Block images residual train warm".split())
MODES = {
    "none": ("none", "batch"),
    "batch": ("batch", "batch"),
    "constant": ("batch", "detached"),
    "running": ("batch", "population"),
}
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def rows():
    return pooled(load("textures-standin"), "train", 4)


def layers(model):
    return [m for m in model.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]


@pytest.mark.parametrize(("depth", "norm"), [(4, "none"), (20, "batch")])
def test_depth_counts_the_layers_with_weights(depth, norm):
    model = residual(depth, norm, 0)
    assert len(layers(model)) == depth and model(torch.randn(5, 3, 8, 8)).shape == (5, 10)


def test_first_weights_do_not_know_the_norm_and_have_the_spread_of_the_page():
    drawn = page_cells.functions("theory/spectrum", channels=5)["residual"]
    of = {
        key: [m.weight for m in layers(drawn(20, *key))] for key in (("none", 1), ("batch", 1), ("none", 2))
    }
    one, other, fresh = of.values()
    assert all(torch.equal(a, b) for a, b in zip(one, other)) and not torch.equal(one[0], fresh[0])
    inner = torch.cat([w.flatten() for w in one[1:-1]])
    assert float(inner.detach().std()) == pytest.approx((0.5 / 45) ** 0.5, rel=0.05)


def test_a_block_is_the_formula():
    block, x = Block("batch").train(), torch.randn(6, 2, 4, 4)

    def normal(z):
        centred = z - z.mean((0, 2, 3), keepdim=True)
        return centred / (centred.square().mean((0, 2, 3), keepdim=True) + 1e-5).sqrt()

    inner = normal(F.conv2d(x, block.conv1.weight, padding=1)).clamp(min=0)
    wanted = (x + normal(F.conv2d(inner, block.conv2.weight, padding=1))).clamp(min=0)
    torch.testing.assert_close(block(x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_training_is_torchs_gradient_descent_with_momentum(rows, norm):
    own, twin = residual(4, norm, 3), residual(4, norm, 3)
    found = train(own, Rows(*rows, 16, 5))
    optimizer, order, losses = torch.optim.SGD(twin.parameters(), 0.05, 0.9), Rows(*rows, 16, 5), []
    for _ in range(6):
        inputs, labels = next(order)
        loss = F.cross_entropy(twin(images(inputs)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert found.tolist() == pytest.approx(losses, rel=1e-5)
    for p, q in zip(own.parameters(), twin.parameters()):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-6)


def test_warming_fills_the_running_averages_and_nothing_else(rows):
    model = residual(4, "batch", 3)
    before = [p.clone() for p in model.parameters()]
    warm(model, Rows(*rows, 64, 5))
    assert all(torch.equal(p, q) for p, q in zip(before, model.parameters()))
    stem = model[0](images(rows[0]))
    assert int(model[1].num_batches_tracked) == 50
    assert model[1].running_var.tolist() == pytest.approx(stem.var((0, 2, 3)).tolist(), rel=0.1)


def dense(model, pair):
    """The Hessian of the loss, a row a parameter, by torch.func on one vector of all parameters."""
    named = {name: p.detach() for name, p in model.named_parameters()}
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    sizes = [p.numel() for p in named.values()]

    def loss(theta):
        parts = {k: part.view_as(p) for (k, p), part in zip(named.items(), theta.split(sizes))}
        copies = {name: b.clone() for name, b in buffers.items()}
        return F.cross_entropy(functional_call(model, parts | copies, (pair[0],)), pair[1])

    theta = torch.cat([p.flatten() for p in named.values()])
    return torch.autograd.functional.hessian(loss, theta), torch.autograd.functional.jacobian(loss, theta)


@pytest.mark.parametrize("arm", ["batch", "running"])
def test_a_look_with_as_many_steps_as_parameters_is_the_dense_matrix(rows, arm):
    norm, statistics = MODES[arm]
    model = residual(4, norm, 3)
    order = Rows(*rows, 16, 5)
    warm(model, order)
    for _ in range(3):
        train(model, order)
    pair = images(rows[0][:16]).double(), rows[1][:16]
    model = model.double()
    count = sum(p.numel() for p in model.parameters())
    page = page_cells.functions("theory/spectrum", krylov=count)
    found = page["look"](model, pair, "hessian", statistics, 0)
    halves = page["in_halves"](model, pair, found["basis"], 0)
    hessian, gradient = dense(model.train(statistics == "batch"), pair)
    values, vectors = torch.linalg.eigh(hessian)
    assert found["top"] == pytest.approx(values.flip(0)[:11].numpy(), rel=1e-6, abs=1e-9)
    assert found["trace"] == pytest.approx(float(hessian.trace()), rel=1e-6)
    wanted = float(((vectors.T @ gradient)[-10:] ** 2).sum() / (gradient @ gradient))
    assert found["share"] == pytest.approx(wanted, rel=1e-5)
    assert found["residual"].max() < 1e-6 and found["weights"].sum() == pytest.approx(1)
    if statistics == "batch":
        parts = [dense(model.train(), (pair[0][k : k + 8], pair[1][k : k + 8]))[0] for k in (0, 8)]
        assert halves == pytest.approx(float(sum(part.trace() for part in parts)) / 2, rel=1e-6)


def test_contrasts_are_coefficients_of_a_factorial_design():
    """Regress log traces of all eight cells on ±1 codes of norm, mode and depth: twice the coefficients."""
    rng = np.random.default_rng(0)
    plain, with_norm = rng.normal(size=(5, 2)), rng.normal(size=(5, 2, 2))
    found = PAGE["contrasts"](with_norm - plain[:, None])
    for seed in range(5):
        cells, design = [], []
        for norm in (-1, 1):
            for mode in (0, 1):
                for depth in (0, 1):
                    cells.append(with_norm[seed, mode, depth] if norm == 1 else plain[seed, depth])
                    m, d = 2 * mode - 1, 2 * depth - 1
                    design.append([1, norm, m, d, norm * m, norm * d, m * d, norm * m * d])
        fitted = np.linalg.solve(np.array(design, float), np.array(cells))
        assert found[0][seed] == pytest.approx(2 * abs(fitted[1]))
        assert found[1][seed] == pytest.approx(2 * abs(fitted[7]))


def test_logarithms_and_pairs():
    found = PAGE["log_ratio"](np.array([[10.0, -1.0], [2.0, 3.0]]), np.array([[1.0, 1.0], [0.0, 3.0]]))
    assert found[0, 0] == pytest.approx(1) and found[1, 1] == 0
    assert np.isnan(found[0, 1]) and np.isnan(found[1, 0])
    one, other = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), np.array([[4.0, 5.0, 9.0], [9.0, 5.0, 4.0]])
    assert PAGE["alike"](one, other).tolist() == [1, 0]
    assert PAGE["alike"](one[:1], np.array([[5.0, 4.0, 9.0]])).tolist() == [pytest.approx(2 / 3)]


def test_a_seed_measures_one_network_in_every_mode():
    """The modes of the batch have one loss, running averages another; two halves without a norm have one trace."""
    page = page_cells.functions("theory/spectrum", steps=4, examples=64, depths=[4, 6], krylov=12, signs=8)
    found = page["measure"](MODES, 1)
    assert found["halves.none"] == pytest.approx(found["end.hessian.none.trace"], rel=1e-3)
    for when in ("start", "end"):
        loss = {arm: found[f"{when}.hessian.{arm}.loss"] for arm in MODES}
        assert loss["batch"] == pytest.approx(loss["constant"], rel=1e-5)
        assert (loss["batch"] != loss["running"]).all()
