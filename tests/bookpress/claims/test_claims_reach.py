"""A test that its planned seeds cannot make hold, and one that is silent on divergence, are refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bookpress.claims import Claim, Source, Test, kinds
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
