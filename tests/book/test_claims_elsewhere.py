"""What claims would say at another learning rate, on made-up numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bnbook.chapters.deep_linear import MARKS
from bnbook.claims.judging import moved, words_at
from bookpress.claims import Claim, Part, Source, Test

SOURCE = Source("santurkar2018", "v1", "here")
LESS = Test("difference", a="cosine.lr1.none", b="cosine.lr1.batch", side="greater", threshold=0.0)
MORE = Test("level", a="range.lr1", side="greater", threshold=0.5)
WHOLE = Claim("whole", "part/chapter", SOURCE, "says", "figure", test=LESS)
PARTS = Claim("parts", "part/chapter", SOURCE, "says", "figure", parts=(Part("one", LESS), Part("two", MORE)))
SPREAD = np.array([0.01, -0.01, 0.0, 0.005])


def found(rate, none, batch, size, lost=0.0):
    return {
        f"cosine.{rate}.none": none + SPREAD,
        f"cosine.{rate}.batch": batch - SPREAD,
        f"range.{rate}": size + SPREAD,
        f"diverged.{rate}.none": np.full(4, lost),
        f"diverged.{rate}.batch": np.zeros(4),
    }


def test_each_word_has_a_mark_and_stands_at_its_rate():
    numbers = found("lr1", 1, 0, 1) | found("lr10", 1, 0, 0.1) | found("lr2", 0, 1, 0.1)
    numbers |= found("lr3", 1, 0, 1, lost=1.0) | found("lr4", 0, 0, 0.5)
    scanned = replace(WHOLE, id="scan", test=replace(LESS, b="cosine.best.batch"))
    words = words_at([WHOLE, PARTS, scanned], numbers, "lr1", ("lr1", "lr10", "lr2", "lr3", "lr4"))
    assert words == {
        "whole": ["reproduced", "reproduced", "not reproduced", "diverged", "open"],
        "parts": ["reproduced", "mixed", "not reproduced", "diverged", "open"],
    }, "a claim that also names another rate has no row"
    asked = words_at([replace(WHOLE, asks=True)], numbers, "lr1", ("lr1", "lr2"))
    assert asked == {"whole": ["yes", "no"]}
    assert {*words["whole"], *words["parts"], *asked["whole"], "partly refuted, rest open"} == set(MARKS)


def test_a_name_that_only_begins_alike_is_left():
    test = replace(LESS, b="cosine.lr10.batch")
    assert moved(replace(WHOLE, test=test), "lr1", "lr3").test.b == "cosine.lr10.batch"


@pytest.mark.parametrize(("lost", "word"), [((1, 1, 0, 0), "reproduced"), ((1, 1, 1, 0), "diverged")])
def test_half_of_the_trainings_lost_is_not_most_of_them(lost, word):
    numbers = found("lr1", 1, 0, 1) | found("lr2", 1, 0, 1) | {"diverged.lr2.none": np.array(lost, float)}
    assert words_at([WHOLE], numbers, "lr1", ("lr2",)) == {"whole": [word]}
