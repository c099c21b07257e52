"""Verdicts: made-up results whose rows stand in a golden file, and what does not fit."""

from __future__ import annotations

from itertools import product

import golden_claims
import numpy as np
import pytest
from scipy import stats

from bnbook.errors import BnbookError
from bookpress.claims import Claim, Source, Test, judge
from bookpress.claims.kinds import combine
from bookpress.results import Results

CASES = golden_claims.cases()


@pytest.mark.parametrize("case", CASES, ids=range(1, len(CASES) + 1))
def test_a_claim_comes_to_what_its_golden_line_says(case):
    """Every kind of test at each verdict, on edges, diverged, with one seed, as parts, sizes, statements, corrected and
    under conditions: verdict, effect and interval as numbers and in words, p-values, other margins, and the table."""
    *given, row, table = case
    came_to, shown = golden_claims.came_to(*given)
    found, golden = flat(came_to), flat(row)
    near = {
        key: pytest.approx(each, rel=1e-5) if isinstance(each, float) else each
        for key, each in golden.items()
    }
    assert {key: (each, golden.get(key)) for key, each in found.items() if near.get(key) != each} == {}
    assert found.keys() == golden.keys() and shown == table


def flat(value, name=""):
    """Nested keys as one level, for `approx` looks at numbers of one level alone."""
    if isinstance(value, (dict, list)):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        return {key: each for part, held in inner for key, each in flat(held, f"{name}.{part}").items()}
    return {name: value}


def claim(test=None, **more):
    return Claim(
        "c", "part/chapter", Source("santurkar2018", "v1", "Figure 1"), "It is so.", "curves", test, **more
    )


def judged(test, **results):
    return judge(claim(test), {n: np.asarray(values, dtype=float) for n, values in results.items()}, "laptop")


def ends(row):
    return row["interval"]["low"], row["interval"]["high"]


DIFFERENCE = Test("difference", a="a", b="b", side="greater", threshold=0.0)
SAME = Test("equivalence", a="a", b="b", margin=0.1)
BOUND = Test("inequality", a="a", b="b")


@pytest.mark.parametrize(
    "test,results,words",
    [
        (DIFFERENCE, dict(a=[1, 2, 3], b=[1, 2]), "different seeds"),
        (DIFFERENCE, dict(a=[[1, 2], [3, 4]], b=[1, 2]), "shape (2, 2)"),
        (DIFFERENCE, dict(a=5.0, b=[1, 2]), "no seed axis"),
        (DIFFERENCE, dict(b=[1, 2]), "result a is missing"),
        (Test("ratio", a="a", b="b", side="greater", threshold=2.0), dict(a=[-1, 2], b=[1, 2]), "negative"),
        (Test("agreement", a="a", b="b", tolerance=0.1), dict(a=[1, 2], b=[0, 0]), "theory is zero"),
        (BOUND, dict(a=[3, 2], b=[1, 1]), "5 violations in 2 trials; expected a count"),
        (BOUND, dict(a=[3, 2], b=[np.inf, 1]), "5 violations in inf trials"),
        (BOUND, dict(a=[3, np.nan], b=[9, 9]), "nan violations in 18 trials"),
        (BOUND, dict(a=[-1.0], b=[4]), "-1 violations in 4 trials"),
        (BOUND, dict(a=[0.0], b=[0]), "0 violations in 0 trials"),
        (
            Test("level", a="a", side="greater", threshold=0.5, events=True),
            dict(a=[1, 1, 0.99]),
            "a is no event",
        ),
    ],
)
def test_results_that_do_not_fit_are_one_line(test, results, words):
    with pytest.raises(BnbookError) as caught:
        judged(test, **results)
    assert words in str(caught.value) and str(caught.value).startswith("claim c: ")


