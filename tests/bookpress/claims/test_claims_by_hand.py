"""Edges of the tests that decide verdicts: intervals that touch a threshold, numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bnbook.errors import BnbookError
from bookpress import intervals
from bookpress.claims.claim import Claim, Source, Test
from bookpress.claims.judging import judge
from bookpress.claims.kinds import evaluate
from bookpress.claims.ledger import effect_and_interval
from bookpress.claims.recorded import Recorded

T2 = 4.302652729696142  # Student's t at 97.5 % and 2 degrees of freedom
SPREAD = np.array([-1.0, 0.0, 1.0])  # deviation 1: the interval of three seeds is mean ± t/√3


def outcome(test: Test, **results):
    return evaluate(test, {name: np.asarray(values, dtype=float) for name, values in results.items()}, "c")


def holds(test: Test, **results):
    return outcome(test, **results).holds


@pytest.mark.parametrize("share, expected", [(0.9, None), (0.999, None), (1.001, True), (1.5, True)])
def test_equivalence_takes_the_interval_that_is_shown(share, expected):
    """The margin is a share of t/√3: the 90 % interval would pass from 0.68 of it on."""
    half = T2 / math.sqrt(3)
    test = Test("equivalence", a="a", b="b", margin=share * half)
    found = outcome(test, a=SPREAD, b=np.zeros(3))
    assert found.holds is expected and found.interval == pytest.approx((-half, half))
    for sign in (1, -1):  # and it fails only where the whole interval lies outside
        moved = {"a": sign * (2.0 * half + SPREAD), "b": np.zeros(3)}
        assert holds(Test("equivalence", a="a", b="b", margin=0.99 * half), **moved) is False
        assert holds(Test("equivalence", a="a", b="b", margin=1.01 * half), **moved) is None


@pytest.mark.parametrize(
    "ahead, of, holds, low, high",
    [
        (14, 20, None, 45.7, 88.1), (15, 20, True, 50.9, 91.3), (5, 20, False, 8.66, 49.1),
        (5, 5, None, 47.8, 100),
    ],
)  # fmt: skip
def test_more_than_half_of_the_seeds_is_a_share_whatever_their_size(ahead, of, holds, low, high):
    """The exact intervals of Clopper and Pearson (1934), from their tables."""
    rng = np.random.default_rng(0)
    b = 10 ** rng.uniform(-9, 9, of)
    a = b * np.where(np.arange(of) < ahead, 10 ** rng.uniform(0.1, 9, of), 10 ** rng.uniform(-9, -0.1, of))
    found = outcome(
        Test("sign", a="loss.none", b="loss.batch", side="greater"), **{"loss.none": a, "loss.batch": b}
    )
    assert found.holds is holds and found.effect == ahead / of
    assert [100 * edge for edge in found.interval] == pytest.approx([low, high], abs=0.06)
    words, _ = effect_and_interval(found)
    assert words == f"larger without batch norm in {ahead} of {of} seeds"
    other = outcome(
        Test("sign", a="loss.batch", b="loss.none", side="less"), **{"loss.none": a, "loss.batch": b}
    )
    assert other.holds is holds and other.interval == found.interval
    assert effect_and_interval(other)[0] == words


def test_a_point_on_the_edge():
    """Equal seeds make a point: beyond means beyond, within means up to and including."""
    three, zero = [3.0] * 3, [0.0] * 3
    for kind, more in (("difference", {"b": "b"}), ("level", {}), ("rate", {})):
        data = {"a": three} | ({"b": zero} if more else {})
        for side, below, above in (("greater", True, False), ("less", False, True)):
            found = [
                holds(Test(kind, a="a", side=side, threshold=t, **more), **data) for t in (2.9, 3.0, 3.1)
            ]
            assert found == [below, False, above]
    for expected, tolerance, inside in (
        (2.0, 1.0, True), (4.0, 1.0, True), (2.0, 0.9, False), (4.0, 0.9, False),
    ):  # fmt: skip
        assert holds(Test("level", a="a", expected=expected, tolerance=tolerance), a=three) is inside
    for margin, inside in ((3.0, True), (2.9, False)):
        assert holds(Test("equivalence", a="a", b="b", margin=margin), a=three, b=zero) is inside
        assert holds(Test("equivalence", a="b", b="a", margin=margin), a=three, b=zero) is inside
    for tolerance, inside in ((0.5, True), (0.4, False)):
        assert holds(Test("agreement", a="a", b=2.0, tolerance=tolerance), a=three) is inside
        assert holds(Test("identity", a="a", tolerance=3.0 - 0.5 + tolerance), a=three) is inside
    assert holds(Test("ratio", a="a", b="b", side="greater", threshold=1.0), a=three, b=three) is False


def test_a_ratio_by_hand():
    """Quotients 2, 4, 8: geometric mean 4, interval 4 · 2^(± t/√3)."""
    test = Test("ratio", a="a", b="b", side="greater", threshold=0.5)
    found = outcome(test, a=[2.0, 4.0, 24.0], b=[1.0, 1.0, 3.0])
    half = T2 / math.sqrt(3)
    assert found.effect == pytest.approx(4) and found.unit == ""
    assert found.interval == pytest.approx((4 * 2**-half, 4 * 2**half)) and found.holds is True
    for arms in (dict(a=[0.0, 1, 1], b=[1.0, 1, 1]), dict(a=[1.0, 1, 1], b=[1.0, 0, 1])):
        found = outcome(test, **arms)
        assert found.holds is None and found.detail.startswith("1 of 3 seeds have a value of zero")


def test_agreement_by_hand():
    """Means 6 and 4: ratio 3/2; a - 1.5 b = (-1, 0, 1) over 4."""
    found = outcome(Test("agreement", a="a", b="b", tolerance=2.0), a=[2.0, 6, 10], b=[2.0, 4, 6])
    half = T2 / math.sqrt(3) / 4
    assert found.effect == pytest.approx(0.5) and found.interval == pytest.approx((0.5 - half, 0.5 + half))
    assert found.values == pytest.approx([0.25, 0.5, 0.75]), "the seeds lie about the ratio of the means"


def test_ordering_shows_the_step_that_decides():
    """Interval of each of two steps at 97.5 %: t = 6.2053 at 2 degrees of freedom."""
    half = 6.205346816570722 / math.sqrt(3)
    test = Test("ordering", results=("a", "b", "c"))
    a = np.zeros(3)
    found = outcome(test, a=a, b=20 + SPREAD, c=30 + SPREAD + SPREAD)  # steps 20 and 10, both of deviation 1
    assert (found.holds, found.effect) == (True, 10) and found.detail == "decided by b to c"
    assert found.interval == pytest.approx((10 - half, 10 + half))
    found = outcome(test, a=a, b=20 + SPREAD, c=SPREAD)  # equal seeds make a step of -20 a point
    assert (found.holds, found.interval) == (False, (-20, -20)) and found.detail == "decided by b to c"
    found = outcome(test, a=a, b=1 + SPREAD, c=30 + SPREAD)
    assert found.holds is None and found.effect == 1 and found.detail == "decided by a to b"
    assert holds(test, a=a + 2, b=a + 2, c=a + 2) is False  # equal is not up


def test_identity_looks_at_everything():
    test = Test("identity", a="a", tolerance=1e-3)
    assert outcome(test, a=[[0.0, -2e-3], [0.0, 0.0]]).effect == 2e-3
    assert (
        outcome(test, a=[[0.0, -1e-3], [0.0, 0.0]]).detail == "4 values"
        and outcome(test, a=[0.0]).detail == ""
    )
    assert outcome(test, a=[0.0, math.inf]).effect == math.inf
    assert outcome(test, a=[[0.0, 0.0], [0.0, 0.0]]).n == 2


def test_inequality_counts():
    for more, trials in (({}, 4), ({"b": 50}, 100), ({"b": "b"}, 70)):
        for allowed, expected in ((None, False), (2, False), (3, True), (4, True)):
            test = Test("inequality", a="a", allowed=allowed, **more)
            found = outcome(test, a=[[3.0, 0.0], [0.0, 0.0]], b=[30.0, 40.0])
            assert found.holds is expected and found.effect == 3 / trials and found.unit == "of trials"
            low, high = intervals.clopper_pearson(3, trials)
            own = {4: 3 / 2, 100: 3 / 50, 70: 3 / 30}[trials]  # of the first seed; the second has none
            half = 12.706205 * own / 2  # t at one degree of freedom, times own / √2 / √2
            assert found.interval == pytest.approx((0, min(1, max(high, own / 2 + half))))
            assert low > 0, "that the seeds differ shows in the interval"
            assert found.detail == f"3 violations in {trials} trials" and found.n == 2
    assert holds(Test("inequality", a="a"), a=[0.0, 0.0]) is True
    assert holds(Test("inequality", a="a", b=4), a=[4.0]) is False  # all of them is a count


def test_one_lost_seed_in_one_arm_is_a_lost_seed():
    test = Test("difference", a="a", b="b", side="greater", threshold=0.0)
    found = outcome(test, a=[1.0, math.nan, 3.0], b=[0.0, 0.0, math.inf])
    assert (found.holds, found.n, found.detail) == (None, 3, "2 of 3 seeds have no finite value")
    assert math.isnan(found.effect) and found.interval == (-math.inf, math.inf)
    filled = Test("difference", a="a", b="b", side="greater", threshold=0.0, nonfinite=7.0)
    assert outcome(filled, a=[1.0, math.nan, 3.0], b=[0.0, 0.0, math.inf]).effect == (1 + 7 - 4) / 3


def test_what_was_recorded():
    results = {
        "a": np.arange(3.0), "column": np.arange(3.0)[:, None], "table": np.ones((3, 2)), "one": np.ones(1),
    }  # fmt: skip
    seen = Recorded(results | {"empty": np.zeros((0,)), "point": np.array(1.0)}, "c")
    assert seen.per_seed("column").tolist() == [0, 1, 2] and seen.array("table").shape == (3, 2)
    with pytest.raises(BnbookError, match="one number per seed"):
        seen.per_seed("table")
    for name in ("empty", "point"):
        with pytest.raises(BnbookError, match="no seed axis"):
            seen.array(name)
    assert seen.paired(["a", 5.0], None).tolist() == [[0, 1, 2], [5, 5, 5]]
    assert seen.paired(["a", "one"], None, broadcast_last=True)[1].tolist() == [1, 1, 1]
    assert seen.paired(["a", "a"], None).shape == (2, 3)
    for names, last in ((["a", "one"], False), (["a", "one", "a"], True), (["one", "a"], True)):
        with pytest.raises(BnbookError, match="paired by seed"):
            seen.paired(names, None, broadcast_last=last)
    lost = Recorded({"a": np.array([1.0, math.nan, -math.inf])}, "c")
    assert lost.paired(["a"], 9.0).tolist() == [[1, 9, 9]] and np.isnan(lost.paired(["a"], None)[0, 1])
    assert seen.unit("a") == ""


def test_intervals_by_hand():
    assert intervals.student(np.array([2.0, 4.0]))[1:] == pytest.approx((3 - 12.7062047, 3 + 12.7062047))
    assert len(set(intervals.student(np.full(3, 0.1)))) == 1  # a point, though the mean is rounded
    assert intervals.student(np.array([5.0])) == (5.0, -math.inf, math.inf)
    low, high = intervals.clopper_pearson(1, 2)
    assert low == pytest.approx(1 - math.sqrt(0.975)) and high == pytest.approx(math.sqrt(0.975))
    assert intervals.clopper_pearson(0, 3) == pytest.approx((0.0, 1 - 0.025 ** (1 / 3)))
    assert intervals.clopper_pearson(3, 3) == pytest.approx((0.025 ** (1 / 3), 1.0))
    assert intervals.clopper_pearson(3, 3, 0.9)[0] == pytest.approx(0.05 ** (1 / 3))
    assert intervals.share(np.array([1.0, 0, 1, 1]))[0] == 0.75
    # 3 against 1 of 4 seeds: p₁₀ = 4/6, p₀₁ = 2/6
    found = intervals.paired_shares(np.array([1, 1, 1, 0]), np.array([0, 0, 0, 1]))
    half = 1.959963985 * math.sqrt((1 - 1 / 9) / 6)
    assert found == pytest.approx((0.5, 1 / 3 - half, min(1.0, 1 / 3 + half)))
    assert intervals.paired_shares(np.ones(2), np.zeros(2))[2] == 1.0  # cut off
    assert intervals.paired_shares(np.zeros(2), np.ones(2))[1] == -1.0
    assert intervals.is_share(np.array([0.0, 1.0])) and not intervals.is_share(
        np.ones(2), np.array([0.45, 1])
    )
    assert intervals.is_share(
        np.array([0.5, 1 / 3, 2 / 3, 0.75])
    )  # events of which two to four draws disagree
    for level in (intervals.mean_level, lambda a: intervals.paired_difference(a, np.zeros(len(a)))):
        assert level(np.ones(1)) == (1.0, -math.inf, math.inf)  # one seed is no share
        assert level(np.array([0.5, 0.7]))[0] == pytest.approx(0.6)
    assert intervals.mean_level(np.ones(2))[1:] == intervals.clopper_pearson(2, 2)
    assert intervals.mean_level(np.ones(2), 0.9)[1:] == intervals.clopper_pearson(2, 2, 0.9)
    mean, half = intervals.mean_and_interval(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, math.nan]]))
    assert mean[0] == 2 and half[0] == pytest.approx(T2 / math.sqrt(3)) and np.isnan(mean[1])
    mean, half = intervals.mean_and_interval(np.array([[4.0]]))
    assert mean[0] == 4 and np.isnan(half[0])


PROFILES = [("smoke", False, False), ("smoke", True, True), ("laptop", False, True)]
PROFILES += [(None, False, True), ("paper", False, False), ("overnight", False, True)]


@pytest.mark.parametrize("profile, exact, evidence", PROFILES)
def test_which_profiles_are_evidence(profile, exact, evidence):
    up = Test("level", a="a", side="greater", threshold=0.0)
    claim = Claim("c", "p/c", Source("k", "v", "w"), "says", "figure", up, evidence=("laptop",))
    found = judge(claim, {"a": np.ones(3) * 2}, profile, exact=exact)
    assert (found.verdict == "reproduced") is evidence and found.profile == profile and found.effect == 2
    words = {False: "not tested at this scale", True: "not tested at this scale (smoke run)"}
    assert found.words == ("reproduced" if evidence else words[profile == "smoke"])
    nothing = lambda: judge(claim, {}, profile, exact=exact)
    if evidence:
        with pytest.raises(BnbookError, match="claim c: result a is missing"):
            nothing()
    else:
        assert nothing().detail == "not measured" and nothing().n == 0 and math.isnan(nothing().effect)


def test_a_seed_in_which_both_are_equal_is_on_no_side():
    test = Test("sign", a="a", b="b", side="greater")
    ones = np.ones(20)
    assert holds(test, a=ones + (np.arange(20) < 16), b=ones) is True
    assert holds(test, a=ones, b=ones) is False
