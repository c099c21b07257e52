"""Small sums of other chapters on numbers that were worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bnbook.chapters import gamma_initialisation, gradient_explosion, learning_rate

NAN, INF = math.nan, math.inf


def test_the_last_fifth_of_the_steps_and_a_guess_for_what_diverged():
    accuracy = np.array([[[0.0] * 14 + [1.0, 1.0, 0.5, 0.5, NAN, 0.7], [1.0] * 16 + [0.0] * 4]])
    np.testing.assert_allclose(gradient_explosion.last_fifth(accuracy), [[(0.5 + 0.5 + 0.1 + 0.7) / 4, 0]])
    assert gradient_explosion.last_fifth(np.array([[[0.2, 0.4, 0.6]]])).tolist() == [
        [0.6]
    ]  # of three the last
    shares = np.array([[0.9, 0.51, 0.5], [0.5, 0.2, 0.1]])
    assert gradient_explosion.largest_usable(shares, (1.0, 2.0, 4.0)).tolist() == [2, 0]


def test_a_learning_curve_is_of_25_steps_or_a_third_of_them_at_100_points():
    steps, means = gamma_initialisation.learning_curve(np.arange(400.0)[None])
    assert len(steps) == 100 and (steps[0], steps[-1]) == (1, 400)
    at = steps.tolist().index(min(step for step in steps if step > 30))
    assert means[0, at] == pytest.approx(steps[at] - 1 - 12)  # the middle of the last 25
    few, means = gamma_initialisation.learning_curve(np.array([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]))
    assert few.tolist() == list(range(1, 8)) and means.tolist() == [[0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5]]


def test_sixty_steps_of_a_loss_are_kept_and_the_best_rate_of_those_that_did_not_explode():
    assert learning_rate.kept_steps(591).tolist() == list(range(0, 591, 10))
    assert learning_rate.kept_steps(7).tolist() == list(range(7))
    losses = np.array([[[3.0, 1.0, NAN], [NAN, NAN, NAN]], [[0.5, 1.0, 0.2], [4.0, INF, 5.0]]])
    rates = np.array([[-3.0, -2.0, -1.0], [-4.0, -3.0, -2.0]])
    best, at = learning_rate.best_rates(losses, rates)
    assert best.tolist() == [[1, INF], [0.2, 4]]
    assert (at[0, 0], *at[1]) == (-2, -1, -4)


def test_a_geometric_mean_with_a_zero_among_its_seeds_is_none():
    from bnbook.chapters.shared import geometric

    found = geometric(np.array([[1.0, 0.0, -1.0, np.nan], [4.0, 4.0, 4.0, 4.0]]))[0, 1]
    assert found[0] == pytest.approx(2) and np.isnan(found[1:]).all()
