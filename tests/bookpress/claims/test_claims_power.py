"""What planned seeds can show: by the closed form where there is one, and judged in books drawn anew."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from bnbook.errors import BnbookError
from bookpress.claims import Claim, Source, Test, power
from bookpress.claims.kinds import evaluate
from bookpress.claims.power import Earlier, earlier_of, given, smallest

PAIR = dict(a="a", b="b")
ABOVE = dict(side="greater", threshold=0.4)
CLAIM = Claim("c", "part/coin", Source("k", "v", "w"), "says", "f", Test("level", a="a", **ABOVE))


def held(test, draw, books=400):
    """In which share of books drawn with other seeds the test holds."""
    rng = np.random.default_rng(7)
    return np.mean([evaluate(test, draw(rng), "c").holds is True for _ in range(books)])


def pair(mean, spread, seeds, rng):
    b = rng.normal(5, 1, seeds)
    return {"a": b + rng.normal(mean, spread, seeds), "b": b}


SHOWN = [  # test, seeds, spread, a book whose truth lies the gap beyond the edge, or from the middle
    (Test("difference", **PAIR, **ABOVE), 5, 0.7, lambda s, n, g, r: pair(0.4 + g, s, n, r)),
    (Test("difference", **PAIR, side="less", threshold=-0.2), 8, 0.3, lambda s, n, g, r: pair(-0.2 - g, s, n, r)),
    (Test("equivalence", **PAIR, margin=1.0), 20, 1.2, lambda s, n, g, r: pair(g, s, n, r)),
    (Test("ratio", **PAIR, side="less", threshold=1.0, resolution=1.2), 4, 0.2,
     lambda s, n, g, r: {k: np.exp(v) for k, v in pair(-g, s, n, r).items()}),
    (Test("level", a="a", expected=2.0, tolerance=0.5, resolution=0.1), 6, 0.2,
     lambda s, n, g, r: {"a": r.normal(2.0 + g, s, n)}),
    (Test("agreement", **PAIR, tolerance=0.1), 10, 0.05,
     lambda s, n, g, r: {"a": 3 * (1 + r.normal(g, s, n)), "b": np.full(n, 3.0)}),
]  # fmt: skip


@pytest.mark.parametrize(("test", "seeds", "spread", "draw"), SHOWN)
def test_a_truth_at_the_stated_gap_shows_in_four_of_five_books(test, seeds, spread, draw):
    gap = smallest(test, Earlier(spread), seeds)
    assert held(test, lambda rng: draw(spread, seeds, gap, rng)) == pytest.approx(power.POWER, abs=0.065)


@pytest.mark.parametrize("test", [
    Test("level", a="a", side="greater", threshold=0.5, events=True),
    Test("level", a="a", side="less", threshold=0.4, events=True),
    Test("sign", **PAIR, side="less"),
])  # fmt: skip
def test_of_events_the_stated_chance_is_that_of_a_count_of_all_outcomes(test):
    seeds, edge = 25, {"less": 0.4}.get(test.side, 0.5) if test.kind == "level" else 0.5
    gap = smallest(test, Earlier(0.0, events=True), seeds)
    chance = edge - gap if test.side == "less" and test.kind == "level" else edge + gap

    def holds(hits):
        yes, no = (np.arange(seeds) < hits).astype(float), np.zeros(seeds)
        rows = {"a": no - yes, "b": no} if test.kind == "sign" else {"a": yes}
        return evaluate(test, rows, "c").holds is True

    often = sum(stats.binom.pmf(hits, seeds, chance) * holds(hits) for hits in range(seeds + 1))
    assert often == pytest.approx(power.POWER, abs=0.05)


SPREAD = {"a": [1.3, 1.2, 1.5, 1.1, 1.4], "b": [1.0] * 5}
RATIO = Test("ratio", a="t.none", b="t.batch", side="greater", threshold=1.0)
SAID = [  # test, seeds, spread, what is said
    (RATIO, 5, 0.12, "times as large without batch norm shows in 80 of 100 runs, by the spread of the run"),
    (Test("equivalence", **PAIR, margin=1.0), 5, 0.15, "difference within ± 0."),
    (Test("equivalence", **PAIR, margin=0.1), 5, 0.5, "even the middle of the margin shows in fewer than 80 of 100"),
    (Test("ordering", results=("a", "b", "c")), 5, 0.3, "each step of 0."),
    (Test("rate", a="a", side="less", threshold=-1.0), 5, None, "says how far seeds spread; --spread c=NUMBER says it"),
    (Test("identity", a="a", tolerance=1e-9), 3, None, "exact: one violation shows"),
    (Test("sign", **PAIR, side="less"), 5, 0.1, "with 5 seeds it cannot hold; expected at least 6"),
    (RATIO, 1, 0.1, "with 1 seed it cannot hold; expected at least 2"),
]  # fmt: skip


@pytest.mark.parametrize(("test", "seeds", "spread", "said"), SAID)
def test_it_is_said_in_the_words_of_the_test(test, seeds, spread, said):
    earlier = None if spread is None else Earlier(spread, 2 if test.results else 1, source="the run")
    assert said in power.power(CLAIM, test, seeds, earlier)


def test_the_spread_is_that_of_what_the_test_compares():
    found = earlier_of(Test("difference", **PAIR, **ABOVE), SPREAD, "x")
    assert found == Earlier(np.std(SPREAD["a"], ddof=1), 1, False, "x")
    assert earlier_of(RATIO, SPREAD, "x") is None and earlier_of(CLAIM.test, {"a": [1.0]}, "x") is None
    assert earlier_of(CLAIM.test, {"a": [1.0, math.nan]}, "x") is None
    assert earlier_of(CLAIM.test, {"a": [1.0, 0.0, 1.0]}, "x").events
    assert given(CLAIM, RATIO, 2.0).spread == math.log(2)
    with pytest.raises(BnbookError, match="--spread c=1; expected a number above 1"):
        given(CLAIM, RATIO, 1.0)
