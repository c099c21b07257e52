"""`--compare`: what agrees, what differs, and what a comparison cannot tell."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from locked_coin import claims_file, coin, edit, edit_results, laptop_run, stamped

from bnbook.errors import BnbookError
from bookpress import cli
from bookpress.pipeline import chapter_runs, compare, execution, publishing
from scripts import course as measuring

SOURCE = {"key": "folklore", "version": "oral", "where": "here"}
LEVEL = {"kind": "level", "a": "heads", "side": "greater", "threshold": 0.1}
BOUND = {"kind": "inequality", "a": "draws"}
NONE_IN_FIVE, ONE_IN_FIVE = [0] * 5, [0, 0, 0, 0, 1]


def judged(run=None, details=False):
    lines, outcome = compare.compare(run or laptop_run(), details)
    return "\n".join(lines), outcome


def values(name, numbers, of=laptop_run):
    stamped(of(), lambda content: content["results"][name].update(values=numbers))


def claims(root, *tests, exact=False, **about):
    """The chapter's claims, and whether it is exact."""
    entries = [
        {"id": f"coin-{n}", "source": SOURCE, "says": "x", "figure": "shares", "test": test, **about}
        for n, test in enumerate(tests)
    ]
    claims_file(root).write_text(json.dumps({"claims": entries}))
    if exact:
        edit(coin().path, "exact: false", "exact: true")


def smoke_run():
    return chapter_runs.fresh_run(coin(), "smoke")


def publish():
    publishing.publish(coin(), "laptop")


def biased():
    values("heads", [0.9] * 5)
    edit_results(lambda content: content["parameters"].update(rate=0.9))


def other_code():
    edit(coin().path, "rate) / tosses", "rate) / tosses * 1")


DATA = {"name": "cifar10-jpeg75", "sha256": "5" * 64, "exact": False}
#: What became of the run since it was published -> the outcome, and what is said.
SINCE = [
    (lambda: None, compare.AGREES, ("agrees with the book's laptop run: 1 of 1 results in their bands",)),
    (biased, compare.DIFFERS, (
        "heads: 0.9, book", "DIFFERS", "other rate: 0.9; book: 0.5",
        "claim coin-fair: not reproduced (“reproduced” when it ran); book: reproduced")),
    (lambda: edit_results(lambda content: content["results"].pop("heads")), compare.UNTOLD,
     ("heads: not measured in this run", "nothing to compare")),
    (lambda: edit_results(lambda content: content.update(data=[DATA])), compare.AGREES, (
        "\n  OTHER DATA: cifar10-jpeg75 555555555555 (not the exact set); book: none; the bands are those of the book's data\n",)),
    (other_code, compare.AGREES, ("other code: the book's run is stale (code changed since)",)),
]  # fmt: skip


@pytest.mark.parametrize(("change", "outcome", "words"), SINCE)
def test_a_rerun_is_judged_by_the_published_band(ran, change, outcome, words):
    with pytest.raises(BnbookError, match="no published run"):
        judged()
    publish()
    change()
    said, found = judged()
    assert found == outcome and [each for each in words if each not in said] == []
    assert (found in compare.PASSING) == (found == compare.AGREES)
    assert (
        measuring.outcome(f"passed part/coin (laptop) in 2.0 s\n{said}\n") in said.splitlines()[0]
    )  # read by the course


def test_the_bands_of_several_results_are_wider_together(ran):
    claims(ran, LEVEL, LEVEL | {"a": "draws"})
    publish()
    low, high = compare.prediction_band(laptop_run().results["heads"], 5, 0.995)
    assert f"band {low:.4g} to {high:.4g}" in judged()[0]


def test_verdicts_of_an_exact_chapter_count_at_every_profile(ran):
    claims(ran, BOUND, exact=True)
    values("draws", NONE_IN_FIVE)
    publish()
    words, outcome = judged()
    assert outcome == compare.AGREES and "1 of 1 exact verdicts as in the book" in words
    values("draws", ONE_IN_FIVE)
    assert judged()[1] == compare.DIFFERS
    assert judged(smoke_run())[1] == compare.DIFFERS, "its draws are 0, 1, 2: three violations"
    edit(coin().path, "exact: true", "exact: false")
    assert judged()[1] == compare.DIFFERS, "a bound is exact in any chapter, at the same profile"
    words, outcome = judged(smoke_run())
    assert outcome == compare.OTHER and outcome in compare.PASSING
    assert "is not comparable with the book" in words and "try --profile laptop" in words


def test_a_small_search_that_meets_no_exception_contradicts_nothing(ran):
    claims(ran, BOUND, exact=True, statement=True)
    values("draws", ONE_IN_FIVE)
    publish()
    values("draws", [0, 0, 0], of=smoke_run)
    words, outcome = judged(smoke_run(), details=True)
    assert outcome == compare.OTHER and "holds; book: wrong (exploratory): too few trials to tell" in words
    values("draws", NONE_IN_FIVE)
    assert judged()[1] == compare.DIFFERS, "with as many trials it does"


def test_the_books_run_at_the_same_profile_is_the_one_to_compare_with(ran):
    publish()
    shutil.copytree(ran / "executed" / "laptop", ran / "executed" / "paper")
    edit(ran / "executed" / "paper" / "part" / "coin.json", '"profile": "laptop"', '"profile": "paper"')
    assert "agrees with the book's laptop run" in judged()[0]


