"""What planned seeds can decide, against thousands of books that were drawn: the slow twin of each kind."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bnbook.errors import BnbookError
from bookpress.claims import power
from bookpress.claims.claim import Claim, Effect, Source, Test
from bookpress.claims.kinds import evaluate
from bookpress.claims.power import Earlier

BOOKS = 500
ABOVE = dict(side="greater", threshold=0.4)
CLAIM = Claim("c", "part/coin", Source("k", "v", "w"), "says", "f", Test("level", a="a", **ABOVE))
MANY = ("r0", "r1", "r2")


def held(test, draw, books=BOOKS):
    """In how many of the books the test holds, judged as every run is; draw(rng) -> {result: (S,)}."""
    rng = np.random.default_rng(3)
    return sum(evaluate(test, draw(rng), "c").holds is True for _ in range(books)) / books


def pair(mean, spread, seeds, rng):
    """Two arms whose difference has that mean and spread, and a spread of their own."""
    b = rng.normal(5, 1, seeds)
    return {"a": b + rng.normal(mean, spread, seeds), "b": b}


STUDENT = [  # test, seeds, spread, from the gap to the draws
    (Test("difference", a="a", b="b", **ABOVE), 5, 0.7, lambda s, n, g, r: pair(0.4 + g, s, n, r)),
    (Test("difference", a="a", b="b", side="less", threshold=-0.2), 8, 0.3,
     lambda s, n, g, r: pair(-0.2 - g, s, n, r)),
    (Test("equivalence", a="a", b="b", margin=1.0), 5, 0.3, lambda s, n, g, r: pair(g, s, n, r)),
    (Test("equivalence", a="a", b="b", margin=1.0), 20, 1.2, lambda s, n, g, r: pair(g, s, n, r)),
    (Test("ratio", a="a", b="b", side="greater", threshold=2.0), 5, 0.5,
     lambda s, n, g, r: {k: np.exp(v) for k, v in pair(math.log(2) + g, s, n, r).items()}),
    (Test("ratio", a="a", b="b", side="less", threshold=1.0, resolution=1.2), 4, 0.2,
     lambda s, n, g, r: {k: np.exp(v) for k, v in pair(-g, s, n, r).items()}),
    (Test("level", a="a", **ABOVE), 3, 0.1, lambda s, n, g, r: {"a": r.normal(0.4 + g, s, n)}),
    (Test("level", a="a", expected=2.0, tolerance=0.5, resolution=0.1), 6, 0.2,
     lambda s, n, g, r: {"a": r.normal(2.0 + g, s, n)}),
    (Test("rate", a="a", side="less", threshold=-1.0), 10, 2.0,
     lambda s, n, g, r: {"a": r.normal(-1 - g, s, n)}),
    (Test("agreement", a="a", b="b", tolerance=0.1), 10, 0.05,
     lambda s, n, g, r: {"a": 3 * (1 + r.normal(g, s, n)), "b": np.full(n, 3.0)}),
]  # fmt: skip


@pytest.mark.parametrize(("test", "seeds", "spread", "draw"), STUDENT)
def test_a_mean_at_the_stated_gap_shows_in_four_of_five_books(test, seeds, spread, draw):
    gap = power.smallest_gap(test, spread, seeds)
    assert held(test, lambda rng: draw(spread, seeds, gap, rng)) == pytest.approx(power.POWER, abs=0.045)


@pytest.mark.parametrize("kind", ["ordering", "level"])
def test_several_cells_at_the_stated_gap_show_in_at_least_four_of_five(kind):
    seeds, spread, bound = 6, 0.5, {} if kind == "ordering" else ABOVE
    test = Test(kind, results=MANY, **bound)
    cells = len(power.spreads_of(test, Earlier(spread=spread)))
    gap = power.smallest_gap(test, spread, seeds, cells)

    def draw(rng):
        if kind == "level":
            return {name: rng.normal(0.4 + gap, spread, seeds) for name in MANY}
        steps = [np.zeros(seeds), *(rng.normal(gap, spread, seeds) for _ in MANY[1:])]
        return dict(zip(MANY, np.cumsum(steps, axis=0)))

    assert cells == (2 if kind == "ordering" else 3)
    assert power.POWER - 0.03 < held(test, draw) < 0.88


EVENTS = [
    Test("level", a="a", side="greater", threshold=0.5, events=True),
    Test("level", a="a", side="less", threshold=0.4, events=True),
    Test("level", a="a", expected=0.5, tolerance=0.45, events=True),
    Test("sign", a="a", b="b", side="greater"),
    Test("sign", a="a", b="b", side="less"),
    Test("difference", a="a", b="b", side="greater", threshold=0.0, events=True),
    Test("difference", a="a", b="b", side="less", threshold=0.0, events=True),
    Test("equivalence", a="a", b="b", margin=0.4, events=True),
    Test("ordering", results=MANY[:2]),
]


@pytest.mark.parametrize("test", EVENTS, ids=lambda test: f"{test.kind}-{test.side}")
@pytest.mark.parametrize("seeds", [16, 25])
def test_events_of_the_stated_chance_show_in_four_of_five_books(test, seeds):
    """Every number of hits, judged as a run is, by its chance."""

    def often(chance):
        return sum(stats.binom.pmf(hits, seeds, chance) * judged(hits) for hits in range(seeds + 1))

    def judged(hits):
        yes, none = (np.arange(seeds) < hits).astype(float), np.zeros(seeds)
        if test.results:
            rows = {MANY[0]: none, MANY[1]: yes}
        else:
            rows = {"a": none, "b": yes} if test.b and test.side == "less" else {"a": yes, "b": none}
        return evaluate(test, rows, "c").holds is True

    share, centre = power.smallest_share(test, seeds), test.expected or 0.0
    chances = [centre - share, centre + share] if test.tolerance else [share]
    assert min(map(often, chances)) == pytest.approx(power.POWER, abs=1e-9)
    at_most = test.kind == "equivalence" or test.tolerance or test.side == "less" and test.kind == "level"
    assert often(chances[-1] + (0.01 if at_most else -0.01)) < power.POWER


def test_events_of_three_steps_are_decided_by_simultaneous_intervals():
    two, three = (Test("ordering", results=MANY[:k]) for k in (2, 3))
    seeds = 16
    least = [min(h for h in range(17) if power.decide_hits(each, h, seeds)) for each in (two, three)]
    assert least[0] < least[1] and power.smallest_share(three, seeds) > power.smallest_share(two, seeds)


@pytest.mark.parametrize(("trials", "allowed"), [(20, 0), (400, 0), (400, 3)])
def test_a_bound_that_breaks_at_the_stated_rate_is_refuted_in_four_of_five_books(trials, allowed):
    rate = power.smallest_rate(trials, allowed)
    assert allowed or rate == pytest.approx(1 - 0.2 ** (1 / trials))
    test = Test("inequality", a="a", b=float(trials), allowed=allowed)
    broken = 1 - held(test, lambda rng: {"a": rng.binomial(trials, rate, 1)})
    assert broken == pytest.approx(power.POWER, abs=0.045)


def words(test, seeds=5, earlier=None, shown=None, claim=CLAIM):
    return power.power(claim, test, seeds, earlier, shown)


def ran(*rows, trials=0):
    return Earlier(np.array(rows, dtype=float), None, trials, "the published laptop run")


SPREAD = (1.3, 1.2, 1.5, 1.1, 1.4), (1.0, 1.0, 1.0, 1.0, 1.0)
SOURCE = ", by the spread of the published laptop run"


@pytest.mark.parametrize(
    ("test", "seeds", "earlier", "shown", "said"),
    [
        (Test("ratio", a="t.none", b="t.batch", side="greater", threshold=1.0), 5, ran(*SPREAD), None,
         "more than 1.23 times as large without batch norm shows in 80 of 100 runs" + SOURCE),
        (Test("difference", a="t.batch", b="t.none", side="greater", threshold=0.02), 5,
         ran((0.5, 0.51, 0.52, 0.5, 0.5), (0.4,) * 5), Effect("points"),
         "more than 3.6 points higher with batch norm shows in 80 of 100 runs" + SOURCE),
        (Test("equivalence", a="a", b="b", margin=1.0), 5, ran(*SPREAD), None,
         "difference within ± 0.73 shows in 80 of 100 runs" + SOURCE),
        (Test("ordering", results=("a.g1", "a.g2")), 5, ran(*SPREAD), Effect("points"),
         "each step of 27 points up shows in 80 of 100 runs" + SOURCE),
        (Test("sign", a="t.none", b="t.batch", side="greater"), 10, None, None,
         "larger without batch norm in 92 % of the seeds shows in 80 of 100 runs"),
        (Test("identity", a="a", tolerance=1e-9), 3, None, None,
         "a violation beyond the tolerance shows in any seed"),
        (Test("inequality", a="a"), 5, ran((0, 0, 0), trials=400), None,
         "with 2,000 trials: a violation in 0.0008 of them shows in 80 of 100 runs"),
        (Test("inequality", a="a"), 5, None, None, "nothing is known of the number of trials"),
        (Test("rate", a="a", side="less", threshold=-1.0), 5, None, None,
         "no earlier run says how far seeds spread"),
        (Test("agreement", a="a", b="b", tolerance=0.5), 5, ran(*SPREAD), None,
         "relative error within ± 23 %"),
        (Test("level", a="a", side="greater", threshold=0.5), 20, ran((0.0, 1.0, 1.0, 1.0)),
         Effect("%", "of the seeds"), "more than 79.9 % of the seeds shows in 80 of 100 runs"),
        (Test("level", a="a", side="less", threshold=0.5), 5, ran((0.3,)), None,
         "run gives no spread, it has one seed"),
        (Test("level", a="a", side="less", threshold=0.5), 5, ran((0.3, math.nan)), None,
         "run gives no spread, 1 of 2 seeds have no finite value"),
        (Test("level", a="a", side="less", threshold=1.0), 9,
         Earlier(spread=0.3, source="0.3 that was given"), None,
         "mean < 0.67 shows in 80 of 100 runs, by the spread of 0.3 that was given"),
    ],
)  # fmt: skip
def test_the_smallest_effect_is_said_in_its_own_unit(test, seeds, earlier, shown, said):
    assert said in words(test, seeds, earlier, shown)


REFUSED = [
    (Test("equivalence", a="a", b="b", margin=0.1), 5, ran(SPREAD[0], (1.3,) * 5),
     "expected at least 13 seeds"),
    (Test("agreement", a="a", b="b", tolerance=0.01), 5, ran(SPREAD[1], (1.1, 0.9, 1.0, 1.1, 0.9)),
     "387 seeds"),
    (Test("equivalence", a="a", b="b", margin=0.1), 5, Earlier(spread=0.5, source="0.5"),
     "at least 99 seeds"),
    (Test("level", a="a", expected=0.0, tolerance=0.1, resolution=0.2), 5, Earlier(spread=0.0),
     "another test"),
    (Test("sign", a="a", b="b", side="less"), 5, None, "at least 6 seeds"),
    (Test("level", a="a", side="greater", threshold=0.9, events=True), 20, None, "at least 36 seeds"),
    (Test("ratio", a="a", b="b", side="less", threshold=1.0), 1, None, "at least 2 seeds"),
    (Test("equivalence", a="a", b="b", margin=0.15), 5, ran(SPREAD[0], (1.3,) * 5), "at least 7 seeds"),
]  # fmt: skip


@pytest.mark.parametrize(("test", "seeds", "earlier", "least"), REFUSED)
def test_what_cannot_answer_is_refused_with_the_seeds_that_it_takes(test, seeds, earlier, least):
    with pytest.raises(
        BnbookError, match=r"claim c: with .* cannot hold.*expected .*, or `out_of_reach: true`"
    ) as error:
        words(test, seeds, earlier)
    assert least in str(error.value) and "\n" not in str(error.value)
    assert "refused" not in words(test, seeds, earlier, claim=replace(CLAIM, out_of_reach=True))


def test_the_seeds_that_a_refusal_names_are_the_least():
    test, seeds, earlier, _ = REFUSED[0]
    assert words(test, 13, earlier)
    with pytest.raises(BnbookError):
        words(test, 12, earlier)


def test_a_margin_that_the_earlier_mean_lies_clearly_outside_of_can_be_answered():
    test = Test("equivalence", a="a", b="b", margin=0.1)
    assert "even the middle of the margin shows in 2 of 100 runs only" in words(test, 5, ran(*SPREAD))


def test_only_a_run_that_has_all_that_a_test_reads_tells_of_its_spread():
    test = Test("difference", a="a", b="b", **ABOVE)
    whole = {"a": np.ones(3), "b": np.zeros(3)}
    assert power.earlier_of(test, whole, "x").columns.shape == (2, 3)
    assert power.earlier_of(test, {"a": np.ones(3)}, "x") is None
    assert power.earlier_of(test, {"a": np.ones(3), "b": np.ones(4)}, "x") is None
    assert power.earlier_of(Test("inequality", a="a"), {"a": np.zeros((3, 7))}, "x").trials == 7
