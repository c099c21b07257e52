"""Small networks at the edge of stability, against torch's own optimizer and dense Hessians."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import page_cells
import pytest
import torch
from torch.func import functional_call

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


def dense(one, member, chosen=slice(None)):
    """Loss, gradient, Hessian and relative change of the gradient by a step of a member on some of its images."""
    model = copy.deepcopy(one.model(member)).double()
    x, y = (each.double() for each in one.batch(member, chosen))
    shapes = {name: p.shape for name, p in model.named_parameters()}
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])

    def loss(v):
        parts = v.split([shape.numel() for shape in shapes.values()])
        own = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts)}
        return 0.5 * (functional_call(model, own, x) - y).square().sum(1).mean()

    def gradient(v):
        return torch.autograd.functional.jacobian(loss, v)

    def change(step):
        return ((g - gradient(flat - step * g)).norm() / g.norm()).item()

    g = gradient(flat)
    return loss(flat).item(), g, torch.autograd.functional.hessian(loss, flat), change


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
@pytest.mark.parametrize(("momentum", "size"), [(0.0, 0), (0.9, 6)])
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
        loss, g, h, change = dense(one, member)
        assert found["loss"][member, 1] == pytest.approx(loss, rel=1e-4)
        assert found["curvature"][member, 1] == pytest.approx(torch.linalg.eigvalsh(h)[-1].item(), rel=1e-4)
        assert found["along"][member, 1] == pytest.approx((g @ h @ g / (g @ g)).item(), rel=1e-3)
        slow = [change(rate * length) for length in LENGTHS]
        assert found["change"][member, 1] == pytest.approx(slow, rel=1e-2)


def test_looks_at_small_batches_are_means_over_fresh_ones():
    one = members("batch", rates=(0.1,))
    found = descend(one, fresh_batches, 4, (0, 4), size=6)
    for member, seed in enumerate(SEEDS):
        draw = torch.Generator().manual_seed(3_000_017 + 1009 * seed + 4)
        seen = [dense(one, member, torch.randperm(24, generator=draw)[:6]) for _ in range(3)]
        forms, squares = zip(*[((g @ h @ g).item(), (g @ g).item()) for _, g, h, _ in seen])
        assert found["along"][member, 1] == pytest.approx(sum(forms) / sum(squares), rel=1e-3)
        slow = [np.median([change(0.1 * length) for *_, change in seen]) for length in LENGTHS]
        assert found["change"][member, 1] == pytest.approx(slow, rel=1e-2)
        assert found["loss"][member, 1] == pytest.approx(dense(one, member)[0], rel=1e-4)


def test_half_the_rate_goes_its_own_way():
    one = members("batch")
    descend(one, nothing, 3, (3,))
    slower, before = fastest_at(one, 0.5), [p.clone() for p in one.stack.parameters]
    assert slower.rates.tolist() == pytest.approx([0.1, 0.1]) and torch.equal(slower.images, one.images[2:])
    assert all(torch.equal(p[2:], q) for p, q in zip(one.stack.parameters, slower.stack.parameters))
    descend(slower, nothing, 3, (3,))
    assert all(map(torch.equal, before, one.stack.parameters))
    assert not torch.equal(slower.stack.weights[0], one.stack.weights[0][2:])
    hidden = sum(w.square().sum((1, 2)) for w in one.stack.weights[:-1])
    assert length(one).square().tolist() == pytest.approx(hidden.tolist(), rel=1e-4)


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


def test_the_effective_smoothness_is_of_lengths_from_half_a_rate_to_four():
    near, far = [999.0, 1.0, 1.0, 1.0, 1.0, 999.0], [999.0, 1.0, 1.0, 1.0, 40.0, 999.0]
    assert PAGE["effective_smoothness"](np.array([near, far]), 0.1) == pytest.approx([20, 100])


@pytest.mark.parametrize("seed", range(4))
def test_a_step_that_spends_the_gradient_pins_the_smoothness(seed):
    rate = 0.1
    unit, hinge, (x, y) = PAGE["spent_case"](seed)
    steepness = x.square().sum().item()
    assert 2 / rate < steepness < 100.001 * 2 / rate
    assert float(largest_curvature(unit, hinge, (x, y))) == pytest.approx(steepness)
    panel = [k * rate / 2 for k in range(1, 9)]
    assert float(along_gradient(unit, hinge, (x, y), panel).effective_smoothness) == pytest.approx(2 / rate)
