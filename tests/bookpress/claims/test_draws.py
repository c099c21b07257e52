"""Draws: joined seed by seed, counted only where they measured the same, kept when published."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_book
from conftest import ROOT, bnbook
from locked_coin import CLAIM, COIN, MEASURED, coin, lock, run, stamped
from scipy import stats

from bnbook import rules
from bnbook.errors import BnbookError
from bookpress import claims, results
from bookpress.claims import Test, draws, locks
from bookpress.claims.draws import columns
from bookpress.claims.kinds import evaluate
from bookpress.cli import main
from bookpress.pipeline import chapter_runs, gate, prose, publishing
from bookpress.pipeline.chapters import select
from bookpress.site import verdicts


def t_interval(values):
    n, mean = len(values), sum(values) / len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    half = stats.t.ppf(0.975, n - 1) * spread / math.sqrt(n)
    return mean, mean - half, mean + half


# The union

ABOVE = {"side": "greater", "threshold": 1.0}


@pytest.mark.parametrize("test, lost, counts", [
    (Test("level", a="a", **ABOVE), {"a": [math.nan, 5.0, 6.0]}, {"a": [5.0, 7.0, 6.0]}),
    (Test("level", a="a", **ABOVE, events=True), {"a": [0.0, 0.0, 1.0]}, {"a": [1.0, 1.0, 1.0]}),
    (Test("ratio", a="a", b="b", **ABOVE), {"a": [0.0, -1.0, 2.0], "b": [1.0] * 3}, {"a": [3.0, 4.0, 5.0], "b": [1.0] * 3}),
    (Test("identity", a="a", tolerance=1e-6), {"a": [-3e-3, 0.0, 0.0]}, {"a": [1e-9, 1e-9, 0.0]}),
    (Test("inequality", a="a", b="b"), {"a": [0.0, 2.0, 0.0], "b": [9.0] * 3}, {"a": [0.0, 0.0, 0.0], "b": [9.0] * 3}),
])  # fmt: skip
def test_of_a_seed_the_last_draw_counts_whatever_an_earlier_one_gave(test, lost, counts):
    """What diverged, an event that did not happen, what has no logarithm, a violation: only of seeds drawn once."""
    first, last, alone = run(lost, range(3)), run(counts, range(3)), run(counts, range(1, 4))
    assert evaluate(test, replace(last, draws=(first,)), "c") == evaluate(test, last, "c")
    other = evaluate(test, replace(alone, draws=(first,)), "c") if test.kind != "ratio" else None
    assert other is None or (other.n, other.holds) != (3, True)


def test_a_result_that_a_draw_has_not_is_that_of_the_others():
    """Of a ladder: one size that only the last run has, one that earlier draws have, too, in any order of seeds."""
    first, second = run({"a": [9.0, 3.0, 1.0]}, (5, 1, 0)), run({"a": [8.0]}, (5,))
    last = run({"a": [3.0, 7.0], "b": [2.0, 4.0]}, (0, 2))
    read = lambda test: columns(test, replace(last, draws=(first, second)))
    for test, seeds, values in (
        (Test("level", a="a", **ABOVE), [0, 1, 2, 5], [[3.0, 3.0, 7.0, 8.0]]),
        (Test("difference", a="a", b="b", **ABOVE), [0, 2], [[3.0, 7.0], [2.0, 4.0]]),
    ):
        assert read(test)[0] == seeds and read(test)[1].tolist() == values


# Which draws count

OTHER = {
    "measured otherwise": {"code": {**MEASURED, "package": "q"}},
    "other settings": {"width": 16},
    "other data": {"code": {**MEASURED, "data": "e"}},
}


@pytest.mark.parametrize("why", OTHER)
def test_a_draw_of_another_measure_is_not_pooled(book, why):
    locks.append([lock(first_seed=3)])
    earlier = run({"x": [-5.0, -6.0, -7.0]}, range(3, 6), head=locks.read().head(COIN), first_seed=3)
    locks.append([lock(seen={"laptop": [[3, 5]]}, why="on others", first_seed=0)])
    head = locks.read().head(COIN)
    last = run({"x": [1.0, 1.1, 1.2]}, range(3), head=head, first_seed=0)
    other = run({"x": [-5.0, -6.0, -7.0]}, range(3), head=head, **OTHER[why], first_seed=0)
    assert draws.left_out(CLAIM, other, last) == why
    with_it, alone, pooled = (
        claims.judge(CLAIM, replace(last, draws=draws), "laptop") for draws in ((other,), (), (earlier,))
    )
    assert with_it == alone and with_it["n"] == 3 and with_it["verdict"] == "reproduced"
    assert pooled["n"] == 6 and pooled["verdict"] != "reproduced"


def test_code_that_gave_the_same_numbers_measures_the_same(book):
    """By a `carried` line of the claim, at its profile."""
    locks.append([lock()])
    new = {**MEASURED, "package": "q"}
    first, last = run({"x": [1.0, 2.0, 3.0]}, range(3)), run({"x": [4.0, 5.0, 6.0]}, range(3), code=new)
    assert draws.left_out(CLAIM, first, last) == "measured otherwise"
    ways = {"was": locks.run_measure(first.header), "now": locks.run_measure(last.header)}
    carried = {"event": "carried", "chapter": COIN, "profile": "laptop", "claims": ["fair"]}
    locks.append([carried | {key: list(way) for key, way in ways.items()}])
    assert draws.counting(CLAIM, replace(last, draws=(first,))) == (first,)


def test_a_draw_that_lacks_what_a_test_reads_is_left_out_and_one_of_a_ladder_is_not(book):
    first, last = run({"y": [1.0, 2.0]}, range(2)), run({"x": [4.0, 5.0], "y": [1.0, 3.0]}, range(2))
    two = replace(CLAIM, test=replace(CLAIM.test, b="y", kind="difference"))
    assert draws.left_out(two, first, last) == "it lacks what the test reads"
    assert claims.judge(two, replace(last, draws=(first,)), "laptop")["n"] == 2
    assert draws.left_out(replace(two, rungs=True), first, last) == ""


def test_what_a_test_had_seen_does_not_count_beside_fresh_seeds(book):
    """And of two draws that it had not seen, or where it is exploratory anyway, both count."""
    locks.append([lock()])
    before = locks.read().head(COIN)
    moved = replace(CLAIM, test=replace(CLAIM.test, threshold=0.5))
    locks.append([lock(moved, {"laptop": [[0, 2]]}, "moved", first_seed=100)])
    now = locks.read().head(COIN)
    seen = run({"x": [-5.0, -6.0, -7.0]}, range(3), head=before)
    fresh, another = (
        run({"x": x}, range(100, 103), head=now, first_seed=100) for x in ([2.0, 2.1, 2.2], [3.0, 3.1, 3.3])
    )
    assert draws.left_out(moved, seen, fresh) == draws.SEEN
    assert draws.left_out(moved, fresh, another) == "" == draws.left_out(moved, seen, seen)
    found = claims.judge(moved, replace(another, draws=(seen, fresh)), "laptop")
    assert found["n"] == 3 and found["effect"]["number"] == pytest.approx((3.0 + 3.1 + 3.3) / 3, 1e-5)
    assert found["other_margins"] == ["reproduced"] * 2, "by the draws of the verdict"


def test_the_published_run_itself_or_fewer_seeds_of_it_are_no_other_draw(book):
    last = run({"x": [1.0, 2.0, 3.0]}, range(3))
    fewer, rounded = run({"x": [2.0]}, [1]), run({"x": [1.0 + 1e-12, 2.0, 3.0]}, range(3))
    assert draws.distinct(CLAIM, replace(last, draws=(fewer, rounded, last))) == []
    other = run({"x": [1.0, 2.0, 3.1]}, range(3))
    assert draws.distinct(CLAIM, replace(last, draws=(other, last))) == [other]
    assert draws.distinct(CLAIM, replace(last, draws=(other, other))) == [other]


# What is kept


def drawn_again(by):
    """As if another processor had made the run that waits to be published."""

    def change(content):
        content["results"]["heads"]["values"] = [v + by for v in content["results"]["heads"]["values"]]

    stamped(chapter_runs.fresh_run(coin(), "laptop"), change)


PROCESSOR = "int(os.environ.get('COIN_PROCESSOR', 0))"
CHAOTIC = tiny_book.CHAPTER.replace("default_rng(seed)", f"default_rng([seed, {PROCESSOR}])").replace(
    "import numpy as np\n", "import os\nimport numpy as np\n"
)


def test_a_rerun_keeps_the_former_draw_and_the_verdict_rests_on_the_last_of_each_seed(
    tmp_path, capsys, monkeypatch
):
    """From one end to the other: run, publish, run on another processor, publish; page, exports, check."""
    tiny_book.write(tmp_path, ROOT / "_config.yml", CHAOTIC)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    bnbook("lock", root=tmp_path)
    for words in (["init", "-q"], ["add", "book", "_config.yml", "_toc.yml"], ["commit", "-qm", "A coin"]):
        subprocess.run([*git, *words], check=True)
    given = []
    for processor in "12":
        bnbook("run", "coin", "--profile", "laptop", root=tmp_path, COIN_PROCESSOR=processor)
        bnbook("publish", "coin", root=tmp_path)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", f"Published on processor {processor}"], check=True)
        written = json.loads((tmp_path / "executed/laptop/part/coin.json").read_text())
        given.append(written["results"]["heads"]["values"])
    assert given[0] != given[1]
    (line,) = json.loads((tmp_path / "executed/draws/laptop/part/coin.json").read_text())["draws"]
    assert line["results"]["heads"]["values"] == given[0] and line["header"]["chapter"] == COIN
    assert "draws" in line["results"]  # one number a seed, though no claim of now reads it
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    found = chapter_runs.published(coin(), "laptop")
    (claim,) = claims.chapter_claims(COIN)
    judged = claims.judge(claim, found.results, "laptop")
    expected = t_interval(given[1])
    numbers = [judged["effect"]["number"], judged["interval"]["low"], judged["interval"]["high"]]
    np.testing.assert_allclose(numbers, expected, rtol=1e-5)
    assert len(draws.counting(claim, found.results)) == 1
    np.testing.assert_allclose(found.quoted("heads")[1], given[1])
    assert main(["check"]) == 0
    said = bnbook("claims", COIN, "--json", root=tmp_path).stdout
    assert f"{expected[0]:.3f}"[:5] in said
    # by an older checkout the former run would be lost: docs/draws.md enters it from the history
    kept_path = tmp_path / "executed/draws/laptop/part/coin.json"
    before = kept_path.read_text()
    kept_path.unlink()
    recipe = re.search(r"```python\n(.*?)```", (ROOT / "docs/draws.md").read_text(), re.S)[1]
    monkeypatch.chdir(tmp_path)
    exec(recipe.replace("santurkar/landscape", COIN).replace("COMMIT", "HEAD~1"), {})
    assert kept_path.read_text() == before
    exec(recipe.replace("santurkar/landscape", COIN).replace("COMMIT", "HEAD~1"), {})
    assert kept_path.read_text() == before  # entered once, however often


def test_where_fresh_seeds_alone_say_otherwise_their_word_stands_beside_the_verdict():
    """Other norms: the last draw alone leaves open what both together decide; the mark behind a sentence says so."""
    found = chapter_runs.published(select(["santurkar/lp-norms"])[0], "laptop")
    fresh, own = {}, {claim.id: claim for claim in claims.chapter_claims(found.chapter.name)}
    for one in chapter_runs.chapter_verdicts(found):
        claim = own[one["id"]]
        alone = claims.verdict(claim, replace(found.results, draws=()), "laptop")
        assert one["fresh"] in ("", alone) and one["fresh"] != one["verdict"]
        fresh[claim.id] = one["fresh"]
        if draws.counting(claim, found.results):
            assert bool(one["fresh"]) == (alone != one["verdict"])
    assert fresh["lp-vgg-comparable-end"] == "open" and "" in fresh.values()
    rows = {one["id"]: one for one in chapter_runs.chapter_verdicts(found)}
    mark = verdicts.marked(rows, "")
    names = ("lp-vgg-comparable-end", "lp-no-control")
    said = {name: mark(prose.Mark(name, "reproduced", "reproduced", True)) for name in names}
    assert "fresh seeds alone: open" in said["lp-vgg-comparable-end"] and "fresh" not in said["lp-no-control"]


def test_a_run_that_changes_no_number_is_no_draw_and_none_is_ever_lost(ran):
    published = publishing.publish(coin(), "laptop")
    path, first = results.draws_path(published.results_path), published.results.entries["heads"]
    publishing.publish(coin(), "laptop")
    assert not path.exists()
    for number in (1, 2):
        drawn_again(0.01)
        publishing.publish(coin(), "laptop")
        assert len(results.read_draws(path)) == number
    publishing.publish(coin(), "laptop")
    assert len(results.read_draws(path)) == 2
    stamped(chapter_runs.fresh_run(coin(), "laptop"), lambda content: content["results"].update(heads=first))
    publishing.publish(coin(), "laptop")  # the first numbers once more: the others are kept
    assert len(results.read_draws(path)) == 2
    assert first not in [draw.entries["heads"] for draw in results.read_draws(path)]
    assert publishing.executed_problems([coin()]) == {"laptop/part/coin": []}


def test_an_exact_chapter_has_no_draws(ran):
    publishing.publish(coin(), "laptop")
    found = chapter_runs.published(coin(), "laptop").results
    other = replace(found, entries={n: {**e, "values": [0.0] * 5} for n, e in found.entries.items()})
    assert len(publishing.with_replaced(coin(), found, other)) == 1
    assert publishing.with_replaced(replace(coin(), exact=True), found, other) == []


def test_a_file_of_draws_that_is_not_whole_is_one_line(ran, capsys):
    path = with_a_draw()
    broken = ["", "{", "[]", '{"draws": [{}]}', '{"draws": [{"header": {}, "results": {}}]}']
    for seeds in ([0, 1, 2, 3], [0] * 5):
        content = json.loads(path.read_text())
        content["draws"][0]["results"]["heads"]["seeds"] = seeds
        broken.append(json.dumps(content))
    for text in broken:
        path.write_text(text)
        with pytest.raises(BnbookError, match="draws/laptop/part/coin.json is no whole file of draws; git"):
            results.load(COIN)
    assert main(["check"]) == 1
    said = capsys.readouterr()
    assert "is no whole file of draws" in said.out and "Traceback" not in said.out + said.err


def with_a_draw():
    publishing.publish(coin(), "laptop")
    drawn_again(0.01)
    return results.draws_path(publishing.publish(coin(), "laptop").results_path)


def test_a_draw_that_was_changed_or_lies_elsewhere_is_named(ran, capsys):
    path = with_a_draw()
    good = path.read_text()
    assert gate.passed_run(coin()) is not None  # which is remembered
    path.write_text(good.replace('"values":[0.', '"values":[1.', 1))
    assert gate.passed_run(coin()) is None and main(["check"]) == 1
    assert "draws/laptop/part/coin.json is no whole file of draws" in capsys.readouterr().out
    (draw,) = results.read_draws(path) if path.write_text(good) else ()
    draw.header["provenance"]["device"] = "[a](b)"
    publishing.write(path, [draw])
    assert main(["check"]) == 1 and "'[a](b)' has markup; expected plain words" in capsys.readouterr().out
    draw.header["chapter"] = "part/dice"
    publishing.write(path, [draw])
    assert gate.passed_run(coin()) is None and main(["check"]) == 1
    assert "a draw of part/dice at laptop lies among those of laptop/part/coin" in capsys.readouterr().out
    shutil.rmtree(ran / "executed" / "laptop")
    assert main(["check"]) == 1
    assert "draws/laptop/part/coin.json belongs to no chapter; remove it" in capsys.readouterr().out


def test_the_page_counts_what_draws_changed(ran):
    """Numbers that stay within a thousandth are none, whoever made them; a run counts against the next one."""
    publishing.publish(coin(), "laptop")
    for by in (1e-5, 0.5, -0.5):
        drawn_again(by)
        publishing.publish(coin(), "laptop")
    found = Counter(rules.redrawn(claims.load_claims()))
    assert found == {(rules.WAYS[0], True, False): 1, (rules.WAYS[0], False, True): 1}
    said = rules.redrawings(claims.load_claims())
    assert said["same_tests"] == said["same_turned"] == said["same_reversed"] == "2"
    assert said["other_tests"] == "0" and said["other_reversed"] == "none"
    assert "| the same seeds, the same measure | 2 | 2 | 0 | 2 |" in said["draws"]


def test_numbers_below_a_figure_are_those_of_the_run_that_it_draws(ran):
    publishing.publish(coin(), "laptop")
    first = chapter_runs.published(coin(), "laptop").results["heads"]
    drawn_again(0.5)
    path = results.draws_path(publishing.publish(coin(), "laptop").results_path)
    (draw,) = results.read_draws(path)
    draw.entries["heads"]["seeds"] = [0, 1, 2, 3, 100]  # as if the former had had one that the last has not
    publishing.write(path, [draw])
    book = prose.Pages({COIN: chapter_runs.published(coin(), "laptop")}, claims.load_claims())
    token, both = "{{ mean:heads | .4f }}", "{{ ratio:heads / 0.25 | .2f }}"
    figure = f"```{{figure}} coin.svg\n:alt: {token}\n\n{token}\n```\n"
    filled = prose.fill(f"{token}\n\n{figure}\n{token}", COIN, book)
    last = first.mean() + 0.5
    together, alone = f"{(5 * last + first[4]) / 6:.4f}", f"{last:.4f}"
    assert filled == f"{together}\n\n{figure.replace(token, alone)}\n{together}"
    assert prose.fill(both, COIN, book) not in prose.fill(figure.replace(token, both), COIN, book)


# What the book keeps


def files():
    return sorted((ROOT / "executed" / "draws").glob("*/*/*.json"))


@pytest.mark.parametrize("path", files(), ids=lambda path: "-".join(path.parts[-3:]))
def test_every_draw_of_the_book_is_as_it_was_published(path):
    """Its hash, by other code than what wrote it, and as many values as seeds."""
    for draw in json.loads(path.read_text())["draws"]:
        written = draw["header"].pop("digest")
        text = json.dumps(draw, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert hashlib.sha256(text.encode()).hexdigest() == written
        for entry in draw["results"].values():
            assert len(entry["values"]) == len(set(entry["seeds"]))
    assert Path(str(path).replace("executed/draws", "executed")).is_file()


def test_what_is_said_together_is_quoted_as_the_test_of_just_that_reads_it(monkeypatch):
    """The ratio counts an earlier draw, the difference does not: a sentence on either has its own seeds."""
    made = lambda seeds, a, b: results.Results(
        {}, {n: {"values": v, "seeds": seeds, "unit": "", "note": ""} for n, v in {"a": a, "b": b}.items()}
    )
    before, last = made([1, 2], [4.0, 9.0], [1.0, 1.0]), made([1, 3], [1.0, 5.0], [2.0, 2.0])
    side = {"side": "greater", "threshold": 1.0}
    pooled = replace(CLAIM, test=Test("ratio", a="a", b=2.0, **side), parts=())
    fresh = replace(CLAIM, test=Test("difference", a="a", b="b", **side), parts=())
    monkeypatch.setattr(draws, "counting", lambda claim, results: (before,) if claim == pooled else ())
    quoted = lambda together: draws.as_quoted("a", last, [pooled, fresh], together)
    for together, seeds, values in (
        (("a", "b"), [1, 3], [1.0, 5.0]),
        (("a",), [1, 2, 3], [1.0, 9.0, 5.0]),
        (("a", "other"), [1, 2, 3], [1.0, 9.0, 5.0]),
    ):
        found = quoted(together)
        assert sorted(found[0]) == seeds
        assert [found[1][found[0].index(seed)] for seed in seeds] == pytest.approx(values)
