"""Trainings from several first values of γ, against a plain loop, and what a common factor of all γ does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from bnbook.chapters.gamma_initialisation import first_eigenvalue, tag
from bnbook.chapters.mean_field import sample_inputs
from bnbook.data import load, normalise
from bnbook.data.batches import Batches
from bnbook.probes.fisher import largest_eigenvalue
from bnbook.training.first_gamma import NETWORKS, ScaleArm, train

ARM = ScaleArm(
    data="textures-standin",
    width=0.0625,
    batch_size=8,
    steps=3,
    evaluate_every=0,
    train_examples=20,
    test_examples=20,
)


@pytest.mark.parametrize("network", NETWORKS)
def test_training_is_that_of_a_plain_loop(network):
    arm = replace(ARM, network=network, gamma=0.3)
    dataset = load(arm.data)
    torch.manual_seed(5)
    model = arm.model(dataset).train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.0005)
    batches = Batches(dataset, 8, torch.Generator().manual_seed(1_000_003 + 5))
    losses = []
    for _ in range(3):
        inputs, targets = next(batches)
        loss = F.cross_entropy(model(inputs.to(memory_format=torch.channels_last)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_array_equal(train(arm, 5)["loss"], np.float32(losses))


@pytest.mark.parametrize("network", NETWORKS)
def test_arms_differ_in_gamma_alone(network):
    dataset, models = load(ARM.data), []
    for gamma in (0.1, 1.0):
        torch.manual_seed(2)
        models.append(dict(replace(ARM, network=network, gamma=gamma).model(dataset).named_parameters()))
    small, usual = models
    scales = [name for name in small if not torch.equal(small[name], usual[name])]
    assert len(scales) == (15 if network == "vgg16" else 17)
    for name in scales:
        assert (small[name] == 0.1).all() and (usual[name] == 1.0).all()


def test_first_eigenvalue_is_that_of_its_seeds_network_and_images():
    dataset = load(ARM.data)
    torch.manual_seed(103)
    model = ARM.model(dataset).train()
    images = normalise(sample_inputs(dataset.train_images, (), 103, 12), dataset)
    expected = float(largest_eigenvalue(model, images, tolerance=1e-6))
    assert first_eigenvalue(ARM, 103, dataset, 12) == pytest.approx(expected, rel=1e-2)


def test_names_of_results_have_no_point_of_a_number():
    assert [tag("vgg16", gamma) for gamma in (0.1, 1.0, 1.5)] == ["vgg16.g0_1", "vgg16.g1", "vgg16.g1_5"]
