"""Intervals against closed forms, tables and seeded simulation of their coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bookpress import intervals

RNG_SEED = 20180521


def test_student_interval_equals_scipys_at_any_level():
    values = np.random.default_rng(RNG_SEED).normal(size=7)
    for level in (0.9, 0.95, 0.975):
        _, low, high = intervals.student(values, level)
        expected = stats.t.interval(level, 6, loc=values.mean(), scale=stats.sem(values))
        assert (low, high) == pytest.approx(expected, rel=1e-12)


def test_the_mean_that_claims_are_judged_by_has_students_interval_to_the_last_bit():
    rng = np.random.default_rng(RNG_SEED)
    for count in (1, 2, 3, 7, 20, 200):
        for values in (rng.standard_t(2, size=count), np.full(count, 0.1)):
            for level in (0.5, 0.95, 1 - 0.05 / 12, 1 - 1e-12):
                assert intervals.of_mean(values, level) == intervals.student(values, level)


def test_ratio_of_means_with_constant_theory_is_students_interval_of_the_quotient():
    a = np.array([1.0, 1.2, 1.1, 0.8])
    expected = intervals.student(a / 2.0)
    assert intervals.ratio_of_means(a, np.full(4, 2.0)) == pytest.approx(expected)
    exact = intervals.ratio_of_means(3 * a, a)  # per-seed theory that fits each seed: no error at all
    assert exact == pytest.approx((3.0, 3.0, 3.0))


@pytest.mark.parametrize("level", [0.95, 0.9])
def test_clopper_pearson_is_scipys_exact_interval(level):
    for hits, trials in ((0, 1), (1, 2), (0, 20), (3, 20), (20, 20), (7, 199), (500, 1000)):
        exact = stats.binomtest(hits, trials).proportion_ci(level, method="exact")
        assert intervals.clopper_pearson(hits, trials, level) == pytest.approx(
            (exact.low, exact.high), abs=1e-11
        )


def test_shares_keep_a_width_where_all_seeds_agree():
    ones, zeros = np.ones(20), np.zeros(20)
    effect, low, high = intervals.paired_difference(ones, zeros)
    assert effect == 1.0 and 0.7 < low < 0.8 and high == 1.0
    assert intervals.mean_level(ones) == (1.0, pytest.approx(0.025 ** (1 / 20)), 1.0)


@pytest.mark.parametrize(
    "p_a,p_b,shared", [(0.5, 0.2, 0.1), (0.9, 0.1, 0.05), (0.3, 0.3, 0.2), (0.95, 0.5, 0.45)]
)
def test_paired_shares_cover_nearly_as_stated(p_a, p_b, shared):
    """Exact coverage at 20 seeds, summed over all outcomes: near 95 %, as Bonett and Price report."""
    cells = [p_a - shared, p_b - shared]
    outcomes = [(i, j) for i in range(21) for j in range(21 - i)]
    probability = stats.multinomial.pmf(
        [[i, j, 20 - i - j] for i, j in outcomes], 20, [*cells, 1 - sum(cells)]
    )
    covered = 0.0
    for (i, j), weight in zip(outcomes, probability, strict=True):
        a, b = np.r_[np.ones(i), np.zeros(20 - i)], np.r_[np.zeros(i), np.ones(j), np.zeros(20 - i - j)]
        _, low, high = intervals.paired_shares(a, b)
        covered += weight * (low <= p_a - p_b <= high)
    assert 0.93 <= covered <= 0.995
