"""Claims judged rung by rung: how they are read, and what a new rung changes; what they come to stands in the golden lines."""

from __future__ import annotations

import yaml

from bookpress.claims import load_claims
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
