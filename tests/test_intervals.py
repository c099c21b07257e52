"""Intervals against closed forms, tables and seeded simulation of their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from bookpress import intervals

RNG_SEED = 20180521


def test_student_interval_of_three_values_by_hand():
    # mean 2, s² = 1 over two degrees of freedom, t = 4.302653: 2 ± 4.302653/√3.
    mean, low, high = intervals.student(np.array([1.0, 2.0, 3.0]))
    assert (mean, high - low) == (2.0, pytest.approx(2 * 4.302652730 / math.sqrt(3), rel=1e-9))


def test_student_interval_equals_scipys_at_any_level():
    values = np.random.default_rng(RNG_SEED).normal(size=7)
    for level in (0.9, 0.95, 0.975):
        _, low, high = intervals.student(values, level)
        expected = stats.t.interval(level, 6, loc=values.mean(), scale=stats.sem(values))
        assert (low, high) == pytest.approx(expected, rel=1e-12)


def test_one_seed_has_no_interval_and_equal_seeds_a_point():
    assert intervals.student(np.array([0.3])) == (0.3, -math.inf, math.inf)
    mean, low, high = intervals.student(np.full(7, 0.1))
    assert mean == low == high == pytest.approx(0.1)


def test_the_mean_that_claims_are_judged_by_has_students_interval_to_the_last_bit():
    rng = np.random.default_rng(RNG_SEED)
    for count in (1, 2, 3, 7, 20, 200):
        for values in (rng.standard_t(2, size=count), np.full(count, 0.1)):
            for level in (0.5, 0.95, 1 - 0.05 / 12, 1 - 1e-12):
                assert intervals.of_mean(values, level) == intervals.student(values, level)


def test_geometric_ratio_by_hand():
    # Logarithms of the ratios: -1, 0, 1 times log 2.
    effect, low, high = intervals.geometric_ratio(np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 3.0]))
    assert effect == pytest.approx(1.0)
    assert high == pytest.approx(2 ** (4.302652730 / math.sqrt(3))) == pytest.approx(1 / low)


def test_ratio_of_means_with_constant_theory_is_students_interval_of_the_quotient():
    a = np.array([1.0, 1.2, 1.1, 0.8])
    expected = intervals.student(a / 2.0)
    assert intervals.ratio_of_means(a, np.full(4, 2.0)) == pytest.approx(expected)
    exact = intervals.ratio_of_means(3 * a, a)  # per-seed theory that fits each seed: no error at all
    assert exact == pytest.approx((3.0, 3.0, 3.0))


def test_clopper_pearson_solves_its_defining_equations():
    low, high = intervals.clopper_pearson(3, 20)
    assert stats.binom.sf(2, 20, low) == pytest.approx(0.025)
    assert stats.binom.cdf(3, 20, high) == pytest.approx(0.025)
    assert intervals.clopper_pearson(0, 20) == (0.0, pytest.approx(1 - 0.025 ** (1 / 20)))
    assert intervals.clopper_pearson(20, 20) == (pytest.approx(0.025 ** (1 / 20)), 1.0)


@pytest.mark.parametrize("level", [0.95, 0.9])
def test_clopper_pearson_is_scipys_exact_interval(level):
    for hits, trials in ((0, 1), (1, 2), (0, 20), (3, 20), (20, 20), (7, 199), (500, 1000)):
        exact = stats.binomtest(hits, trials).proportion_ci(level, method="exact")
        assert intervals.clopper_pearson(hits, trials, level) == pytest.approx(
            (exact.low, exact.high), abs=1e-11
        )


def test_paired_shares_by_hand():
    # n = 20, a alone succeeds in 8, b alone in 2: p = 9/22, 3/22; 6/22 ± z √((12/22 - (6/22)²)/22).
    a = np.array([1] * 8 + [0] * 2 + [1] * 5 + [0] * 5)
    b = np.array([0] * 8 + [1] * 2 + [1] * 5 + [0] * 5)
    effect, low, high = intervals.paired_shares(a, b)
    half = 1.959963985 * math.sqrt((12 / 22 - (6 / 22) ** 2) / 22)
    assert effect == pytest.approx(6 / 20)
    assert (low, high) == pytest.approx((6 / 22 - half, 6 / 22 + half))


def test_shares_keep_a_width_where_all_seeds_agree():
    ones, zeros = np.ones(20), np.zeros(20)
    effect, low, high = intervals.paired_difference(ones, zeros)
    assert effect == 1.0 and 0.7 < low < 0.8 and high == 1.0
    assert intervals.mean_level(ones) == (1.0, pytest.approx(0.025 ** (1 / 20)), 1.0)


@pytest.mark.parametrize("count", [3, 5, 20])
def test_student_covers_as_stated(count):
    """95 ± 1 % of the intervals of 4,000 draws cover the truth (standard error 0.34 %)."""
    draws = np.random.default_rng(RNG_SEED + count).normal(3.0, 2.0, size=(4000, count))
    found = np.array([intervals.student(row) for row in draws])
    coverage = np.mean((found[:, 1] <= 3.0) & (found[:, 2] >= 3.0))
    assert coverage == pytest.approx(0.95, abs=0.01)


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


def test_clopper_pearson_never_covers_less_than_stated():
    for p in (0.01, 0.1, 0.3, 0.5, 0.85):
        edges = [intervals.clopper_pearson(hits, 20) for hits in range(21)]
        covered = sum(stats.binom.pmf(h, 20, p) for h, (low, high) in enumerate(edges) if low <= p <= high)
        assert covered >= 0.95


def test_ratio_of_means_covers_with_sampling_error_on_both_sides():
    rng = np.random.default_rng(RNG_SEED)
    seed_effect = rng.normal(size=(3000, 8))
    a = 2.0 * (1 + 0.1 * seed_effect) + 0.05 * rng.normal(size=(3000, 8))
    b = 1.0 * (1 + 0.1 * seed_effect) + 0.02 * rng.normal(size=(3000, 8))
    found = np.array([intervals.ratio_of_means(*rows) for rows in zip(a, b, strict=True)])
    assert np.mean((found[:, 1] <= 2.0) & (found[:, 2] >= 2.0)) == pytest.approx(0.95, abs=0.015)


def test_paired_shares_agree_with_the_score_interval():
    """Against Tango's score interval, solved numerically: within 0.04 at 20 and within 0.005 at 400 seeds."""

    def tango(n10, n01, n):
        def z(delta):
            a = 2 * n
            b = -n10 - n01 + (2 * n - n10 + n01) * delta
            c = -n01 * delta * (1 - delta)
            q = (math.sqrt(b * b - 4 * a * c) - b) / (2 * a)
            return (n10 - n01 - n * delta) / math.sqrt(n * (2 * q + delta * (1 - delta)))

        middle = (n10 - n01) / n
        low = optimize.brentq(lambda d: z(d) - 1.959963985, -0.999, middle)
        return low, optimize.brentq(lambda d: z(d) + 1.959963985, middle, 0.999)

    for scale, tolerance in ((1, 0.04), (20, 0.005)):
        n10, n01, n = 8 * scale, 2 * scale, 20 * scale
        a = np.r_[np.ones(n10), np.zeros(n - n10)]
        b = np.r_[np.zeros(n10), np.ones(n01), np.zeros(n - n10 - n01)]
        assert intervals.paired_shares(a, b)[1:] == pytest.approx(tango(n10, n01, n), abs=tolerance)
