"""Each kind of test against numbers worked out by hand or by SciPy, on edges too; what is shown of them stands in the golden
lines of test_claims_verdicts."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from bookpress.claims import Claim, Source, Test, kinds
from bookpress.claims.judging import benjamini_hochberg
from bookpress.claims.kinds import evaluate, seeds_needed
from bookpress.pipeline import gate
from bookpress.results import Results

HALF = 4.302652729696142 / math.sqrt(3)  # of three seeds of deviation 1: Student's t at 97.5 % over √3
STEP = 6.205346816570722 / math.sqrt(3)  # the same at 98.75 %, of one of two steps
SPREAD = np.array([-1.0, 0.0, 1.0])
ENDLESS = (-math.inf, math.inf)
PAIR = dict(a="a", b="b")
RATIO = Test("ratio", **PAIR, side="greater", threshold=0.5)
AGREES = Test("agreement", **PAIR, tolerance=2.0)
RISING = Test("ordering", results=("a", "b", "c"))
EXACT = Test("identity", a="a", tolerance=1e-3)
HIGHER = Test("difference", **PAIR, side="greater", threshold=0.0)
LOST = dict(a=[1.0, math.nan, 3.0], b=[0.0, 0.0, math.inf])


def outcome(test, **results):
    return evaluate(test, {name: np.asarray(values, dtype=float) for name, values in results.items()}, "c")


def holds(test, **results):
    return outcome(test, **results).holds


def level(**more):
    return Test("level", a="a", **more)


BY_HAND = [  # test, results, whether it holds, effect, interval, name of the cell that decides or number of trials
    (RATIO, dict(a=[2, 4, 24], b=[1, 1, 3]), True, 4, (4 * 2**-HALF, 4 * 2**HALF), ""),  # quotients 2, 4, 8
    (RATIO, dict(a=[0, 1, 1], b=[1, 1, 1]), None, math.nan, ENDLESS, ""),
    (RATIO, dict(a=[1, 1, 1], b=[1, 0, 1]), None, math.nan, ENDLESS, ""),
    # Means 6 and 4: ratio 3/2; a - 1.5 b = (-1, 0, 1) over 4.
    (AGREES, dict(a=[2, 6, 10], b=[2, 4, 6]), True, 0.5, (0.5 - HALF / 4, 0.5 + HALF / 4), ""),
    (RISING, dict(a=[0] * 3, b=20 + SPREAD, c=30 + 2 * SPREAD), True, 10, (10 - STEP, 10 + STEP), "b to c"),
    (RISING, dict(a=[0] * 3, b=20 + SPREAD, c=SPREAD), False, -20, (-20, -20), "b to c"),
    (RISING, dict(a=[0] * 3, b=1 + SPREAD, c=30 + SPREAD), None, 1, (1 - STEP, 1 + STEP), "a to b"),
    (RISING, dict(a=[2] * 3, b=[2] * 3, c=[2] * 3), False, 0, (0, 0), "a to b"),  # equal is not up
    (EXACT, dict(a=[[0, -2e-3], [0, 0]]), False, 2e-3, (2e-3, 2e-3), ""),
    (EXACT, dict(a=[-1e-3, 0.0]), True, 1e-3, (1e-3, 1e-3), ""),
    (EXACT, dict(a=[0, math.inf]), False, math.inf, (math.inf, math.inf), ""),
    (HIGHER, LOST, None, math.nan, ENDLESS, ""),
    (Test("inequality", a="a"), dict(a=[0, 0]), True, 0, (0, 1 - 0.025**0.5), 2),
    (Test("inequality", a="a", b=4.0), dict(a=[4]), False, 1, (0.025**0.25, 1), 4),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BY_HAND)))
def test_an_outcome_is_that_of_paper_and_pencil(number):
    test, results, expected, effect, interval, more = BY_HAND[number]
    found = outcome(test, **results)
    cell = found.cells[found.place].name if test.results else ""
    assert (found.holds, found.trials or cell, found.n) == (expected, more, len(results["a"]))
    assert [found.effect, *found.interval] == pytest.approx([effect, *interval], nan_ok=True)


def test_the_seeds_of_an_agreement_lie_about_the_ratio_of_the_means_and_a_lost_one_may_count_as_guessing():
    assert outcome(AGREES, a=[2, 6, 10], b=[2, 4, 6]).values == pytest.approx([0.25, 0.5, 0.75])
    assert outcome(Test(**vars(HIGHER) | {"nonfinite": 7.0}), **LOST).effect == (1 + 7 - 4) / 3


# With how few seeds a test can hold

NINE_IN_TEN = level(side="greater", threshold=0.9, events=True)
FEWEST = [
    (NINE_IN_TEN, 36),
    (level(side="less", threshold=0.2, events=True), 17),
    (level(expected=0.5, tolerance=0.2, events=True), None),
    (Test("difference", **PAIR, side="greater", threshold=0.5, events=True), None),
    (Test("difference", **PAIR, side="less", threshold=-0.5, events=True), None),
    (Test("equivalence", **PAIR, margin=0.2, events=True), None),
    (level(side="greater", threshold=0.9), 2),
    (Test("ordering", results=("a", "b")), 2),
    (Test("ratio", **PAIR, side="greater", threshold=1.0), 2),
    (Test("sign", **PAIR, side="greater"), 6),
    (Test("identity", a="a", tolerance=0.0), 1),
]


@pytest.mark.parametrize("test,fewest", FEWEST)
def test_the_fewest_seeds_are_those_of_a_search_through_all_outcomes(test, fewest):
    found = kinds.least_seeds(test)
    assert fewest in (None, found)
    if test.events:
        assert holds_somehow(test, found) and not holds_somehow(test, found - 1)


def holds_somehow(test, seeds):
    """Every count of hits, or of seeds where only a, only b or neither is 1."""
    line, both = np.arange(seeds), range(seeds + 1)
    pairs = [(line < a, (line >= a) & (line < a + b)) for a in both for b in both if a + b <= seeds]
    rows = [[line < hits] for hits in both] if test.b is None else pairs
    return any(kinds.decide(test, kinds.compared(test, np.array(each, dtype=float)))[0] for each in rows)


@pytest.mark.parametrize(
    "beyond,profile,lines", [(False, "laptop", 1), (True, "laptop", 0), (False, "smoke", 0)]
)
def test_the_gate_counts_the_seeds_that_the_test_was_given(monkeypatch, beyond, profile, lines):
    claim = Claim("c", "part/chapter", Source("k", "v", "w"), "So.", "f", NINE_IN_TEN, out_of_reach=beyond)
    monkeypatch.setattr(gate.claims, "chapter_claims", lambda name: [claim])
    entries = {"a": {"values": [1.0] * 5, "unit": "", "seeds": [*range(5)]}}
    chapter = SimpleNamespace(name="part/chapter", exact=False)
    results = Results({"default_parameters": True}, entries)
    run = SimpleNamespace(profile=profile, chapter=chapter, results=results, known={})
    problems = list(gate.within_reach(run))
    assert len(problems) == lines and all("with 5 seeds its test cannot hold" in line for line in problems)


# How surely a test decides, and how many seeds would

RNG = np.random.default_rng(20260711)


def test_benjamini_and_hochberg_is_scipys():
    ps = RNG.uniform(0, 1, 200) ** 3
    assert benjamini_hochberg(ps) == list(stats.false_discovery_control(ps) <= 0.05)
    assert benjamini_hochberg([]) == [] and benjamini_hochberg([0.2]) == [False]


POSITIVE = level(side="greater", threshold=0.0)


def test_so_many_seeds_decide_four_times_in_five():
    a = np.array([-0.6, 0.2, 1.4, 0.1, 0.9])
    needed = seeds_needed(outcome(POSITIVE, a=a))
    draws = RNG.normal(a.mean(), a.std(ddof=1), (20000, needed))
    lower = draws.mean(1) - stats.t.ppf(0.975, needed - 1) * draws.std(1, ddof=1) / math.sqrt(needed)
    assert 0.77 < (lower > 0).mean() < 0.85
    needed = seeds_needed(outcome(level(side="greater", threshold=0.5), a=[1] * 13 + [0] * 7))
    heads = RNG.binomial(needed, 0.65, 20000)
    sure = stats.binom.sf(np.arange(-1, needed), needed, 0.5) <= 0.025
    assert 0.75 < sure[heads].mean() < 0.87
    assert seeds_needed(outcome(level(side="greater", threshold=0.4), a=a)) > 50000
