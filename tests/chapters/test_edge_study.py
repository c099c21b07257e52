"""Small networks at the edge of stability, against torch's own optimizer, dense Hessians and parabolas."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import page_cells
import pytest
import torch

from bnbook.probes.hessian import largest_curvature
from bnbook.probes.landscape import along_gradient

torch.set_num_threads(1)
SEEDS, RATES, NORMS = (3, 8), (0.05, 0.2), ("none", "batch")


def images(count=40, side=8):
    """As much of a data set as the study asks for; 8 × 8 pixels become 2 × 2."""
    g = torch.Generator().manual_seed(1)
    return SimpleNamespace(
        train_images=torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=g),
        train_labels=torch.randint(0, 10, (count,), generator=g),
        shift=torch.full((3, 1, 1), 127.5),
        scale=torch.full((3, 1, 1), 1 / 30),
    )


LENGTHS = (0.05, 0.5, 1.0, 2.0, 4.0, 16.0)
PAGE = page_cells.functions(
    "santurkar/edge", which=SEEDS, dataset=images(), examples=24, hidden=(5, 4), fresh=3, LENGTHS=LENGTHS
)
descend, drawn, whole, fresh_batches, fastest_at, length, squared = (
    PAGE[name] for name in "descend drawn whole fresh_batches fastest_at length squared".split()
)


def members(norm, rates=RATES):
    return drawn(norm, rates)


def nothing(*_):
    return {}


def by_hand(flat, shapes, norm, x, y):
    """Half the squared error of the network that one vector of weights describes, the batch's statistics
    written out."""
    parts = [v.view(shape) for v, shape in zip(flat.split([s.numel() for s in shapes]), shapes, strict=True)]
    h = x.flatten(1)
    while len(parts) > 2:
        h = h @ parts.pop(0).T + parts.pop(0)
        if norm == "batch":
            h = (h - h.mean(0)) / (h.var(0, correction=0) + 1e-5).sqrt() * parts.pop(0) + parts.pop(0)
        h = h.relu()
    return 0.5 * (h @ parts[0].T + parts[1] - y).square().sum(1).mean()


def dense(one, member, norm, chosen=slice(None)):
    """Loss, gradient and Hessian of a member on some of its images, in float64."""
    parameters = [p.detach().double() for p in one.model(member).parameters()]
    x, y = (each.double() for each in one.batch(member, chosen))
    shapes, flat = [p.shape for p in parameters], torch.cat([p.flatten() for p in parameters])

    def loss(v):
        return by_hand(v, shapes, norm, x, y)

    gradient = torch.func.grad(loss)(flat)

    def change(step):
        return (gradient - torch.func.grad(loss)(flat - step * gradient)).norm() / gradient.norm()

    return loss(flat), gradient, torch.autograd.functional.hessian(loss, flat, vectorize=True), change


@pytest.mark.parametrize("norm", NORMS)
def test_a_seed_has_its_images_and_first_weights_whatever_its_rate(norm):
    one, other = members(norm), members("batch" if norm == "none" else "none")
    assert one.rates.tolist() == pytest.approx([0.05, 0.05, 0.2, 0.2])
    for values in (one.images, one.labels, *one.stack.weights):
        assert torch.equal(values[0], values[2]) and not torch.equal(values[0], values[1])
    assert torch.equal(one.images, other.images)
    assert all(map(torch.equal, one.stack.weights, other.stack.weights))
    pixels = (images().train_images.float() - 127.5) / 30
    means = pixels.view(40, 3, 2, 4, 2, 4).mean((3, 5))
    apart = (means[:, None] - one.images[0][None]).abs().amax((2, 3, 4))  # (40, 24)
    assert (apart.amin(0) < 1e-5).all() and len(set(apart.argmin(0).tolist())) == 24
    assert torch.equal(images().train_labels[apart.argmin(0)], one.labels[0])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("momentum", "size"), [(0.0, 0), (0.9, 0), (0.0, 6), (0.9, 6)])
def test_descent_is_that_of_torch(norm, momentum, size):
    one, steps = members(norm, rates=(0.05,)), 7
    twins = [copy.deepcopy(one.model(k)) for k in range(len(SEEDS))]
    looked = descend(one, lambda _, member, step, size: {"step": step}, steps, (0, 4, 7), momentum, size)
    assert looked["step"].tolist() == [[0, 4, 7]] * len(SEEDS)
    for k, (twin, seed) in enumerate(zip(twins, SEEDS)):
        sgd = torch.optim.SGD(twin.parameters(), lr=0.05, momentum=momentum)
        draw = torch.Generator().manual_seed(2_000_003 + seed)
        for _ in range(steps):
            chosen = torch.randperm(24, generator=draw)[:size] if size else slice(None)
            x, y = one.batch(k, chosen)
            sgd.zero_grad()
            squared(twin(x), y).backward()
            sgd.step()
        for own, other in zip(one.model(k).parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_looks_at_full_batches_are_those_of_the_dense_hessian(norm):
    one = members(norm)
    found = descend(one, whole, 5, (0, 5))
    assert found["curvature"].shape == (4, 2) and found["change"].shape == (4, 2, len(LENGTHS))
    for member, rate in enumerate((0.05, 0.05, 0.2, 0.2)):  # as they are after the last look
        loss, g, h, change = dense(one, member, norm)
        assert found["loss"][member, 1] == pytest.approx(loss.item(), rel=1e-4)
        assert found["curvature"][member, 1] == pytest.approx(torch.linalg.eigvalsh(h)[-1].item(), rel=1e-4)
        assert found["along"][member, 1] == pytest.approx((g @ h @ g / (g @ g)).item(), rel=1e-3)
        slow = [change(rate * length).item() for length in LENGTHS]
        assert found["change"][member, 1] == pytest.approx(slow, rel=1e-2)


def test_looks_at_small_batches_are_means_over_fresh_ones():
    one = members("batch", rates=(0.1,))
    found = descend(one, fresh_batches, 4, (0, 4), size=6)
    for member, seed in enumerate(SEEDS):
        draw = torch.Generator().manual_seed(3_000_017 + 1009 * seed + 4)
        seen = [dense(one, member, "batch", torch.randperm(24, generator=draw)[:6]) for _ in range(3)]
        forms, squares = zip(*[((g @ h @ g).item(), (g @ g).item()) for _, g, h, _ in seen])
        assert found["along"][member, 1] == pytest.approx(sum(forms) / sum(squares), rel=1e-3)
        slow = [np.median([change(0.1 * length).item() for *_, change in seen]) for length in LENGTHS]
        assert found["change"][member, 1] == pytest.approx(slow, rel=1e-2)
        assert found["loss"][member, 1] == pytest.approx(dense(one, member, "batch")[0].item(), rel=1e-4)


def test_half_the_rate_goes_its_own_way():
    one = members("batch")
    descend(one, nothing, 3, (3,))
    slower, before = fastest_at(one, 0.5), [p.clone() for p in one.stack.parameters]
    assert slower.rates.tolist() == pytest.approx([0.1, 0.1]) and torch.equal(slower.images, one.images[2:])
    assert all(torch.equal(p[2:], q) for p, q in zip(one.stack.parameters, slower.stack.parameters))
    descend(slower, nothing, 3, (3,))
    assert all(map(torch.equal, before, one.stack.parameters))
    assert not torch.equal(slower.stack.weights[0], one.stack.weights[0][2:])
    own = [
        sum(p.detach().square().sum() for p in one.model(k).parameters() if p.ndim == 2)
        - one.stack.weights[-1][k].square().sum()
        for k in range(4)
    ]
    assert length(one).square().tolist() == pytest.approx([float(v) for v in own], rel=1e-4)


@pytest.mark.filterwarnings("ignore:overflow")
def test_what_diverges_is_no_number_and_leaves_the_others():
    found = descend(members("none", (0.05, 1e6)), whole, 12, (0, 12))
    assert np.isfinite(found["curvature"][:2]).all() and np.isfinite(found["change"][:2]).all()
    for values in found.values():
        assert np.isfinite(values[2:, 0]).all() and np.isnan(values[2:, 1]).all()
    small = descend(members("none", (1e6,)), fresh_batches, 12, (0, 12), size=6)
    assert "curvature" not in small and all(np.isnan(values[:, 1]).all() for values in small.values())


def test_the_last_third_of_a_training():
    values = np.array([[9.0, 9, 9, 9, 1, 5, 2], [0.0, 0, 0, 0, 1, np.nan, 1]])
    last = PAGE["last_third"](values, range(0, 61, 10))
    assert last[0] == 2 and np.isnan(last[1])  # a look without a number is one too many


def test_the_effective_smoothness_is_that_of_the_panel():
    """Of the lengths those from half a rate to four; the panel of the probe has the same."""
    one = members("batch", rates=(0.2,))
    change = descend(one, whole, 0, (0,))["change"]
    for member in range(2):
        panel = [0.2 * length for length in (0.5, 1.0, 2.0, 4.0)]
        seen = along_gradient(one.model(member), squared, one.batch(member), panel)
        found = PAGE["effective_smoothness"](change, 0.2)[member, 0]
        assert found == pytest.approx(float(seen.effective_smoothness), rel=1e-5)
    near, far = [999.0, 1.0, 1.0, 1.0, 1.0, 999.0], [999.0, 1.0, 1.0, 1.0, 40.0, 999.0]
    assert PAGE["effective_smoothness"](np.array([near, far]), 0.1) == pytest.approx([20, 100])


@pytest.mark.parametrize("seed", range(4))
def test_a_step_that_spends_the_gradient_pins_the_smoothness(seed):
    rate = 0.1
    unit, hinge, (x, y) = PAGE["spent_case"](seed)
    steepness = x.square().sum().item()
    assert 2 / rate < steepness < 100.001 * 2 / rate
    assert float(largest_curvature(unit, hinge, (x, y))) == pytest.approx(steepness)
    assert hinge(unit(x), y).item() == 0.5 and hinge(torch.tensor([[1.5]]), torch.ones(1, 1)).item() == 0
    panel = [k * rate / 2 for k in range(1, 9)]
    assert float(along_gradient(unit, hinge, (x, y), panel).effective_smoothness) == pytest.approx(2 / rate)
    shorter = along_gradient(unit, hinge, (x, y), [0.5 / steepness])  # does not reach the margin
    assert float(shorter.effective_smoothness) == pytest.approx(steepness)
