"""Each kind of test against numbers worked out by hand or by SciPy, on edges too; what is shown of them stands in the golden
lines of test_claims_verdicts."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from bnbook.errors import BnbookError
from bookpress import intervals
from bookpress.claims import Claim, Source, Test, judge, kinds
from bookpress.claims.effects import effect_and_interval
from bookpress.claims.judging import benjamini_hochberg, deciding_words
from bookpress.claims.kinds import Outcome, evaluate, p_value, seeds_for_claim, seeds_needed, sign_test
from bookpress.claims.recorded import columns, over_draws
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


@pytest.mark.parametrize("share, expected", [(0.9, None), (0.999, None), (1.001, True), (1.5, True)])
def test_equivalence_takes_the_interval_that_is_shown(share, expected):
    """The margin is a share of t/√3: the 90 % interval would pass from 0.68 of it on."""
    found = outcome(Test("equivalence", **PAIR, margin=share * HALF), a=SPREAD, b=np.zeros(3))
    assert found.holds is expected and found.interval == pytest.approx((-HALF, HALF))
    for sign in (1, -1):  # and it fails only where the whole interval lies outside
        moved = {"a": sign * (2.0 * HALF + SPREAD), "b": np.zeros(3)}
        assert holds(Test("equivalence", **PAIR, margin=0.99 * HALF), **moved) is False
        assert holds(Test("equivalence", **PAIR, margin=1.01 * HALF), **moved) is None


@pytest.mark.parametrize(
    "ahead, of, expected, low, high",
    [(14, 20, None, 45.7, 88.1), (15, 20, True, 50.9, 91.3), (5, 20, False, 8.66, 49.1), (5, 5, None, 47.8, 100)],
)  # fmt: skip
def test_more_than_half_of_the_seeds_is_a_share_whatever_their_size(ahead, of, expected, low, high):
    """The exact intervals of Clopper and Pearson (1934), from their tables; said and judged alike from both sides."""
    rng = np.random.default_rng(0)
    b = 10 ** rng.uniform(-9, 9, of)
    a = b * np.where(np.arange(of) < ahead, 10 ** rng.uniform(0.1, 9, of), 10 ** rng.uniform(-9, -0.1, of))
    for one, other, side in (("none", "batch", "greater"), ("batch", "none", "less")):
        test = Test("sign", a=f"loss.{one}", b=f"loss.{other}", side=side)
        found = outcome(test, **{"loss.none": a, "loss.batch": b})
        assert found.holds is expected and found.effect == ahead / of
        assert [100 * edge for edge in found.interval] == pytest.approx([low, high], abs=0.06)
        words = f"larger without batch norm in {ahead} of {of} seeds"
        assert effect_and_interval(found)[0] == words
    equal = Test("sign", **PAIR, side="greater")
    assert holds(equal, a=np.ones(20), b=np.ones(20)) is False, "on no side"
    assert holds(equal, a=1 + (np.arange(20) < 16), b=np.ones(20)) is True


def test_a_point_on_the_edge():
    """Equal seeds make a point: beyond means beyond, within means up to and including."""
    data = dict(a=[3.0] * 3, b=[0.0] * 3)
    for kind, more in (("difference", {"b": "b"}), ("level", {}), ("rate", {})):
        for side, below, above in (("greater", True, False), ("less", False, True)):
            tests = [Test(kind, a="a", side=side, threshold=t, **more) for t in (2.9, 3.0, 3.1)]
            assert [holds(test, **data) for test in tests] == [below, False, above]
    for inside, step in ((True, 0.0), (False, -0.1)):
        for expected in (2.0, 4.0):
            assert holds(level(expected=expected, tolerance=1.0 + step), **data) is inside
        for one, other in ("ab", "ba"):
            assert holds(Test("equivalence", a=one, b=other, margin=3.0 + step), **data) is inside
        assert holds(Test("agreement", a="a", b=2.0, tolerance=0.5 + step), **data) is inside
        assert holds(Test("identity", a="a", tolerance=3.0 + step), **data) is inside
    assert holds(Test("ratio", a="a", b="a", side="greater", threshold=1.0), **data) is False


@pytest.mark.parametrize(("more", "trials"), [({}, 4), ({"b": 50}, 100), ({"b": "b"}, 70)])
def test_an_inequality_counts_and_shows_that_its_seeds_differ(more, trials):
    found = outcome(Test("inequality", a="a", **more), a=[[3, 0], [0, 0]], b=[30, 40])
    assert found.holds is False and found.effect == 3 / trials and found.unit == "of trials"
    own = {4: 3 / 2, 100: 3 / 50, 70: 3 / 30}[trials]  # of the first seed; the second has none
    high = own / 2 + 12.706205 * own / 2  # t at one degree of freedom, times own / √2 / √2
    pooled = intervals.clopper_pearson(3, trials)
    assert found.interval == pytest.approx((0, min(1, max(pooled[1], high)))) and pooled[0] > 0
    assert (found.trials, found.n) == (trials, 2)


def test_what_was_recorded():
    given = dict(a=np.arange(3.0), column=np.arange(3.0)[:, None], table=np.ones((3, 2)), one=np.ones(1))
    given |= {"empty": np.zeros((0,)), "point": np.array(1.0), "lost": np.array([1.0, math.nan, -math.inf])}
    read = lambda kind, a, b=None, **more: columns(
        Test(kind, a=a, b=b, **more or {"side": "greater", "threshold": 0.0}), given
    )[1].tolist()
    assert read("level", "column") == [[0, 1, 2]] and over_draws("table", given)[1].shape == (3, 2)
    assert read("difference", "a", 5.0) == [[0, 1, 2], [5, 5, 5]]
    assert read("agreement", "a", "one", tolerance=1.0)[1] == [1, 1, 1]
    assert read("level", "lost", side="less", threshold=1.0, nonfinite=9.0) == [[1, 9, 9]]
    assert np.isnan(read("level", "lost")[0][1])
    for kind, a, b, more, words in (
        ("difference", "a", "one", {}, "paired by seed"),
        ("agreement", "one", "a", {"tolerance": 1.0}, "paired by seed"),
        ("level", "table", None, {}, "one number per seed"),
        ("level", "empty", None, {}, "no seed axis"),
        ("level", "point", None, {}, "no seed axis"),
    ):
        with pytest.raises(BnbookError, match=words):
            read(kind, a, b, **more)


PROFILES = [("smoke", False, False), ("smoke", True, True), ("laptop", False, True)]
PROFILES += [(None, False, True), ("paper", False, False), ("overnight", False, True)]


@pytest.mark.parametrize("profile, exact, evidence", PROFILES)
def test_which_profiles_are_evidence(profile, exact, evidence):
    up = level(side="greater", threshold=0.0)
    claim = Claim("c", "p/c", Source("k", "v", "w"), "says", "figure", up, evidence=("laptop",))
    found = judge(claim, {"a": np.ones(3) * 2}, profile, exact=exact)
    assert (found["verdict"] == "reproduced") is evidence and found["profile"] == profile
    words = {False: "not tested at this scale", True: "not tested at this scale (smoke run)"}
    assert found["words"] == ("reproduced" if evidence else words[profile == "smoke"])
    assert found["effect"]["number"] == 2
    if evidence:
        with pytest.raises(BnbookError, match="claim c: result a is missing"):
            judge(claim, {}, profile, exact=exact)
    else:
        nothing = judge(claim, {}, profile, exact=exact)
        assert nothing["n"] == nothing["tests"][0]["n"] == 0 and nothing["effect"] is None


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
    run = SimpleNamespace(profile=profile, chapter=chapter, results=results, judged={})
    problems = list(gate.within_reach(run))
    assert len(problems) == lines and all("with 5 seeds its test cannot hold" in line for line in problems)


# How surely a test decides, and how many seeds would

RNG = np.random.default_rng(20260711)
A, B = RNG.normal(1.2, 1, 12), RNG.normal(0.2, 1, 12)
HEADS = np.array([1.0] * 11 + [0.0])


def nearest_edge(values, *edges):
    return min(abs(stats.ttest_1samp(values, edge).statistic) for edge in edges)


P_VALUES = [
    (Test("difference", **PAIR, side="greater", threshold=0.1), dict(a=A, b=B), stats.ttest_rel(A, B + 0.1).pvalue),
    (level(side="less", threshold=2.0), dict(a=A), stats.ttest_1samp(A, 2.0).pvalue),
    (Test("ratio", **PAIR, side="greater", threshold=2.0), dict(a=np.exp(A), b=np.exp(B)),
     stats.ttest_1samp(A - B, math.log(2)).pvalue),
    (Test("equivalence", **PAIR, margin=4.0), dict(a=A, b=B), 2 * stats.t.sf(nearest_edge(A - B, -4, 4), 11)),
    (level(side="greater", threshold=0.5), dict(a=HEADS), 2 * stats.binom.sf(10, 12, 0.5)),
    (Test("ordering", results=("b", "a", "c")), dict(b=B, a=A, c=A + 9 + 0.1 * B), 2 * stats.ttest_rel(A, B).pvalue),
    (level(side="less", threshold=1.0), dict(a=[0.5] * 3), 0),  # nothing varies
    (level(side="less", threshold=1.0), dict(a=[0.5]), 1),
]  # fmt: skip


@pytest.mark.parametrize("test,results,expected", P_VALUES)
def test_p_is_that_of_the_test_behind_the_interval(test, results, expected):
    found = outcome(test, **results)
    p = p_value(found)
    assert p == pytest.approx(expected, rel=2e-3) and (p <= 0.05) is (found.holds is not None)
    assert p_value(outcome(Test("identity", a="a", tolerance=1.0), a=[0.5])) is None


NEAR_ONE = level(expected=1, tolerance=0.5)


@pytest.mark.parametrize(
    ("test", "values", "side", "p"),
    [
        (level(side="greater", threshold=0.0), [3, 2, 1, 4, -9, 5], 5, stats.binomtest(5, 6).pvalue),
        (level(side="greater", threshold=1.0), [0.1, 0.2, 0.3, 1.5], 3, stats.binomtest(1, 4).pvalue),
        (NEAR_ONE, [0.9, 1.1, 1, 1.6, 1.2], 4, stats.binomtest(1, 5).pvalue),
        (NEAR_ONE, [2, 2.1, 2.2, 1.1, 2], 4, stats.binomtest(1, 5).pvalue),
        (NEAR_ONE, [0.5, 0.9, 1, 1.1, 1.2], 4, stats.binomtest(4, 4).pvalue),  # one on the edge is on no side
        # shares of seeds are held against their edge and not against a half: none of twenty, where one in five would be
        (level(side="less", threshold=0.2), [0] * 20, 20, 2 * 0.8**20),
        (level(side="greater", threshold=0.8), [1] * 7 + [0] * 13, 13, 2 * stats.binom.cdf(7, 20, 0.8)),
    ],
)  # fmt: skip
def test_the_sign_test_counts_seeds_beyond_the_edge(test, values, side, p):
    assert sign_test(outcome(test, a=values)) == (side, pytest.approx(p))


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


def test_one_part_may_decide_a_claim_and_one_that_was_not_measured_asks_for_no_seeds():
    above = outcome(POSITIVE, a=[-0.6, 0.2, 1.4, 0.1, 0.9])
    below = outcome(POSITIVE, a=[0.6, -0.9, -1.4, -0.1, 0.3])
    slow = outcome(POSITIVE, a=[2.6, -2.9, -3.4, 1.9, 0.3])
    nothing = Outcome(POSITIVE)
    assert seeds_needed(above) < seeds_needed(below) < seeds_needed(slow) < seeds_needed(nothing) == math.inf
    for parts, combine, quickest in (
        ([above, below], "all", below),  # which fails, and so refutes all
        ([above, below], "any", above),
        ([above, above], "all", above),
        ([slow, below], "all", below),
        ([above, nothing], "all", above),
    ):
        assert seeds_for_claim(parts, combine) == seeds_needed(quickest)
    assert seeds_for_claim([nothing]) == 0
    assert [deciding_words(n) for n in (22, 123, 859, math.inf)] == [
        "about 22 seeds would decide it",
        "about 130 seeds would decide it",
        "seeds will not decide it: it would take about 860",
        "seeds will not decide it",
    ]
