"""Correlations of inputs and gradients, against automatic differentiation on the examples themselves."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bnbook.deep_linear import LinearArm, draw_examples, draw_problem, train_stack
from bnbook.deep_linear.instruments import correlations
from bnbook.errors import BnbookError

SIZE = dict(depth=3, width=4, examples=30)


def test_each_weight_against_the_examples():
    problem, arm = draw_problem([2, 5], **SIZE), LinearArm(**SIZE)
    network = arm.network()
    seen = correlations(network, network.start(problem), problem)
    for member, seed in enumerate((2, 5)):
        x, a = draw_examples(seed, SIZE["width"], SIZE["examples"])
        weights = problem.weights[:, member]
        for layer in range(SIZE["depth"]):
            inputs = x
            for weight in weights[:layer]:
                inputs = inputs @ weight.T
            y = (inputs @ weights[layer].T).requires_grad_()
            out = y
            for weight in weights[layer + 1 :]:
                out = out @ weight.T
            (g,) = torch.autograd.grad(((out - x @ a.T) ** 2).sum(), y)
            cosine = torch.nn.functional.cosine_similarity(g[:, :, None], inputs[:, None], dim=0)  # (j, i)
            floor = (1 + 1 / cosine.abs()) / 2
            share = (y.detach().std(0, correction=0)[:, None] >= floor).double().mean()
            c = np.sort((cosine**2).flatten().numpy())
            assert float(seen["correlation"][member, layer]) == pytest.approx(c[(len(c) - 1) // 2])
            assert float(seen["bounded"][member, layer]) == pytest.approx(float(share))


def test_a_training_of_the_plain_network_has_them_and_a_divergence_has_none():
    size = SIZE | dict(steps=3, probe_steps=(0, 2), lengths=(1.0,), random_lengths=(1.0,))
    run = train_stack([(LinearArm("none", 1e-3, **size), 0), (LinearArm("none", 1e6, **size), 0)])
    assert np.isfinite(run["correlation"][0]).all() and 0 <= run["bounded"][0].min() <= 1
    assert np.isnan(run["correlation"][1, 1]).all() and np.isnan(run["bounded"][1, 1]).all()
    assert "correlation" not in train_stack([(LinearArm("batch", 1e-3, **size), 0)])


def test_a_normalized_network_is_refused():
    problem, network = draw_problem([0], **SIZE), LinearArm("batch", **SIZE).network()
    with pytest.raises(BnbookError, match="norm 'batch'"):
        correlations(network, network.start(problem), problem)
