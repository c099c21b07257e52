"""The page of controls: its training of everything but the readout beside the book's own, the readout's curvature beside
its Hessian, and softmax regression by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import page_cells
import pytest
import torch

from bnbook.chapters.mean_field import largest
from bnbook.chapters.shared import Rows, pooled
from bnbook.data import load
from bnbook.small_networks import PhaseArm, full_batch, train_part

CELLS = page_cells.functions("practice/controls", rates=[0.01, 0.1])
ARM = PhaseArm(data="digits-standin", hidden=(12, 10), batch_size=16, steps=5)


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_everything_but_the_readout_is_trained_as_the_page_on_the_last_layer_trains_it(norm):
    arm, dataset = replace(ARM, norm=norm), load(ARM.data)
    losses, right, longer = CELLS["without_readout"](arm, 3, dataset, times=0.5)
    rate = 0.5 * 2 * (1 + arm.momentum) / largest(arm, 3, dataset).value
    twin = train_part(replace(arm, learning_rate=rate), 3, dataset, "hidden")
    np.testing.assert_allclose(losses, twin, rtol=1e-5)
    assert 0 <= right <= 1 and longer > (norm == "batch")  # then their gradient is at right angles to them


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
    top, share = CELLS["readout_curvature"](ARM, 5, dataset)
    assert top == pytest.approx(float(torch.linalg.eigvalsh(hessian)[-1]), rel=1e-9)
    ones = torch.ones(len(h), 1, dtype=torch.float64) / len(h) ** 0.5
    gram = (h @ h.T + 1) / len(h)
    assert share == pytest.approx(float(ones.T @ gram @ ones) / top, rel=1e-9)


def test_softmax_regression_by_hand():
    data, steps = "textures-standin", 10
    x, y = pooled(load(data), "train", 4)
    test, answers = pooled(load(data), "test", 4)
    inputs, start = x.shape[1] + 1, torch.Generator().manual_seed(2)
    first = torch.randn(inputs, 10, generator=start, dtype=torch.float64) * (2 / inputs) ** 0.5
    late, right = [], []
    for rate in CELLS["rates"]:
        weight, rows, losses = first.float().clone(), Rows(x, y, 16, 2), []
        for share in [1.0] * 8 + [2 / 3, 1 / 3]:  # the last fifth falls to 0
            images, labels = next(rows)
            images = torch.cat([images, torch.ones(len(images), 1)], 1)
            p = torch.softmax(images @ weight, 1)
            losses.append(float(-p[torch.arange(len(labels)), labels].log().mean()))
            p[torch.arange(len(labels)), labels] -= 1
            weight -= rate * share * images.T @ p / len(labels)
        late.append(np.mean(losses[7:]))
        shown = torch.cat([test, torch.ones(len(test), 1)], 1) @ weight
        right.append(float((shown.argmax(1) == answers).double().mean()))
    assert CELLS["softmax_regression"]((data, 4, 16, steps), 2) == right[int(np.argmin(late))]
