"""Curves of accuracy, the starts of trainings and Algorithm 1's noise, with numbers worked out on paper."""

from __future__ import annotations

import math

import numpy as np
import page_cells
import pytest

from bnbook.chapters import vgg

NAN = math.nan


def test_accuracy_is_in_per_cent_of_the_batches_up_to_each_point():
    """120 steps in 60 points: means of two. The second seed diverged and guesses one of ten classes."""
    run = {"accuracy": np.stack([np.linspace(0, 1.19, 120), np.full(120, NAN)])}
    assert vgg.batch_steps(120).tolist() == list(range(2, 121, 2))
    assert vgg.batch_steps(240)[0] == 4 and vgg.batch_steps(299)[0] == 4
    assert vgg.batch_steps(50).tolist() == list(range(1, 51)) and vgg.batch_steps(7, 3)[-1] == 6
    found = vgg.batch_accuracy(run, 10)[0]
    # means of 0.00 and 0.01, of 0.02 and 0.03, ... and of 0.1
    np.testing.assert_allclose(found[1], 50 * (0.005 + 0.02 * np.arange(60)) + 5)
    assert vgg.batch_accuracy(run, 4)[0, 1, 0] == pytest.approx(0.25 + 12.5)
    some = vgg.batch_accuracy(run, 10, 3)[0, 1]  # means of 40 batches: 0.195, 0.595, 0.995
    np.testing.assert_allclose(some, [9.75 + 5, 29.75 + 5, 49.75 + 5])
    tested = {"test_accuracy": np.array([[0.1, 0.5], [0.3, NAN], [0.2, 0.9]])}
    low, middle, high = vgg.test_accuracy(tested, 10)[0]
    np.testing.assert_allclose(middle, [20, 50])
    assert middle[0] - low[0] == pytest.approx(4.302653 * 10 / math.sqrt(3)) == high[0] - middle[0]


def test_a_training_failed_by_its_last_sixth():
    loss = np.full((3, 12), 2.4)
    loss[0, 10:] = 2.2  # 2 of 12, below 0.98 ln 10 = 2.2565
    loss[1, 11] = 2.12  # mean 2.26
    loss[2, :10], loss[2, 10:] = 0.0, NAN
    failed = page_cells.functions("santurkar/training", classes=10)["failed"]
    assert failed({"loss": loss}).tolist() == [0, 1, 1]


def test_matched_is_where_the_plain_arm_s_best_mean_is_reached():
    """Means of two: 0.4 at its best, for the first step alone is no window; of the second seed 0.85."""
    plain = np.array([[0.5, 0.1, 0.3, 0.5, 0.2, 0.1], [0.9, 0.8, 0.1, 0.1, 0.1, 0.1]])
    normed = np.array([[0.1, 0.74, 0.2, 0.5, 0.9, 0.9], [0.0, 0.0, 0.0, 0.0, 0.5, 0.5]])
    found = page_cells.functions("santurkar/training")["matched"](plain, normed, 2)
    assert [each.tolist() for each in found] == [[4, 2], [2, np.inf]]
