"""A test that its planned seeds cannot make hold, and one that is silent on divergence, are refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from bnbook.errors import BnbookError
from bookpress.claims import Claim, Source, Test, kinds, load_claims
from bookpress.claims.kinds import kind_of
from bookpress.pipeline import gate
from bookpress.results import Results

NINE_IN_TEN = Test("level", a="a", side="greater", threshold=0.9, events=True)


@pytest.mark.parametrize(
    "test,fewest",
    [
        (NINE_IN_TEN, 36),
        (Test("level", a="a", side="less", threshold=0.2, events=True), 17),
        (Test("level", a="a", expected=0.5, tolerance=0.2, events=True), None),
        (Test("difference", a="a", b="b", side="greater", threshold=0.5, events=True), None),
        (Test("difference", a="a", b="b", side="less", threshold=-0.5, events=True), None),
        (Test("equivalence", a="a", b="b", margin=0.2, events=True), None),
        (Test("level", a="a", side="greater", threshold=0.9), 2),
        (Test("ordering", results=("a", "b")), 2),
        (Test("ratio", a="a", b="b", side="greater", threshold=1.0), 2),
        (Test("sign", a="a", b="b", side="greater"), 6),
        (Test("identity", a="a", tolerance=0.0), 1),
    ],
)
def test_the_fewest_seeds_are_those_of_a_search_through_all_outcomes(test, fewest):
    found = kinds.least_seeds(test)
    assert fewest in (None, found)
    if test.events:
        assert holds_somehow(test, found) and not holds_somehow(test, found - 1)


def holds_somehow(test, seeds):
    """Every count of hits, or of seeds where only a, only b or neither is 1."""
    line = np.arange(seeds)
    if test.b is None:
        columns = [np.array([line < hits], dtype=float) for hits in range(seeds + 1)]
    else:
        columns = [
            np.array([line < a, (line >= a) & (line < a + b)], dtype=float)
            for a in range(seeds + 1)
            for b in range(seeds + 1 - a)
        ]
    return any(kind_of(test).decide(test, kind_of(test).cells(test, each, ""))[0] for each in columns)


@pytest.mark.parametrize(
    "beyond,profile,lines", [(False, "laptop", 1), (True, "laptop", 0), (False, "smoke", 0)]
)
def test_the_gate_counts_the_seeds_that_the_test_was_given(monkeypatch, beyond, profile, lines):
    claim = Claim("c", "part/chapter", Source("k", "v", "w"), "So.", "f", NINE_IN_TEN, out_of_reach=beyond)
    monkeypatch.setattr(gate.claims, "chapter_claims", lambda name: [claim])
    chapter = SimpleNamespace(name="part/chapter", exact=False)
    results = Results(
        {"default_parameters": True}, {"a": {"values": [1.0] * 5, "unit": "", "seeds": [*range(5)]}}
    )
    run = SimpleNamespace(profile=profile, chapter=chapter, results=results, judged={})
    problems = gate.within_reach(run)
    assert len(problems) == lines and all("with 5 seeds its test cannot hold" in line for line in problems)


CHAPTER = "---\nbnbook:\n  profiles:\n    laptop:\n      seeds: 5\n---\n\nseeds = 2\n{}\n"
EVENT = {"kind": "level", "a": "a", "side": "greater", "threshold": 0.9, "events": True, "nonfinite": 0}


def write(folder, test, parameters="", head=None, **more):
    claim = {"id": "c", "source": {"key": "k", "version": "v", "where": "w"}, "says": "So.", "figure": "f"}
    path = folder / "part" / "chapter.claims.yml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump({**(head or {}), "claims": [{**claim, "test": test, **more}]}))
    path.with_name("chapter.md").write_text(CHAPTER.format(parameters))
    return path


def test_a_test_out_of_reach_is_refused_unless_it_says_so(tmp_path):
    with pytest.raises(
        BnbookError, match="with 5 seeds its test cannot hold; expected at least 36 seeds, or"
    ):
        load_claims(write(tmp_path, EVENT))
    assert load_claims(write(tmp_path, EVENT, out_of_reach=True))[0].out_of_reach
    assert load_claims(write(tmp_path, EVENT, parameters="start_seeds = 40"))
    (tmp_path / "part" / "_settings.yml").write_text("starts:\n  start_seeds: 40  # more\n")
    assert load_claims(write(tmp_path, EVENT)), "seeds may stand in the settings that chapters share"


def test_a_chapter_that_trains_says_what_a_seed_without_a_number_counts_as(tmp_path):
    silent = {"kind": "level", "a": "a", "side": "greater", "threshold": 0.9}
    trains = dict(parameters="steps = 100  # of training")
    assert load_claims(write(tmp_path, silent)), "nothing diverges where nothing trains"
    with pytest.raises(BnbookError, match="its chapter trains, but its test says nothing of seeds without"):
        load_claims(write(tmp_path, silent, **trains))
    assert load_claims(write(tmp_path, silent, **trains, head={"nonfinite": "open"}))
    assert load_claims(write(tmp_path, silent | {"nonfinite": 0.1}, **trains))[0].test.nonfinite == 0.1
    assert load_claims(write(tmp_path, {"kind": "identity", "a": "a", "tolerance": 0}, **trains))
    with pytest.raises(BnbookError, match="nonfinite 'dropped'; expected open, or a number in a test"):
        load_claims(write(tmp_path, silent, **trains, head={"nonfinite": "dropped"}))
