"""Claims judged rung by rung: what was reached decides, what was not is shown as not tested."""

from __future__ import annotations

import math

import pytest
import yaml

from bookpress.claims import judge, load_claims
from bookpress.claims.judging import MIXED, NOT_REPRODUCED, NOT_TESTED, OPEN, REPRODUCED
from bookpress.claims.ledger import rung_table, turned
from bookpress.pipeline import publishing
from bookpress.results import Results

HEAD = {
    "source": {"key": "santurkar2018", "version": "v1"},
    "figure": "speed",
    "rungs": {"small": "An eighth of the width.", "wide": "The whole width."},
}
TEST = {
    "kind": "difference", "a": "speed.{rung}.batch", "b": "speed.{rung}.none", "side": "greater",
    "threshold": 0.0,
}  # fmt: skip
CLAIM = {"id": "faster", "source": "Figure 1", "says": "It is faster.", "test": TEST}
UP, DOWN = [0.5, 0.6, 0.7], [-0.5, -0.6, -0.7]


def read(tmp_path, head=HEAD, **changes):
    path = tmp_path / "santurkar" / "scale.claims.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(head | {"claims": [CLAIM | changes]}), encoding="utf-8")
    return load_claims(path)[0]


def results(**rungs):
    return {f"speed.{rung}.{arm}": values for rung, each in rungs.items() for arm, values in each.items()}


def arms(batch):
    return {"batch": batch, "none": [0.0, 0.0, 0.01]}


def test_one_test_stands_for_every_rung(tmp_path):
    claim = read(tmp_path)
    assert [part.says for part in claim.parts] == list(HEAD["rungs"].values())
    assert [part.test.a for part in claim.parts] == ["speed.small.batch", "speed.wide.batch"]
    assert claim.test is None and claim.required_names() == () and len(claim.result_names()) == 4
    assert read(tmp_path, rungs=["wide"]).parts == claim.parts[1:]
    assert read(tmp_path, rungs=["wide"]).test_hash != claim.test_hash


@pytest.mark.parametrize(
    ("found", "word", "parts"),
    [
        (results(small=arms(UP), wide=arms(UP)), REPRODUCED, [REPRODUCED, REPRODUCED]),
        (results(small=arms(UP)), REPRODUCED, [REPRODUCED, NOT_TESTED]),
        (results(wide=arms(DOWN)), NOT_REPRODUCED, [NOT_TESTED, NOT_REPRODUCED]),
        (results(small=arms(DOWN), wide=arms(UP)), MIXED, [NOT_REPRODUCED, REPRODUCED]),
        (results(small=arms([-1.0, 1.0, 0.0])), OPEN, [OPEN, NOT_TESTED]),
        (results(), NOT_TESTED, [NOT_TESTED, NOT_TESTED]),
        (results(small={"batch": UP}), NOT_TESTED, [NOT_TESTED, NOT_TESTED]),
    ],
)
def test_the_rungs_that_were_reached_decide(tmp_path, found, word, parts):
    judgement = judge(read(tmp_path), found, "laptop")
    assert judgement.verdict == word and [each[1] for each in judgement.parts] == parts
    assert judgement.claim.parts == read(tmp_path).parts
    for _, verdict, outcome in judgement.parts:
        assert math.isnan(outcome.effect) == (verdict == NOT_TESTED)


def test_claims_that_turn_between_the_rungs_come_first(tmp_path):
    both = judge(read(tmp_path), results(small=arms(UP), wide=arms(DOWN)), "laptop")
    only = judge(read(tmp_path, rungs=["wide"]), results(wide=arms([-1.0, 1.0, 0.0])), "laptop")
    down = judge(read(tmp_path), results(small=arms(DOWN), wide=arms([-1.0, 1.0, 0.0])), "laptop")
    tables = rung_table([down, both, only]).split("\n\n**")
    assert [table.strip("*").partition("*")[0] for table in tables] == [
        "Turns between the sizes",
        "Fails wherever it is decided",
        "Open",
    ]
    rows = [table.splitlines()[-1] for table in tables]
    assert rows[0] == (
        "| It is faster.<br><small>higher … batch norm</small> | yes, **0.597 with** | "
        "no, **0.603 without** |"
    )
    assert "no, **" in rows[1] and "| open, 0.00333 " in rows[1]
    assert rows[2].startswith(
        "| It is faster.<br><small>higher without batch norm</small> |  | open, 0.00333 "
    )
    untried = judge(read(tmp_path), {}, "laptop")
    assert rung_table([untried]) == turned([untried]) == "No size has been reached."
    assert turned([down, both, only, untried]) == (
        "One claim holds at one size and fails at another. Of the others 0 hold and 1 fails at every size that decides. "
        "1 is open at every size."
    )
    assert turned([both, both, down]).startswith(
        "2 of the 3 claims hold at one size and fail at another. Of the others 0 hold"
    )
    assert turned([down]).startswith(
        "None of the 1 claims holds at one size and fails at another. Of the others 0 hold and 1"
    )


def test_a_claim_turns_with_the_width_or_with_the_length(tmp_path):
    rungs = {"a": "An eighth, 2 steps.", "b": "The whole, 2 steps.", "c": "An eighth, 9 steps."}
    one = read(tmp_path, HEAD | {"rungs": rungs})
    noise = arms([-1.0, 1.0, 0.0])

    def said(*found):
        return turned([judge(one, results(**known), "laptop") for known in found]).partition(" At equal ")[2]

    wide, shorter = {"a": arms(UP), "b": arms(DOWN)}, {"a": arms(UP), "b": noise}
    assert said(wide, shorter) == ""
    both = {"a": arms(DOWN), "b": arms(DOWN), "c": arms(UP)}
    assert said(both, wide, shorter | {"c": noise}, wide | {"c": arms(UP)}, shorter | {"c": arms(DOWN)}) == (
        "steps, width changes the verdict of 2. At equal width, longer training changes that of 2 of 3. 1 turn from no to yes, "
        "1 from yes to no."
    )
    assert said(both).endswith("that of 1 of 1. 1 turn from no to yes, 0 from yes to no.")
    assert said(shorter | {"c": arms(UP)}) == (
        "steps, width changes the verdict of none. At equal width, longer training changes that of none of 1. 0 turn from no "
        "to yes, 0 from yes to no."
    )


def test_a_rung_that_is_new_leaves_the_others_as_they_were(tmp_path):
    def run(**rungs):
        rows = results(**rungs)
        return Results(
            {}, {name: {"values": each, "unit": "", "seeds": [0, 1, 2]} for name, each in rows.items()}
        )

    claim, before = read(tmp_path), run(small=arms(UP))
    assert publishing.unchanged(claim, before, run(small=arms(UP), wide=arms(DOWN)))
    assert not publishing.unchanged(claim, before, run(small=arms(DOWN), wide=arms(DOWN)))
    assert not publishing.unchanged(claim, run(small=arms(UP), wide=arms(UP)), before)
    assert not publishing.unchanged(claim, run(), before)  # there is nothing to compare
