"""Intervals that are wider than the seeds make them: the worst of many cells, the width of a grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bnbook.errors import BnbookError
from bookpress.claims import Claim, Source, Test, judge


def judged(test, **results):
    claim = Claim("c", "part/chapter", Source("k", "v", "w"), "It is so.", "f", test)
    return judge(claim, {name: np.asarray(values, dtype=float) for name, values in results.items()}, "laptop")


NEAR = dict(expected=1.0, tolerance=0.1)
JUST_OUT = 1.1 + np.array([0.2, 0.7, 1.2, 1.0, 0.4]) * 0.1


def test_the_worst_of_many_cells_is_refuted_by_a_simultaneous_interval():
    alone = judged(Test("level", a="worst", **NEAR), worst=JUST_OUT)
    among = judged(Test("level", a="worst", cells=12, **NEAR), worst=JUST_OUT)
    assert (alone.verdict, among.verdict) == ("not reproduced", "open")
    expected = stats.t.interval(1 - 0.05 / 12, 4, loc=JUST_OUT.mean(), scale=stats.sem(JUST_OUT))
    assert among.interval == pytest.approx(expected) and "“not reproduced” by plain intervals" in among.words


def test_cells_that_are_named_are_never_fewer_than_those_that_are_counted():
    test = Test("level", results=("a", "b", "c"), **NEAR)
    worst = dict(a=JUST_OUT, b=[1.0] * 5, c=[1.0] * 5)
    assert judged(replace(test, cells=2), **worst).interval == judged(test, **worst).interval
    assert judged(replace(test, cells=12), **worst).interval[0] < judged(test, **worst).interval[0]


def test_cells_by_name_hold_each_by_its_own_interval():
    test = Test("level", results=("a", "b", "c"), **NEAR)
    good = dict(a=[1.0, 1.01, 0.99], b=[1.05, 1.02, 1.04], c=[1.0, 1.0, 1.02])
    found = judged(test, **good)
    assert (found.verdict, found.detail) == ("reproduced", "decided by b")
    half = stats.t.ppf(0.975, 2) * stats.sem(good["b"])
    assert found.interval == pytest.approx((np.mean(good["b"]) - half, np.mean(good["b"]) + half))
    assert judged(test, **good | dict(c=[0.7, 1.5, 1.0])).verdict == "open"
    bad = judged(test, **good | dict(c=[1.5, 1.52, 1.51]))
    assert (bad.verdict, bad.detail) == ("not reproduced", "decided by c")


def test_the_width_of_the_grid_is_added():
    bracket = Test("level", a="a", expected=0.0, tolerance=0.02, resolution=0.003)
    found = judged(bracket, a=[-0.003] * 3)
    assert found.interval == pytest.approx((-0.006, 0), abs=1e-9) and found.verdict == "reproduced"
    assert judged(Test("level", a="a", side="less", threshold=0.1, resolution=0.05), a=[0.08] * 3).words == (
        "open (seeds will not decide it; “reproduced” by plain intervals)"
    )
    rates = dict(a=[1.0, 1.0, 1.0], b=[0.25, 0.25, 0.25])
    coarse = judged(Test("ratio", a="a", b="b", side="greater", threshold=1.0, resolution=4), **rates)
    assert coarse.interval == pytest.approx((1, 16)) and coarse.verdict == "reproduced"
    finer = Test("ratio", a="a", b="b", side="greater", threshold=1.5, resolution=4)
    assert judged(finer, **rates).verdict == "open"


def test_what_only_widens_is_no_part_of_the_hash_but_shows():
    plain = Test("level", a="a", side="less", threshold=0.1)
    hashes = {
        judged(test, a=[0.08] * 3).claim.test_hash
        for test in (plain, Test("level", a="a", side="less", threshold=0.1, resolution=0.05))
    }
    assert len(hashes) == 1 and judged(plain, a=[0.08] * 3).words == "reproduced"


def test_an_event_is_0_or_1():
    test = Test("level", a="a", side="greater", threshold=0.5, events=True)
    assert judged(test, a=np.ones(20)).verdict == "reproduced"
    with pytest.raises(BnbookError, match="a is no event; expected 0 or 1"):
        judged(test, a=[1, 1, 0.99])


def test_the_ends_of_a_bracket_do_not_belong_to_it():
    """Seeds that all give 0.05 on a grid of 0.05 lie below 0.1: the end that fails is not reached."""
    test = Test("level", a="a", side="less", threshold=0.1, resolution=0.05)
    assert judged(test, a=[0.05] * 3).verdict == "reproduced"


def test_a_refuted_ordering_shows_the_step_that_refutes_it():
    """From a to b it goes down by 1, from b to c by 2: the step with the lowest upper end is shown."""
    wide = np.array([-1.0, 0.0, 1.0]) * 0.1
    falling = dict(a=[3.0, 3.0, 3.0], b=2 + 0 * wide, c=-0.2 + 10 * wide)
    found = judged(Test("ordering", results=("a", "b", "c")), **falling)
    assert (found.verdict, found.detail) == ("not reproduced", "decided by a to b")
