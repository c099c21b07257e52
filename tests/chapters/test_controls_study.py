"""The page of controls: its training of everything but the readout beside the book's own, the readout's curvature beside
its Hessian, and softmax regression by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from bnbook.chapters import controls, stand_ins
from bnbook.chapters.mean_field import largest
from bnbook.chapters.shared import Rows, pooled
from bnbook.data import load
from bnbook.small_networks import PhaseArm, full_batch, train_part

ARM = PhaseArm(data="digits-standin", hidden=(12, 10), batch_size=16, steps=5)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_everything_but_the_readout_is_trained_as_the_page_on_the_last_layer_trains_it(norm):
    arm, dataset = replace(ARM, norm=norm), load(ARM.data)
    found = controls.without_readout(arm, 3, dataset, times=0.5)
    rate = 0.5 * 2 * (1 + arm.momentum) / largest(arm, 3, dataset).value
    twin = train_part(replace(arm, learning_rate=rate), 3, dataset, "hidden")
    np.testing.assert_allclose(found.loss, twin, rtol=1e-5)
    assert 0 <= found.right <= 1 and found.longer > 0
    if norm == "batch":
        assert found.longer > 1  # their gradient is at right angles to them


def test_the_readout_s_curvature_is_that_of_its_hessian_and_the_mean_feature_s_share_a_quotient_of_it():
    dataset = load(ARM.data)
    model, (images, labels) = ARM.drawn(5, dataset).train(), full_batch(ARM, 5, dataset)
    with torch.no_grad():
        h = model[:-1](images).flatten(1).double()
    targets = torch.nn.functional.one_hot(labels, len(dataset.classes)).double()

    def loss(flat):
        weight, bias = flat[:-10].view(10, -1), flat[-10:]
        return 0.5 * (h @ weight.T + bias - targets).square().sum() / len(h)

    hessian = torch.autograd.functional.hessian(loss, torch.zeros(10 * h.shape[1] + 10, dtype=torch.float64))
    top, share = controls.readout_curvature(ARM, 5, dataset)
    assert top == pytest.approx(float(torch.linalg.eigvalsh(hessian)[-1]), rel=1e-9)
    ones = torch.ones(len(h), 1, dtype=torch.float64) / len(h) ** 0.5
    gram = (h @ h.T + 1) / len(h)
    assert share == pytest.approx(float(ones.T @ gram @ ones) / top, rel=1e-9)


def test_softmax_regression_by_hand():
    plan = stand_ins.Plan("textures-standin", 4, 1, 0, 16, 10, 1, (0.01, 0.1), 0.01)
    x, y = pooled(load(plan.data), "train", 4)
    test, answers = pooled(load(plan.data), "test", 4)
    start = torch.Generator().manual_seed(2)
    first = (
        torch.randn(x.shape[1] + 1, 10, generator=start, dtype=torch.float64) * (2 / (x.shape[1] + 1)) ** 0.5
    )
    late, right = [], []
    for rate in plan.rates:
        weight, rows = first.float().clone(), Rows(x, y, 16, 2)
        losses = []
        for step in range(plan.steps):
            images, labels = next(rows)
            images = torch.cat([images, torch.ones(len(images), 1)], 1)
            p = torch.softmax(images @ weight, 1)
            losses.append(float(-p[torch.arange(len(labels)), labels].log().mean()))
            p[torch.arange(len(labels)), labels] -= 1
            weight -= (
                rate * min(1.0, (10 - step) / 3) * images.T @ p / len(labels)
            )  # the last fifth falls to 0
        late.append(np.mean(losses[plan.full - 1 :]))
        shown = torch.cat([test, torch.ones(len(test), 1)], 1) @ weight
        right.append(float((shown.argmax(1) == answers).double().mean()))
    assert stand_ins.linear(plan, 2)["accuracy"] == right[int(np.argmin(late))]


def test_layers_drawn_again_are_ranked_as_scipy_ranks_them():
    rng, size = np.random.default_rng(1), len(stand_ins.TABLE)
    names = (*stand_ins.INSTRUMENTS, *stand_ins.OUTCOMES)
    table = {name: rng.normal(size=(2, size)).round(1) for name in names}
    found = stand_ins.resampled(table)
    drawn = np.random.default_rng(0).integers(size, size=(stand_ins.RESAMPLED, size))
    for k in (0, 7, 1999):
        for seed in (0, 1):
            for name, sign in (("drift_mean", -1), ("readout", 1)):
                score, outcome = sign * table[name][seed, drawn[k]], table["speed"][seed, drawn[k]]
                assert found[f"{name}.speed"][seed, k] == pytest.approx(spearmanr(score, outcome)[0])
    count = stand_ins.counted(table, 6)["rate"]
    layers = [stand_ins.centred_layers(one, 6) for one in stand_ins.TABLE.values()]
    assert count == pytest.approx([spearmanr(layers, row)[0] for row in table["rate"]])
    kept = stand_ins.share_kept(table["rate"], "batch")
    assert kept.mean() == pytest.approx(1)
