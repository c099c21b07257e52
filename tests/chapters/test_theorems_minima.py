"""Observation 4.3 and Lemmas 3.3 and 4.5: formulas against derivatives, searches and exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from bnbook.chapters import minima
from bnbook.chapters.minima import three_points
from bnbook.chapters.theorems import batch_norm


def loss_with_batch_norm(x, t, w):
    y = torch.as_tensor(x @ w, dtype=torch.float64)[:, None]
    return float(((batch_norm(y, np.ones(1), np.zeros(1))[:, 0].numpy() - t) ** 2).sum() / 2)


@pytest.mark.parametrize("seed", range(3))
def test_normalized_direction_equals_a_search_over_angles(seed):
    rng = np.random.default_rng(seed)
    x, t = rng.standard_normal((6, 2)) + 1, rng.standard_normal(6)
    angles = np.linspace(0, 2 * math.pi, 7201)
    losses = [loss_with_batch_norm(x, t, np.array([math.cos(a), math.sin(a)])) for a in angles]
    best = angles[int(np.argmin(losses))]
    ray = minima.normalized_direction(x, t)
    assert math.atan2(ray[1], ray[0]) % (2 * math.pi) == pytest.approx(best, abs=2e-3)


def test_least_bound_of_lemma_33_by_search():
    """Over all lengths of the targets and all places of y that ε allows."""
    for epsilon in (0.05, 0.3, 0.49):
        lengths = np.linspace(1 - epsilon, 1 + epsilon, 401)
        turn = np.linspace(0, 2 * math.pi, 721)
        y = lengths[:, None] + epsilon * np.exp(
            1j * turn
        )  # the circle of radius ε around ℓ, in the plane of both
        losses = np.abs(y / np.abs(y) - lengths[:, None])
        assert losses.max() == pytest.approx(minima.sharp_33(epsilon), rel=1e-3)
        assert losses.max() <= minima.sharp_33(epsilon) * (1 + 1e-12) < 3 * epsilon < minima.lemma_33(epsilon)
    assert minima.sharp_33(1e-4) == pytest.approx(math.sqrt(2) * 1e-4, rel=1e-3)


def test_three_points_by_hand_and_by_derivatives():
    problem = three_points()
    assert problem.plain.tolist() == [Fraction(2, 3), Fraction(-1, 3)] and problem.ray.tolist() == [0, -1]
    x, t = problem.x.astype(float), problem.t.astype(float)
    assert minima.least_squares(x, t) == pytest.approx([2 / 3, -1 / 3])
    best = loss_with_batch_norm(x, t, np.array([0.0, -1.0]))
    assert loss_with_batch_norm(x, t, np.array([2 / 3, -1 / 3])) > best + 0.01
    for angle in np.linspace(0.1, 6.2, 50):
        turned = np.array([math.sin(angle), -math.cos(angle)])
        assert loss_with_batch_norm(x, t, turned) > best
