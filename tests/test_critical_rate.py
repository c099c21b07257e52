"""One part of a network at a time: its critical rate and its training, against plain linear algebra."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.chapters.critical_rate import brightness, explosion_step, readout_rates
from bnbook.data import load
from bnbook.errors import BnbookError
from bnbook.small_networks import PhaseArm, full_batch, train_part

ARM = PhaseArm(hidden=(12, 9), batch_size=16, steps=7, learning_rate=0.05, data="textures-standin")


@pytest.fixture(scope="module")
def dataset():
    return load("textures-standin")


def test_the_readouts_rate_is_that_of_its_block_of_the_fisher_matrix(dataset):
    network, (images, _) = replace(ARM, gamma=2.0).drawn(3, dataset).train(), full_batch(ARM, 3, dataset)
    readout = list(network.parameters())[-2:]
    rows = [
        torch.cat([g.flatten() for g in torch.autograd.grad(f, readout, retain_graph=True)])
        for f in network(images)[:, 0]
    ]
    jacobian = torch.stack(rows).double().numpy()
    top = np.linalg.eigvalsh(jacobian @ jacobian.T / 16)[-1]
    assert readout_rates(ARM, 3, dataset, [1.0, 2.0])[1] == pytest.approx(np.log10(3.8 / top), abs=1e-4)


def test_a_part_is_trained_and_the_rest_stays(dataset):
    images, labels = full_batch(ARM, 3, dataset)
    targets = F.one_hot(labels, 10).double().numpy()
    network = ARM.drawn(3, dataset).double().train()
    h = network[:-1](images.double()).detach().numpy()
    h = np.hstack([h, np.ones((16, 1))])
    w = np.hstack([p.detach().numpy().reshape(10, -1) for p in list(network.parameters())[-2:]]).T
    velocity, expected = np.zeros_like(w), []
    for _ in range(ARM.steps):
        expected.append(0.5 * np.square(h @ w - targets).sum() / 16)
        velocity = 0.9 * velocity + h.T @ (h @ w - targets) / 16
        w = w - ARM.learning_rate * velocity
    assert np.allclose(train_part(ARM, 3, dataset, "readout", dtype=torch.float64), expected)
    hidden, every = (train_part(ARM, 3, dataset, part, dtype=torch.float64) for part in ("hidden", "all"))
    assert hidden[0] == every[0] == pytest.approx(expected[0]) and not np.isclose(hidden[-1], every[-1])
    with pytest.raises(BnbookError, match="all, hidden, readout"):
        train_part(ARM, 3, dataset, "first")


def test_the_step_of_an_explosion():
    assert explosion_step(np.array([2.0, 2e6, 2.1e6, 1.0])) == 2
    assert explosion_step(np.array([2.0, 5.0, np.nan])) == 2
    assert explosion_step(np.array([2.0, 5.0])) == np.inf


def test_brightness_is_the_correlation_with_the_mean_pixel(dataset):
    images, _ = full_batch(ARM, 3, dataset)
    bright = images.flatten(1).mean(1)
    vector = torch.outer(2 - 3 * bright, torch.randn(10))
    assert brightness(ARM, 3, dataset, SimpleNamespace(vector=vector)) == pytest.approx(1, abs=1e-5)
    other = torch.outer((bright - bright.mean()).roll(1), torch.randn(10))
    assert brightness(ARM, 3, dataset, SimpleNamespace(vector=other)) < 0.9


def test_a_part_of_a_network_is_its_own_parameters(monkeypatch):
    from bnbook.data import load
    from bnbook.small_networks import PhaseArm, alone, train_part

    moved = []
    monkeypatch.setattr(
        alone, "_descend", lambda _m, chosen, *_: moved.append([tuple(p.shape) for p in chosen])
    )
    arm = PhaseArm(hidden=(5,), batch_size=4, steps=1, data="digits-standin", norm="batch")
    for part in ("all", "hidden", "readout"):
        train_part(arm, 0, load(arm.data), part)
    readout = [(10, 5), (10,)]
    assert moved[0] == moved[1] + moved[2] and moved[2] == readout and len(moved[1]) == 4