def test_what_cannot_be_compared_or_is_slow_is_said_of_a_run_once(ran, monkeypatch, capsys):
    """The first before anything runs, the second behind several chapters of the profile's own parameters."""
    with pytest.raises(BnbookError, match="no published run to compare with"):
        compare.ahead([coin()], "smoke")
    publish()
    assert compare.ahead([coin()], "laptop") == [] == compare.ahead([replace(coin(), exact=True)], "smoke")
    run, slow = laptop_run(), []
    monkeypatch.setattr(execution, "run_chapter", lambda *_, **__: run)
    monkeypatch.setitem(execution.BUDGETS, "laptop", -1)
    for default in (True, False):
        run.results.header["default_parameters"] = default
        slow.append(execution.Job("laptop", {run.chapter.name: {}}).run(run.chapter))
    assert [each.slow for each in slow] == ["part/coin", ""]
    monkeypatch.setattr(execution, "run", lambda *_: iter(slow))
    for chapters, late in ([coin()], 0), ([coin()] * 2, 1):
        monkeypatch.setattr(cli, "_chosen", lambda _, chapters=chapters: chapters)
        assert cli.main(["run", "coin", "--compare"]) == 0
        first, *rest = capsys.readouterr().err.splitlines()
        assert re.search(
            r"has (part/coin|2 chapters) at --profile laptop alone, with which no number of a smoke", first
        )
        assert [line for line in rest if "1 of 2 chapters took longer than 15 s" in line] == rest and len(
            rest
        ) == late


def test_the_exit_code_is_that_of_the_comparison(ran, monkeypatch):
    run = laptop_run()
    monkeypatch.setattr(execution, "run_chapter", lambda *_, **__: run)
    job = execution.Job("laptop", {run.chapter.name: {}}, compare=True)
    for outcome in (compare.AGREES, compare.OTHER, compare.DIFFERS, compare.UNTOLD):
        monkeypatch.setattr(execution.compare, "compare", lambda *_, outcome=outcome: (["x"], outcome))
        assert job.run(run.chapter).passed == (outcome in (compare.AGREES, compare.OTHER))


def test_the_band_is_a_prediction_interval():
    low, high = compare.prediction_band([1.0, 2.0, 3.0], 3)
    assert low == pytest.approx(2 - 9.924843 * (2 / 3) ** 0.5) and high == pytest.approx(4 - low)
    low, high = compare.prediction_band([2.0], 3)
    assert 0 < high - low < 1e-5
    low, high = compare.prediction_band(
        [0.0] * 20, 20
    )  # by hand: P(0 of 20 and k of 20) = 2 C(20, k) / C(40, k)
    assert low == 0 and high == 6 / 20  # 0.020 at k = 6, 0.008 at k = 7


def one(mine, theirs, **kind):
    return compare.compare_one("x", np.asarray(mine), np.asarray(theirs), 0.99, **kind)


WIDE, UNTOLD = [0.3, 1.2, 3.1], "cannot tell (the band is too wide)"  # mean 1.53, band -10 to 14


@pytest.mark.parametrize(
    ("mine", "theirs", "kind", "outcome"),
    [
        ([0.03, 0.03, 0.03], WIDE, {}, UNTOLD),  # it knows no sign
        ([99.0, 99.0, 99.0], WIDE, {}, "DIFFERS"),  # outside even of a wide band
        ([1.52, 1.51, 1.55], [1.5, 1.51, 1.52], {}, "agrees"),
        ([2.0], [2.0], {}, "agrees"),
        ([np.inf], [np.inf, np.inf], {}, "agrees"),
        ([np.inf], [1.0, 1.1], {}, "DIFFERS"),
        ([0.0, 0.0], [0.0, 0.0], {}, "agrees"),
        ([1.0, 1.0], [1.0, 100.0, 1e4], dict(ratio=True), UNTOLD),
        ([0.95, 0.96, 0.95], [0.95, 0.97, 0.98], dict(share=True), "agrees"),
        ([0.5, 0.5], [0.2, 0.9, 0.5], dict(share=True), UNTOLD),
        ([1.0, 0.0, 0.0], [1.0, 1.0, 0.0], {}, UNTOLD),  # any share is in the band
        ([0.0] * 20, [0.0] * 19 + [1.0], {}, "agrees"),
    ],
)
def test_a_result_agrees_differs_or_cannot_be_told(mine, theirs, kind, outcome):
    assert one(mine, theirs, **kind).outcome == outcome


def test_sides_of_a_ratio_are_compared_by_their_logarithms_and_shares_lie_between_0_and_1():
    theirs = np.array([1.0, 2.0, 4.0, 2.0, 2.0])
    row = one([0.5, 0.5], theirs, ratio=True)
    low, high = np.exp(compare.prediction_band(np.log(theirs), 2, 0.99))
    assert (row.mine, row.book, row.low, row.high) == pytest.approx((0.5, 2.0, low, high)) and row.low > 0
    assert one([1.0, -1.0], theirs, ratio=True).low < 0, "no logarithm of what is negative"
    row = one([0.95, 0.96, 0.95], [0.95, 0.97, 0.98], share=True)
    assert row.high == 1.0 and row.low > 0.6
    assert one([1.0, 10.0], [1.0, 1.1, 0.9], ratio=True).mine == pytest.approx(10**0.5), (
        "a mean of logarithms"
    )
