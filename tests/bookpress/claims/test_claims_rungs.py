"""Claims judged rung by rung: what was reached decides, what was not is shown as not tested."""

from __future__ import annotations

import pytest
import yaml

from bookpress.claims import judge, load_claims
from bookpress.claims.judging import MIXED, NOT_REPRODUCED, NOT_TESTED, OPEN, REPRODUCED
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
    row = judge(read(tmp_path), found, "laptop")
    assert row["verdict"] == word and [test["verdict"] for test in row["tests"]] == parts
    assert all((test["n"] == 0) == (test["verdict"] == NOT_TESTED) for test in row["tests"])


def test_a_rerun_that_lacks_sizes_is_judged_by_those_that_it_has(tmp_path):
    rows = {
        name: {"values": v, "unit": "", "seeds": [0, 1, 2]} for name, v in results(small=arms(UP)).items()
    }
    rerun = Results({"default_parameters": False}, rows)
    assert judge(read(tmp_path), rerun, "laptop")["words"] == REPRODUCED


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
