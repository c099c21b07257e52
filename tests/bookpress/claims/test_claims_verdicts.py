"""Verdicts: made-up results whose rows, or the complaint about them, stand in a golden file."""

from __future__ import annotations

import re
from itertools import product

import golden_claims
import pytest

from bookpress.claims import Claim, empty_row, judge, judging
from bookpress.claims.kinds import combine
from bookpress.schema import valid

CASES = golden_claims.cases()


@pytest.mark.parametrize("case", CASES, ids=range(1, len(CASES) + 1))
def test_a_claim_comes_to_what_its_golden_line_says(case):
    """Every kind of test at each verdict, on edges, diverged, with one seed, as parts, sizes, statements, corrected and
    under conditions: verdict, effect and interval as numbers and in words, p-values, other margins, and the table. Of
    results that are missing, that do not fit or are no events or counts, the line that says so."""
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


@pytest.mark.parametrize("how", ["all", "any"])
def test_parts_are_combined_as_three_valued_logic_says(how):
    """Unknown is a value between false and true, and "and" is the least, "or" the greatest."""
    rank = {False: 0, None: 1, True: 2}
    for held in product(rank, repeat=3):
        expected = (min if how == "all" else max)(held, key=rank.get)
        assert combine(held, how) is expected


def test_a_row_has_all_its_keys_whether_its_chapter_was_run_or_not_and_each_is_described():
    claim, given, *_ = CASES[0]
    one = valid(Claim, claim, "golden claims")
    row, described = judge(one, given), set(re.findall(r"`(\w+)`", judging.__doc__))
    assert row.keys() == empty_row(one).keys() <= described and row["tests"][0].keys() <= described
