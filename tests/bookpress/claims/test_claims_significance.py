"""p-values, the sign test, Benjamini and Hochberg, and how many seeds would decide, against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bookpress.claims import Test
from bookpress.claims.claim import Outcome
from bookpress.claims.judging import deciding_words, seeds_for_claim, seeds_needed
from bookpress.claims.kinds import evaluate
from bookpress.claims.ledger import benjamini_hochberg, significance

RNG = np.random.default_rng(20260711)
A, B = RNG.normal(1.2, 1, 12), RNG.normal(0.2, 1, 12)
HEADS = np.array([1.0] * 11 + [0.0])
ABOVE = Test("difference", a="a", b="b", side="greater", threshold=0.1)


def found(test, **results):
    return evaluate(test, {name: np.asarray(values, dtype=float) for name, values in results.items()}, "c")


def nearest_edge(values, *edges):
    return min(abs(stats.ttest_1samp(values, edge).statistic) for edge in edges)


P_VALUES = [
    (ABOVE, dict(a=A, b=B), stats.ttest_rel(A, B + 0.1).pvalue),
    (Test("level", a="a", side="less", threshold=2.0), dict(a=A), stats.ttest_1samp(A, 2.0).pvalue),
    (Test("ratio", a="a", b="b", side="greater", threshold=2.0), dict(a=np.exp(A), b=np.exp(B)),
     stats.ttest_1samp(A - B, math.log(2)).pvalue),
    (Test("equivalence", a="a", b="b", margin=4.0), dict(a=A, b=B), 2 * stats.t.sf(nearest_edge(A - B, -4, 4),
     11)),
    (Test("level", a="a", side="greater", threshold=0.5), dict(a=HEADS), 2 * stats.binom.sf(10, 12, 0.5)),
    (Test("ordering", results=("b", "a", "c")), dict(b=B, a=A, c=A + 9 + 0.1 * B),
     2 * stats.ttest_rel(A, B).pvalue),
]  # fmt: skip


@pytest.mark.parametrize("test,results,expected", P_VALUES)
def test_p_is_that_of_the_test_behind_the_interval(test, results, expected):
    outcome = found(test, **results)
    p = significance(outcome).p
    assert p == pytest.approx(expected, rel=2e-3) and (p <= 0.05) is (outcome.holds is not None)


def test_nothing_varies_and_one_seed():
    assert significance(found(Test("level", a="a", side="less", threshold=1.0), a=[0.5] * 3)).p == 0
    assert significance(found(Test("level", a="a", side="less", threshold=1.0), a=[0.5])).p == 1
    assert significance(found(Test("identity", a="a", tolerance=1.0), a=[0.5])) is None


def test_the_sign_test_counts_seeds_beyond_the_edge():
    sure = significance(found(Test("level", a="a", side="greater", threshold=0.0), a=[3, 2, 1, 4, -9, 5]))
    assert (sure.side, sure.n) == (5, 6)
    assert sure.sign_p == pytest.approx(stats.binomtest(5, 6).pvalue)
    below = significance(found(Test("level", a="a", side="greater", threshold=1.0), a=[0.1, 0.2, 0.3, 1.5]))
    assert (below.side, below.sign_p) == (3, pytest.approx(stats.binomtest(1, 4).pvalue))
    inside = significance(found(Test("level", a="a", expected=1, tolerance=0.5), a=[0.9, 1.1, 1, 1.6, 1.2]))
    assert (inside.side, inside.sign_p) == (4, pytest.approx(stats.binomtest(1, 5).pvalue))
    outside = significance(found(Test("level", a="a", expected=1, tolerance=0.5), a=[2, 2.1, 2.2, 1.1, 2]))
    assert (outside.side, outside.sign_p) == (4, pytest.approx(stats.binomtest(1, 5).pvalue))


def test_a_seed_on_the_edge_is_on_no_side():
    edge = significance(found(Test("level", a="a", expected=1, tolerance=0.5), a=[0.5, 0.9, 1, 1.1, 1.2]))
    assert (edge.side, edge.n) == (4, 5)


def test_a_share_of_seeds_is_held_against_its_edge_and_not_against_a_half():
    few = Test("level", a="a", side="less", threshold=0.2)
    sure = significance(found(few, a=[0.0] * 20))
    assert sure.sign_p == pytest.approx(2 * 0.8**20), "none of twenty, where one in five would be"
    many = Test("level", a="a", side="greater", threshold=0.8)
    sure = significance(found(many, a=[1.0] * 7 + [0.0] * 13))
    assert sure.sign_p == pytest.approx(2 * stats.binom.cdf(7, 20, 0.8)) and sure.sign_p < 1e-4


def test_benjamini_and_hochberg_is_scipys():
    ps = RNG.uniform(0, 1, 200) ** 3
    assert benjamini_hochberg(ps) == list(stats.false_discovery_control(ps) <= 0.05)
    assert benjamini_hochberg([]) == [] and benjamini_hochberg([0.2]) == [False]


def test_so_many_seeds_decide_four_times_in_five():
    a = np.array([-0.6, 0.2, 1.4, 0.1, 0.9])
    needed = seeds_needed(found(Test("level", a="a", side="greater", threshold=0.0), a=a))
    draws = RNG.normal(a.mean(), a.std(ddof=1), (20000, needed))
    lower = draws.mean(1) - stats.t.ppf(0.975, needed - 1) * draws.std(1, ddof=1) / math.sqrt(needed)
    assert 0.77 < (lower > 0).mean() < 0.85
    coins = np.array([1.0] * 13 + [0.0] * 7)
    needed = seeds_needed(found(Test("level", a="a", side="greater", threshold=0.5), a=coins))
    heads = RNG.binomial(needed, 0.65, 20000)
    sure = stats.binom.sf(np.arange(-1, needed), needed, 0.5) <= 0.025
    assert 0.75 < sure[heads].mean() < 0.87
    assert seeds_needed(found(Test("level", a="a", side="greater", threshold=0.4), a=a)) > 50000


def test_one_part_may_decide_a_claim():
    above = found(Test("level", a="a", side="greater", threshold=0.0), a=[-0.6, 0.2, 1.4, 0.1, 0.9])
    below = found(Test("level", a="a", side="greater", threshold=0.0), a=[0.6, -0.9, -1.4, -0.1, 0.3])
    assert seeds_for_claim([above, below]) == seeds_needed(below) > seeds_needed(above)
    assert seeds_for_claim([above, below], "any") == seeds_needed(above)
    assert seeds_for_claim([above, above]) == seeds_needed(above)


def test_a_part_that_was_not_measured_asks_for_no_seeds():
    level = Test("level", a="a", side="greater", threshold=0.0)
    above = found(level, a=[-0.6, 0.2, 1.4, 0.1, 0.9])
    nothing = Outcome(None, math.nan, (-math.inf, math.inf), 0, test=level)
    assert seeds_needed(nothing) == math.inf
    assert seeds_for_claim([above, nothing]) == seeds_needed(above) < math.inf
    assert seeds_for_claim([nothing]) == 0


def test_many_seeds_are_said_to_be_too_many():
    assert deciding_words(22) == "about 22 seeds would decide it"
    assert deciding_words(123) == "about 130 seeds would decide it"
    assert deciding_words(859) == "seeds will not decide it: it would take about 860"
    assert deciding_words(math.inf) == "seeds will not decide it"


def test_of_several_parts_that_would_decide_the_quickest_counts():
    level = Test("level", a="a", side="greater", threshold=0.0)
    quick = found(level, a=[0.6, -0.9, -1.4, -0.1, 0.3])
    slow = found(level, a=[2.6, -2.9, -3.4, 1.9, 0.3])
    assert seeds_needed(quick) < seeds_needed(slow)
    assert seeds_for_claim([slow, quick]) == seeds_needed(quick)