@pytest.mark.parametrize(
    "test",
    [
        DIFFERENCE,
        BOUND,
        Test("identity", a="a", tolerance=0.0),
        Test("level", results=("a", "b"), side="less", threshold=1.0),
    ],
)
@pytest.mark.parametrize("recorded", [(), ("b",), ("a",)])
def test_a_result_that_a_run_ended_before_it_recorded_is_one_line(test, recorded):
    """A chapter that fails in the middle is judged, too, and what it has recorded is kept."""
    entry = {"values": [1.0, 2.0], "unit": "", "seeds": [0, 1], "note": ""}
    if missing := sorted({*test.result_names()} - {*recorded}):
        with pytest.raises(
            BnbookError, match=f"claim c: result {missing[0]} is missing; expected the chapter to record"
        ):
            judge(claim(test), Results({}, dict.fromkeys(recorded, entry)))
    else:
        assert judge(claim(test), Results({}, dict.fromkeys(recorded, entry)))["n"] == 2


def test_recorded_seeds_must_be_the_same():
    def results(seeds):
        entry = {"values": [1.0, 2.0], "unit": "nats", "seeds": [0, 1], "note": ""}
        return Results({}, {"a": entry, "b": entry | {"seeds": seeds}})

    assert judge(claim(SAME), results([0, 1]))["effect"]["unit"] == "nats"
    with pytest.raises(BnbookError, match="different seeds"):
        judge(claim(SAME), results([0, 2]))


@pytest.mark.parametrize("how", ["all", "any"])
def test_parts_are_combined_as_three_valued_logic_says(how):
    """Unknown is a value between false and true, and "and" is the least, "or" the greatest."""
    rank = {False: 0, None: 1, True: 2}
    for held in product(rank, repeat=3):
        expected = (min if how == "all" else max)(held, key=rank.get)
        assert combine(held, how) is expected


NEAR = dict(expected=1.0, tolerance=0.1)
JUST_OUT = 1.1 + np.array([0.2, 0.7, 1.2, 1.0, 0.4]) * 0.1


def test_the_worst_of_many_cells_is_refuted_by_a_simultaneous_interval_and_holds_by_its_own():
    alone = judged(Test("level", a="worst", **NEAR), worst=JUST_OUT)
    among = judged(Test("level", a="worst", cells=12, **NEAR), worst=JUST_OUT)
    assert (alone["verdict"], among["verdict"]) == ("not reproduced", "open")
    expected = stats.t.interval(1 - 0.05 / 12, 4, loc=JUST_OUT.mean(), scale=stats.sem(JUST_OUT))
    assert (
        ends(among) == pytest.approx(expected, 1e-5) and "“not reproduced” by plain inter" in among["words"]
    )
    named, rest = Test("level", results=("a", "b", "c"), **NEAR), dict(b=[1.0] * 5, c=[1.0] * 5)
    low = [ends(judged(Test(**vars(named) | {"cells": n}), a=JUST_OUT, **rest))[0] for n in (None, 2, 12)]
    assert low[0] == low[1] > low[2], "never fewer than those that are counted"
    good = dict(a=[1.0, 1.01, 0.99], b=[1.05, 1.02, 1.04], c=[1.0, 1.0, 1.02])
    found, half = judged(named, **good), stats.t.ppf(0.975, 2) * stats.sem(good["b"])
    assert found["verdict"] == "reproduced"
    assert ends(found) == pytest.approx((np.mean(good["b"]) - half, np.mean(good["b"]) + half), 1e-5)


def test_the_width_of_the_grid_is_added_a_hair_short_of_its_ends():
    found = judged(Test("level", a="a", expected=0.0, tolerance=0.02, resolution=0.003), a=[-0.003] * 3)
    assert ends(found) == pytest.approx((-0.006, 0), abs=1e-9) and found["verdict"] == "reproduced"
    rates = dict(a=[1.0] * 3, b=[0.25] * 3)
    coarse = judged(Test("ratio", a="a", b="b", side="greater", threshold=1.0, resolution=4), **rates)
    assert ends(coarse) == pytest.approx((1, 16)) and coarse["verdict"] == "reproduced"


def test_an_interval_wider_than_numbers_reach_is_none():
    results = {"a": np.array([1e-300, 1.0, 1e300]), "b": np.ones(3)}
    found = judge(claim(Test("ratio", a="a", b="b", side="greater", threshold=1.0)), results)
    assert found["verdict"] == "open" and found["interval"] is None
