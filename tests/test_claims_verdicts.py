"""Verdicts: every kind of test with data for each outcome, and data that a wrong test judges otherwise."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from bnbook.errors import BnbookError
from bookpress.claims import (
    Claim,
    Part,
    Source,
    Test,
    format_effect,
    format_number,
    judge,
    markdown_table,
    verdict_rows,
)
from bookpress.claims.judging import combine
from bookpress.results import Results

YES, NO, OPEN3 = "reproduced", "not reproduced", "open"


def claim(test=None, **more):
    source = Source("santurkar2018", "v1", "Figure 1")
    return Claim("c", "part/chapter", source, "It is so.", "curves", test, **more)


def verdict(test, results, profile="laptop", **more):
    arrays = {name: np.asarray(values, dtype=float) for name, values in results.items()}
    return judge(claim(test, **more), arrays, profile).verdict


DIFFERENCE = Test("difference", a="a", b="b", side="greater", threshold=0.0)
LESS = Test("difference", a="a", b="b", side="less", threshold=-1.0)
RATIO = Test("ratio", a="a", b="b", side="greater", threshold=2.0)
SAME = Test("equivalence", a="a", b="b", margin=0.1)
ORDER = Test("ordering", results=("a", "b", "c"))
IDENTITY = Test("identity", a="a", tolerance=1e-10)
BOUND = Test("inequality", a="a", b="b")
SLOPE = Test("rate", a="a", expected=1.5, tolerance=0.1)
STEEP = Test("rate", a="a", side="greater", threshold=1.0)
AGREE = Test("agreement", a="a", b="b", tolerance=0.1)
LEVEL = Test("level", a="a", side="greater", threshold=0.8)
NEAR = Test("level", a="a", expected=0.0, tolerance=0.01)

CASES = [
    (DIFFERENCE, dict(a=[2.0, 2.1, 1.9], b=[1.0, 1.0, 1.0]), YES),
    (DIFFERENCE, dict(a=[1.0, 1.0, 1.0], b=[2.0, 2.1, 1.9]), NO),
    (DIFFERENCE, dict(a=[1.0, 2.0, 3.0], b=[1.1, 1.0, 3.2]), OPEN3),
    (DIFFERENCE, dict(a=[1.5, 1.5, 1.5], b=[1.5, 1.5, 1.5]), NO),
    (LESS, dict(a=[0.0, 0.1, 0.0], b=[2.0, 2.0, 2.0]), YES),
    (LESS, dict(a=[1.5, 1.6, 1.5], b=[2.0, 2.0, 2.0]), NO),
    (LESS, dict(a=[1.0, 1.1, 0.9], b=[2.0, 2.0, 2.0]), OPEN3),
    (RATIO, dict(a=[6.0, 60.0, 0.6], b=[2.0, 19.0, 0.21]), YES),
    (RATIO, dict(a=[2.0, 20.0, 0.2], b=[2.0, 19.0, 0.21]), NO),
    (RATIO, dict(a=[2.0, 6.0, 4.0], b=[1.0, 2.0, 3.0]), OPEN3),
    (SAME, dict(a=[1.00, 2.01, 2.99], b=[1.0, 2.0, 3.0]), YES),
    (SAME, dict(a=[1.5, 2.5, 3.51], b=[1.0, 2.0, 3.0]), NO),
    (SAME, dict(a=[1.1, 2.0, 3.2], b=[1.0, 2.0, 3.0]), OPEN3),
    (ORDER, dict(a=[1.0, 1.1, 1.2], b=[2.0, 2.1, 2.3], c=[3.0, 3.2, 3.3]), YES),
    (ORDER, dict(a=[1.0, 1.1, 1.2], b=[3.0, 3.1, 3.3], c=[2.0, 2.2, 2.2]), NO),
    (ORDER, dict(a=[1.0, 1.1, 1.2], b=[2.0, 2.1, 2.3], c=[2.1, 2.0, 2.5]), OPEN3),
    (IDENTITY, dict(a=[[1e-12, -9e-11], [0, 0], [0, 0]]), YES),
    (IDENTITY, dict(a=[[1e-12, -2e-10], [0, 0], [0, 0]]), NO),
    (IDENTITY, dict(a=[1e-12, math.nan, 0]), NO),
    (BOUND, dict(a=[0, 0, 0], b=[400, 400, 400]), YES),
    (BOUND, dict(a=[0, 1, 0], b=[400, 400, 400]), NO),
    (SLOPE, dict(a=[1.5, 1.49, 1.52]), YES),
    (SLOPE, dict(a=[1.0, 1.02, 0.99]), NO),
    (SLOPE, dict(a=[1.2, 1.8, 1.5]), OPEN3),
    (STEEP, dict(a=[1.5, 1.49, 1.52]), YES),
    (STEEP, dict(a=[0.5, 0.49, 0.52]), NO),
    (STEEP, dict(a=[0.5, 1.9, 1.0]), OPEN3),
    (AGREE, dict(a=[1.05, 1.04, 1.06], b=[1.0, 1.0, 1.0]), YES),
    (AGREE, dict(a=[1.25, 1.24, 1.26], b=[1.0, 1.0, 1.0]), NO),
    (AGREE, dict(a=[1.0, 1.1, 1.2], b=[1.0, 1.0, 1.0]), OPEN3),
    (AGREE, dict(a=[1.0, 1.0, 1.0], b=[1.0, 1.0, 1.0]), YES),
    (AGREE, dict(a=[1.05, 1.04, 1.06], b=[1.0]), YES),
    (LEVEL, dict(a=[0.9, 0.91, 0.92]), YES),
    (LEVEL, dict(a=[0.7, 0.71, 0.72]), NO),
    (LEVEL, dict(a=[0.7, 0.81, 0.92]), OPEN3),
    (NEAR, dict(a=[0.001, -0.001, 0.0]), YES),
    (NEAR, dict(a=[0.031, 0.030, 0.029]), NO),
    (NEAR, dict(a=[0.02, -0.02, 0.0]), OPEN3),
]


@pytest.mark.parametrize("test,results,expected", CASES)
def test_each_kind_reaches_each_verdict(test, results, expected):
    assert verdict(test, results) == expected


# Data on which a wrong test decides otherwise: each fails if its mutation is made.


@pytest.mark.parametrize("test", [DIFFERENCE, Test("ratio", a="a", b="b", side="greater", threshold=1.0)])
def test_arms_are_paired(test):
    # A large spread that both arms share: paired the gain is sure, unpaired it drowns.
    shared = np.array([1.0, 5.0, 25.0])
    gained = shared + 1 if test is DIFFERENCE else shared * 1.1
    assert verdict(test, dict(a=gained, b=shared)) == YES
    assert verdict(test, dict(a=gained, b=shared[::-1])) == OPEN3


def test_shares_of_seeds_are_not_judged_by_student():
    started, failed = np.ones(3), np.zeros(3)
    assert verdict(DIFFERENCE, dict(a=started, b=failed)) == OPEN3  # t would be sure of it from three seeds
    assert verdict(DIFFERENCE, dict(a=np.ones(20), b=np.zeros(20))) == YES
    assert verdict(Test("level", a="a", side="greater", threshold=0.9), dict(a=np.ones(20))) == "open"


@pytest.mark.parametrize(
    "test", [DIFFERENCE, RATIO, SAME, AGREE, LEVEL, STEEP, Test("ordering", results=("a", "b"))]
)
def test_one_seed_decides_nothing(test):
    assert verdict(test, dict(a=[5.0], b=[1.0])) == "open"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("test", [DIFFERENCE, RATIO, SAME, AGREE, LEVEL, STEEP, ORDER])
def test_a_diverged_seed_does_not_vanish(test, value):
    arm = [9.0, 9.1, 9.2, value]
    results = {"a": np.array(arm), "b": np.array([1, 1.1, 1, 1.2]), "c": np.array([1.0, 2, 3, 5])}
    found = judge(claim(test), results)
    assert found.verdict == "open" and found.detail == "1 of 4 seeds have no finite value"


STATED = [
    (IDENTITY, None, "", [0.0], "holds"),
    (IDENTITY, None, "", [1.0], "wrong"),
    (IDENTITY, None, "m > 1", [0.0], "holds if …"),
    (IDENTITY, "fixed", "", [0.0], "holds"),
    (IDENTITY, "fixed", "", [1.0], "wrong as printed, corrected"),
    (IDENTITY, "fixed", "m > 1", [1.0], "holds if …"),
    (IDENTITY, "fixed", "m > 1", [0.0], "holds"),
    (IDENTITY, "broken", "m > 1", [1.0], "wrong"),
    (LEVEL, None, "", [0.1, 0.9, 0.8], OPEN3),
]


@pytest.mark.parametrize("test,corrected,condition,values,expected", STATED)
def test_statements_hold_or_are_wrong(test, corrected, condition, values, expected):
    correction = Test("identity", a=corrected, tolerance=1e-10) if corrected else None
    results = dict(a=values, fixed=[0.0], broken=[1.0])
    found = verdict(test, results, statement=True, corrected=correction, condition=condition)
    assert found == expected


def test_a_wrong_statement_says_where_its_correction_is_open():
    wrong = claim(IDENTITY, statement=True, corrected=Test("level", a="b", side="less", threshold=0.5))
    results = dict(a=np.ones(3), b=np.array([0.1, 0.9, 0.8]))
    assert judge(wrong, results).words == "wrong (its correction is open)"
    assert judge(wrong, results | dict(b=np.array([0.9, 0.91, 0.92]))).words == "wrong"


PART_CASES = [  # outcomes, the word where all have to hold, the word where any has to
    ([YES, YES], YES, YES),
    ([NO, NO], NO, NO),
    ([OPEN3, OPEN3], OPEN3, OPEN3),
    ([YES, NO], "mixed", YES),
    ([YES, NO, OPEN3], "mixed", YES),
    ([YES, OPEN3], OPEN3, YES),
    ([NO, OPEN3], "partly refuted, rest open", OPEN3),
    ([OPEN3, NO, NO], "partly refuted, rest open", OPEN3),
]
VALUES = {YES: [0.9, 0.91, 0.92], NO: [0.1, 0.11, 0.12], OPEN3: [0.5, 0.9, 0.8]}


def judged_parts(outcomes, **more):
    parts = tuple(
        Part(f"part {k}", Test("level", a=f"r{k}", side="greater", threshold=0.8))
        for k in range(len(outcomes))
    )
    results = {f"r{k}": np.array(VALUES[outcome]) for k, outcome in enumerate(outcomes)}
    return judge(claim(parts=parts, **more), results)


@pytest.mark.parametrize("outcomes,every,some", PART_CASES)
def test_parts(outcomes, every, some):
    found = judged_parts(outcomes)
    assert found.verdict == every and judged_parts(outcomes, combine="any").verdict == some
    assert [word for _, word, _ in found.parts] == outcomes
    if NO in outcomes:
        assert found.effect == pytest.approx(0.11)  # the part that fails is shown
    if YES in outcomes:
        assert judged_parts(outcomes, combine="any").effect == pytest.approx(0.91)


@pytest.mark.parametrize("how", ["all", "any"])
def test_parts_are_combined_as_three_valued_logic_says(how):
    """Unknown is a value between false and true, and "and" is the least, "or" the greatest."""
    rank = {False: 0, None: 1, True: 2}
    for held in product(rank, repeat=3):
        expected = (min if how == "all" else max)(held, key=rank.get)
        assert combine(held, how) is expected


def test_the_books_own_questions_are_answered():
    answers = {YES: "yes", NO: "no", OPEN3: "open"}
    for outcome, answer in answers.items():
        assert judged_parts([outcome, YES], asks=True).verdict == answer
        assert judged_parts([outcome, YES], asks=True, statement=True).verdict == answer
    statement = [
        judged_parts(parts, statement=True).verdict for parts in ([YES, NO], [NO, OPEN3], [YES, OPEN3])
    ]
    assert statement == ["wrong", "wrong", "open"]


def test_a_condition_and_what_would_decide_are_said():
    found = judge(claim(IDENTITY, statement=True, condition="m > 1"), {"a": np.zeros(3)})
    assert (found.verdict, found.words) == ("holds if …", "holds if m > 1")
    found = judged_parts([OPEN3, YES], decided_by="it drifts")
    assert found.verdict == "open" and found.words.endswith("; it drifts)")
    assert judged_parts([YES, YES], decided_by="it drifts").words == "reproduced"


@pytest.mark.parametrize(
    "test,results,words",
    [
        (DIFFERENCE, dict(a=[1, 2, 3], b=[1, 2]), "different seeds"),
        (DIFFERENCE, dict(a=[[1, 2], [3, 4]], b=[1, 2]), "shape (2, 2)"),
        (DIFFERENCE, dict(a=5.0, b=[1, 2]), "no seed axis"),
        (RATIO, dict(a=[-1, 2], b=[1, 2]), "negative"),
        (AGREE, dict(a=[1, 2], b=[0, 0]), "theory is zero"),
        (BOUND, dict(a=[3, 2], b=[1, 1]), "5 violations in 2 trials"),
        (BOUND, dict(a=[3, 2], b=[np.inf, 1]), "5 violations in inf trials"),
        (BOUND, dict(a=[3, np.nan], b=[9, 9]), "nan violations in 18 trials"),
    ],
)
def test_results_that_do_not_fit_are_one_line(test, results, words):
    with pytest.raises(BnbookError) as caught:
        verdict(test, results)
    assert words in str(caught.value) and str(caught.value).startswith("claim c: ")


def test_recorded_seeds_must_be_the_same():
    def results(seeds):
        entry = {"values": [1.0, 2.0], "unit": "nats", "seeds": [0, 1], "note": ""}
        return Results({}, {"a": entry, "b": entry | {"seeds": seeds}})

    assert judge(claim(SAME), results([0, 1])).unit == "nats"
    with pytest.raises(BnbookError, match="different seeds"):
        judge(claim(SAME), results([0, 2]))


def test_numbers_in_words():
    assert format_number(1.234e-15) == "1.23·10⁻¹⁵" and format_number(1e-10) == "10⁻¹⁰"
    assert format_number(-0.5) == "−0.5" and format_number(0.831, ".1%") == "83.1 %"
    assert format_number(math.inf) == "∞"


def test_effects_in_words():
    results = {"a": np.array([2.0, 2.1, 1.9]), "b": np.ones(3)}
    assert format_effect(judge(claim(DIFFERENCE), results), ".2f") == "1.00 (95 % interval 0.75 to 1.25)"
    assert format_effect(judge(claim(IDENTITY), {"a": np.zeros((2, 5))})) == "exact"
    assert format_effect(judge(claim(DIFFERENCE), {}, "smoke")) == "–"


def test_the_table_has_a_row_for_every_claim_part_and_correction():
    parts = (Part("first", LEVEL), Part("second", Test("level", a="b", side="less", threshold=0.0)))
    correction = Test("identity", a="fixed", tolerance=1e-10)
    claims = [
        claim(DIFFERENCE),
        claim(parts=parts),
        claim(IDENTITY, statement=True, corrected=correction, correction="with | for the norm"),
        claim(IDENTITY, statement=True, corrected=correction, condition="m > 1"),
        claim(Test("identity", a="fixed", tolerance=0.0), statement=True, corrected=correction,
         condition="never"),
        Claim("other", "part/another", Source("k", "v", "w"), "Not here.", "f", LEVEL),
    ]  # fmt: skip
    results = {"a": np.array([0.9, 0.91, 0.92]), "b": np.array([0.1, 0.11, 0.12]), "fixed": np.zeros(3)}
    rows = verdict_rows("part/chapter", results, "laptop", claims=claims)
    assert [row.verdict for row in rows] == [
        YES,
        "mixed",
        "wrong as printed, corrected",
        "holds if …",
        "holds",
    ]
    lines = markdown_table(rows).split("\n")
    assert len(lines) == 2 + 1 + 3 + 2 + 2 + 1
    assert {line.replace("\\|", "").count("|") for line in lines} == {4}
    assert "Not here." not in "\n".join(lines)
    head = "It is so.<br><small>Figure 1; must hold: higher</small>"
    assert lines[2] == f"| {head} | 0.8 higher | **reproduced**<br><small>laptop · n = 3</small> |"
    assert "95 % interval 0.885 to 0.935</small>" in lines[4]
    assert lines[4].startswith("| – first<br>") and lines[4].endswith(f"| {YES} |")
    assert lines[7].startswith("| – with \\| for the norm<br>") and "10⁻¹⁰" in lines[7]
    assert "| **holds if m > 1**" in lines[8] and lines[9].startswith("| – under the condition<br>")
    assert "| **holds**<br>" in lines[10]


def test_a_ratio_whose_interval_is_wider_than_numbers_reach_is_undecided():
    results = {"a": np.array([1e-300, 1.0, 1e300]), "b": np.ones(3)}
    found = judge(claim(Test("ratio", a="a", b="b", side="greater", threshold=1.0)), results)
    assert found.verdict == OPEN3 and found.interval == (-math.inf, math.inf)


def test_what_all_parts_share_is_said_once():
    parts = tuple(Part(name, Test("level", a=name, side="greater", threshold=0.0)) for name in ("a", "b"))
    claim = Claim("two", "part/chapter", Source("k", "v", "w"), "Both are.", "f", None, parts=parts)
    results = {"a": np.array([0.9, 0.91, 0.92]), "b": np.array([0.1, 0.11, 0.12])}
    lines = markdown_table(verdict_rows("part/chapter", results, "laptop", claims=[claim])).split("\n")
    assert (
        lines[2] == "| Both are.<br><small>w; each must hold: mean > 0; 95 % intervals</small>"
        " |  | **reproduced**<br><small>laptop · n = 3</small> |"
    )
    assert lines[3] == f"| – a | 0.910 <small>(0.885\u00a0to\u00a00.935)</small> | {YES} |"
