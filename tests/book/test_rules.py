"""How often each kind of test errs at 4, 5 and 20 seeds, under normal, heavy-tailed and bounded data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bnbook import rules
from bookpress.claims import Test
from bookpress.claims.kinds import evaluate

RNG = np.random.default_rng(20260714)
#: 2.5 % and four standard errors of the share in so many books.
NOMINAL = 0.025 + 4 * math.sqrt(0.025 * 0.975 / rules.BOOKS)


@pytest.mark.parametrize("seeds", rules.SEEDS)
@pytest.mark.parametrize("data", ["normal", "heavy tails"])
@pytest.mark.parametrize("kind", rules.KINDS)
def test_students_interval_keeps_its_promise(kind, data, seeds):
    rates = rules.KINDS[kind](data, seeds)
    assert max(rates.holds, rates.fails) < NOMINAL


@pytest.mark.parametrize("seeds", rules.SEEDS)
def test_normal_data_err_as_often_as_stated_and_lopsided_ones_more_often(seeds):
    normal = rules.one_mean("normal", seeds)
    assert 0.05 - 0.012 < normal.holds + normal.fails < 0.05 + 0.012
    bounded = rules.one_mean("shares near 1", seeds)
    assert 0.05 < bounded.holds < 0.2 and bounded.fails < NOMINAL, "the page says so"


@pytest.mark.parametrize("seeds", rules.SEEDS)
def test_a_share_of_seeds_never_errs_more_often_than_stated(seeds):
    for chance in np.linspace(0.01, 0.99, 50):
        rates = rules.share(chance, seeds)
        assert max(rates.holds, rates.fails) <= 0.025
    for chance in rules.CHANCES:
        assert rules.paired_shares(chance, seeds).holds < (0.045 if seeds < 20 else 0.025)


def judged(test, **rows):
    return evaluate(test, rows, "c").holds


PAIR = dict(a="a", b="b")
ABOVE = dict(side="greater", threshold=2.0)
ON_THE_EDGE = {  # a kind of test whose edge is at a mean of 0 of x
    "difference": (Test("difference", **PAIR, **ABOVE), lambda x, y: dict(a=y + 2 + x, b=y)),
    "ratio": (Test("ratio", **PAIR, **ABOVE), lambda x, y: dict(a=2 * np.exp(x + y), b=np.exp(y))),
    "level": (Test("level", a="a", **ABOVE), lambda x, y: dict(a=2 + x)),
    "rate": (Test("rate", a="a", **ABOVE), lambda x, y: dict(a=2 + x)),
    "equivalence": (Test("equivalence", **PAIR, margin=50.0), lambda x, y: dict(a=y, b=y + 50 - x)),
    "agreement": (Test("agreement", **PAIR, tolerance=50.0), lambda x, y: dict(a=51 - x, b=np.ones(1))),
}


@pytest.mark.parametrize("kind", ON_THE_EDGE)
def test_what_is_simulated_is_what_judges(kind):
    """The same draws through the real tests: each decides as the interval of one mean does."""
    test, results = ON_THE_EDGE[kind]
    draws = RNG.standard_t(3, (60, 5)) + RNG.choice([-2, 0, 2], (60, 1))
    low, high = rules.student_ends(draws)
    expected = [True if a > 0 else False if b < 0 else None for a, b in zip(low, high, strict=True)]
    assert [judged(test, **results(x, RNG.normal(size=5))) for x in draws] == expected
    assert {True, False, None} == set(expected)


def test_orderings_and_worst_cells_are_what_judges():
    draws = RNG.normal(size=(40, 3, 5)) + RNG.choice([-4, 0, 4], (40, 3, 1))
    low, high = rules.student_ends(draws, 1 - 0.05 / 3)
    own = rules.student_ends(draws)
    for k, x in enumerate(draws):
        steps = dict(zip("abcd", np.cumsum([np.zeros(5), *x], axis=0), strict=True))
        expected = False if (high[k] <= 0).any() else True if (low[k] > 0).all() else None
        assert judged(Test("ordering", results=("a", "b", "c", "d")), **steps) is expected
        cells = dict(zip("abc", x - 50, strict=True))
        wide = Test("level", results=("a", "b", "c"), expected=0.0, tolerance=50.0)
        inside = (own[1][k] <= 100).all() and (own[0][k] >= 0).all()
        assert judged(wide, **cells) is (False if (high[k] < 0).any() else True if inside else None)


def test_recorded_samples_give_the_coverage_of_a_slow_twin():
    sample = RNG.exponential(size=20)
    hits = [
        abs(stats.ttest_1samp(RNG.choice(sample, 5), sample.mean()).statistic) <= stats.t.ppf(0.975, 4)
        for _ in range(1500)
    ]
    assert rules.recorded_coverage([sample], 5)[0] == pytest.approx(np.mean(hits), abs=0.04)
    assert rules.recorded_coverage([np.full(20, 2.87874625)], 5) == [1.0], "no spread, no miss"


def test_the_page_says_what_the_correction_for_many_tests_amounts_to():
    """Of five tests four decide and are kept: the bar is 5 % of four fifths; one of two margins turns."""
    counted = [
        dict(p=p, holds=holds, n=5, kept=kept, sign_p=0.5)
        for p, holds, kept in (*[(1e-4, True, 1)] * 3, (0.03, False, 1), (0.6, None, 0))
    ]
    margins = [dict(other_margins=["open", "reproduced"], verdict="reproduced")]
    margins += [
        dict(other_margins=["open", "open"], verdict="open"),
        dict(other_margins=None, verdict="open"),
    ]
    found = rules._many(margins, [({}, test) for test in counted])
    assert (found["tests"], found["decided"], found["kept"]) == ("5", "4", "4")
    assert (found["bar"], found["false"]) == ("0.040", "1"), "5 % of 4/5; 5 % of four tests, rounded up"
    assert (found["margins"], found["turned"]) == ("2", "1")
