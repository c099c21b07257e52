"""Intervals against SciPy, closed forms and tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bookpress import intervals

T2 = 4.302652729696142  # Student's t at 97.5 % and 2 degrees of freedom
ENDLESS = (-math.inf, math.inf)
ONES, ZEROS = np.ones(20), np.zeros(20)
LAST = 0.025 ** (1 / 3)  # lower end of 3 hits of 3

#: What it gives without the estimate, worked out by hand.
BY_HAND = [
    (intervals.student([2.0, 4.0]), (3 - 12.706204736, 3 + 12.706204736)),
    (intervals.student([5.0]), ENDLESS),
    (intervals.student(np.full(3, 0.1)), (0.1, 0.1)),
    (intervals.share(np.array([1.0, 0.0])), (1 - math.sqrt(0.975), math.sqrt(0.975))),
    (intervals.share(np.ones(3)), (LAST, 1.0)),
    (intervals.share(np.zeros(3)), (0.0, 1 - LAST)),
    (intervals.mean_level(np.ones(3), 0.9), (0.05 ** (1 / 3), 1.0)),
    (intervals.mean_level(np.ones(1)), ENDLESS),  # one seed is no share
    (intervals.mean_level(ONES), (0.025 ** (1 / 20), 1.0)),  # a width, where all seeds agree
    (intervals.paired_difference(np.ones(1), np.zeros(1)), ENDLESS),
    (intervals.paired_shares(np.ones(2), np.zeros(2)), (1.0,)),
    # 3 against 1 of 4 seeds: p₁₀ = 4/6, p₀₁ = 2/6
    (intervals.paired_shares(np.array([1, 1, 1, 0]), np.array([0, 0, 0, 1])),
     (1 / 3 - 1.959963984540054 * math.sqrt((1 - 1 / 9) / 6), 1.0)),
    (intervals.paired_shares(np.zeros(2), np.ones(2)), (-1.0, -0.5 + 1.959963984540054 * math.sqrt(0.75 / 4))),
    (intervals.ratio_of_means(np.array([3.0, 6.0, 3.0]), np.array([1.0, 2.0, 1.0])), (3.0, 3.0)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BY_HAND)))
def test_the_ends_are_those_of_paper_and_pencil(number):
    found, ends = BY_HAND[number]
    assert tuple(found[-len(ends) :]) == pytest.approx(ends, abs=1e-8)


def test_a_point_stays_one_and_estimates_are_means():
    assert len(set(intervals.student(np.full(3, 0.1)))) == 1, "though the mean is rounded"
    assert intervals.share(np.array([1.0, 0, 1, 1]))[0] == 0.75
    assert intervals.paired_shares(ONES, ZEROS)[0] == 1 and intervals.mean_level([0.5, 0.7])[0] == 0.6
    assert intervals.paired_shares(np.ones(2), np.zeros(2))[2] == 1.0, "cut off"
    effect, low, high = intervals.paired_difference(ONES, ZEROS)
    assert effect == 1.0 and 0.7 < low < 0.8 and high == 1.0


@pytest.mark.parametrize("count", [1, 2, 3, 7, 20, 200])
@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 0.05 / 12, 1 - 1e-12])
def test_students_interval_is_scipys_and_that_of_claims_is_it_to_the_last_bit(count, level):
    for values in (np.random.default_rng(count).standard_t(2, size=count), np.full(count, 0.1)):
        found = intervals.student(values, level)
        assert intervals.of_mean(values, level) == found
        if level < 0.999 and count > 1 and np.ptp(values):  # beyond, its own quantiles round
            expected = stats.t.interval(level, count - 1, loc=values.mean(), scale=stats.sem(values))
            assert found[1:] == pytest.approx(expected, rel=1e-12)
            known = intervals.ratio_of_means(2 * values, np.full(count, 2.0), level)
            assert known == pytest.approx(found, rel=1e-9), "a theory without sampling error"


@pytest.mark.parametrize("level", [0.95, 0.9])
def test_clopper_pearson_is_scipys_exact_interval(level):
    for hits, trials in ((0, 1), (1, 2), (0, 20), (3, 20), (20, 20), (7, 199), (500, 1000)):
        exact = stats.binomtest(hits, trials).proportion_ci(level, method="exact")
        found = intervals.clopper_pearson(hits, trials, level)
        assert found == pytest.approx((exact.low, exact.high), abs=1e-11)


def test_the_band_of_a_figure_loses_no_seed_that_diverged():
    mean, half = intervals.mean_and_interval([[1.0, 5.0], [2.0, 5.0], [3.0, math.nan]])
    assert mean[0] == 2 and half[0] == pytest.approx(T2 / math.sqrt(3)) and np.isnan([mean[1], half[1]]).all()
    mean, half = intervals.mean_and_interval([[4.0]])
    assert mean[0] == 4 and np.isnan(half[0])


@pytest.mark.parametrize(
    "values", [[0.25] * 5, [0.25, 1.0, 1.0], [0.5, 1 / 3, 7 / 12], [0.5, 1], [-1, 1], [2, 1], [0, 1, 1]]
)
def test_a_share_is_of_0_and_1_alone_and_what_is_none_has_students_interval(values):
    """A learning rate of 1/4, or a share of twelve layers, is a number of a seed as any other."""
    found = np.array(values, dtype=float)
    events = set(values) == {0, 1}
    assert intervals.is_share(found) is events is intervals.is_share(np.ones(2), found)
    assert (intervals.mean_level(found) == intervals.student(found)) is not events
    assert (intervals.paired_difference(found, 0 * found) == intervals.student(found)) is not events
