"""Sentences that state a verdict, numbers of two results, `{measured}` tables: against NumPy and by hand, and what is
refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT

from bnbook.errors import BnbookError
from bookpress import claims
from bookpress.claims import judging
from bookpress.pipeline import chapter_runs, chapters, gate, prose
from bookpress.results import Results
from bookpress.site import check

A, B = np.array([0.30, 0.34, 0.41]), np.array([0.10, 0.11, 0.12])


class Run:
    """What tokens ask a run for."""

    is_published, profile, chapter = True, "laptop", SimpleNamespace(exact=False)
    results = Results(
        entries={
            name: {"values": values.tolist(), "unit": "", "seeds": seeds, "note": ""}
            for name, values, seeds in (
                ("a", A, [0, 1, 2]),
                ("b", B, [0, 1, 2]),
                ("mixed", A - 0.35, [0, 1, 2]),
                ("times", 4 * A, [0, 1, 2]),
                ("others", B, [7, 8, 9]),
                ("speed.w1.batch", A, [0, 1, 2]),
                ("speed.w1.none", B, [0, 1, 2]),
            )
        }
    )

    def per_seed(self, name, index=None, *, alone=False, together=()):
        if name not in self.results:
            raise ValueError(f"no result {name!r}")
        return self.results[name]

    def quoted(self, name, together=()):
        return self.results.entries[name]["seeds"], self.results[name]


class Pages(prose.Pages):
    verdicts = {"loss-falls": judging.NOT_REPRODUCED, "two-parts": judging.MIXED}

    def claim(self, name):
        if name not in self.verdicts:
            raise ValueError(f"no claim {name!r}")
        tests = [claims.Test("ratio", a="a", b=other, side="less", threshold=1.0) for other in ("b", "mixed")]
        parts = tuple(claims.Part("one or two", test) for test in tests)
        source = claims.Source("key", "version", "where")
        own = {"parts": parts} if name == "two-parts" else {"test": tests[0]}
        return claims.Claim(name, "part/page", source, "It falls.", "curve", **own)

    def judgement(self, claim):
        name = claim.id
        if self.evidence["part/page"] is None:
            return None
        parts = (("one", judging.REPRODUCED, None), ("two", judging.NOT_REPRODUCED, None))
        found = claims.Judgement(None, self.verdicts[name], 0.0, (0.0, 0.0), 3)
        return found if name == "loss-falls" else judging.replace(found, parts=parts)


RUN = Run()


def fill(text, run=RUN):
    return prose.fill(text, "part/page", Pages({"part/page": run}, []))


def mark(guard, stated="yes", run=RUN):
    return prose.mark_of(f"{guard} = {stated}", "part/page", Pages({"part/page": run}, []))


def test_a_size_that_a_run_has_not_reached_is_open_and_a_slip_of_the_pen_is_one():
    assert mark("speed.w1.batch > speed.w1.none").now == "yes"
    assert mark("speed.long.batch > speed.long.none").now == "open"
    for slip in ("sped.long.batch > speed.long.none", "speed.long.bach > speed.long.none", "c > b"):
        with pytest.raises(ValueError, match="no result"):
            mark(slip)


@pytest.mark.parametrize(
    ("guard", "word"),
    [
        ("a > b", "yes"),
        ("a < b", "no"),
        ("geo:a < b", "no"),
        ("a > 0.2", "yes"),
        ("a > 0.35", "open"),
        ("mixed > 0", "open"),
        ("loss-falls", "not reproduced"),
        ("two-parts", "mixed"),
        ("two-parts[b]", "reproduced"),
        ("two-parts[mixed]", "not reproduced"),
    ],
)
def test_a_sentence_stands_by_its_claim_its_part_or_the_interval_of_a_comparison(guard, word):
    assert mark(guard).now == word and mark(guard, word).turned == ""
    assert fill(f"It is so. {{{{ stands:{guard} = {word} }}}}\nMore.") == "It is so.\nMore."


#: Profile, whether its parameters are the profile's, whether it is published -> beside "it falls = reproduced" where the
#: run says "not reproduced", "open", and was not tested.
RUNS = {
    ("laptop", True, True): ("now: not reproduced", "now: open", ""),
    ("laptop", True, False): ("now: not reproduced", "now: open", ""),
    ("paper", True, False): ("now: not reproduced", "now: open", ""),
    ("laptop", False, False): ("this run: not reproduced", "", ""),
    ("smoke", True, False): ("this run: not reproduced", "", ""),
}


@pytest.mark.parametrize("kind", RUNS)
def test_a_run_that_counts_says_what_holds_now_and_another_one_what_it_decides(monkeypatch, kind):
    run = Run()
    run.profile, default, run.is_published = kind
    run.results = Results(header={"default_parameters": default}, entries=Run.results.entries)
    monkeypatch.setattr(chapter_runs, "published_runs", lambda _: [])
    for verdict, beside in zip(
        (judging.NOT_REPRODUCED, judging.OPEN, judging.NOT_TESTED), RUNS[kind], strict=True
    ):
        monkeypatch.setitem(Pages.verdicts, "loss-falls", verdict)
        assert mark("loss-falls", "reproduced", run).turned == beside
        assert mark("loss-falls", prose.WORD_FOR[verdict], run).turned == ""
        text = "It falls. {{ stands:loss-falls = reproduced }}"
        assert fill(text, run) == "It falls." + f" ({beside})" * bool(beside)


def test_a_smoke_run_tries_no_comparison():
    run = Run()
    run.profile = "smoke"
    assert mark("a > b", "no", run).now == "not tested"
    run.chapter = SimpleNamespace(exact=True)
    assert mark("a > b", "no", run).now == "yes"


def test_an_alternative_text_has_no_chip():
    shown = {"stands": lambda mark: f"<{mark.claim or mark.guard}>"}
    text = "```{figure} x.svg\n:alt: It falls {{ stands:loss-falls = open }}.\n\nIt falls. {{ stands:a > b = yes }}\n```"
    filled = prose.fill(text, "part/page", Pages({"part/page": RUN}, []), shown)
    assert filled == "```{figure} x.svg\n:alt: It falls (now: not reproduced).\n\nIt falls. <a > b>\n```"


def test_numbers_of_two_results():
    log = np.log(A / B)
    half = 4.302653 * log.std(ddof=1) / 3**0.5
    edges = [f"{np.exp(log.mean() + sign * half):.2f}" for sign in (-1, 1)]
    assert fill("{{ times:a / b | .3f }}") == f"{np.exp(log.mean()):.3f}"
    assert fill("{{ ratio:a/b | .2f }}").endswith(f"(95 % interval {edges[0]} to {edges[1]})")
    assert fill("{{ points:a - b | .1f }}") == f"{100 * (A - B).mean():.1f}"
    assert fill("{{ gap:a - b | .1f }}").startswith("24.0 points (95 % interval ")
    assert fill("{{ ratio:a / b | .2f times as much }}").startswith(
        f"{np.exp(log.mean()):.2f} times as much (95"
    )
    below = f"<br><small>{edges[0]} to {edges[1]}</small>"
    assert fill("| {{ ratio:a / b \\| .2f }} |") == f"| {np.exp(log.mean()):.2f}{below} |"
    assert fill("{{ seeds:a > 0.33 }} and {{ seeds:a < b }}") == "2 of 3 and 0 of 3"
    for verb in ("points", "gap"):
        with pytest.raises(BnbookError, match="points are of shares, and one of these is none"):
            fill(f"{{{{ {verb}:a - times }}}}")


def test_how_sure_says_how_many_tests_stood_before_the_run():
    def found(exploratory="", pooled=False):
        return claims.Judgement(
            None, judging.OPEN, 0.0, (0.0, 0.0), 3, exploratory=exploratory, pooled=pooled
        )

    sure, late, more = chapter_runs.how_sure, found("test after its data"), found("5 seeds where 3 were")
    assert sure([found(), found()]) == "All 2 tests of this chapter were fixed before its run"
    assert sure([found(), late, found()]) == (
        "2 of the 3 tests of this chapter were fixed before its run, the other is exploratory (test after its data)"
    )
    assert sure([late, more, more]) == (
        "The 3 tests of this chapter are exploratory (5 seeds where 3 were, test after its data)"
    )
    assert sure([]) == "No test"
    assert sure([found(pooled=True), late]).endswith(
        "(test after its data). One counts the seeds of earlier runs, too"
    )
    assert sure([found(pooled=True), found(pooled=True)]).endswith(
        "before its run. All count the seeds of earlier runs, too"
    )


def test_without_a_run_nothing_is_said():
    text = "{{ times:a / b }} {{ stands:loss-falls = yes }} {{ stands:a > b = yes }}"
    assert fill(text, None) == "—"


@pytest.mark.parametrize(
    "bad",
    [
        "{{ times:a / c }}",
        "{{ times:a - b }}",
        "{{ ratio:mixed / a }}",
        "{{ times:a / others }}",
        "{{ stands:a > others = yes }}",
        "{{ stands:a = yes }}",
        "{{ stands:a > c = yes }}",
        "{{ stands:two-parts[c] = yes }}",
        "{{ stands:two-parts[a] = yes }}",
        "{{ stands:two-parts[1] = yes }}",
        "{{ stands:loss-falls[a] = yes }}",
    ],
)
def test_what_asks_for_nothing_that_exists_is_refused_in_one_line(bad):
    with pytest.raises(BnbookError, match="on page part/page") as error:
        fill(bad)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (":loss-fells = yes", "no claim 'loss-fells'"),
        (":loss-falls = refuted", "'refuted' is no verdict; expected one of reproduced, mixed"),
        (":loss-falls = reproduced, mixed", "'reproduced, mixed' is no verdict"),
        (":loss-falls", "expected `stands:CLAIM = VERDICT`"),
        (": = yes", "expected `stands:CLAIM = VERDICT`"),
        ("", "expected `stands:CLAIM = VERDICT`"),
    ],
)
def test_a_mark_without_claim_or_verdict_is_refused_in_one_line(what, words):
    with pytest.raises(BnbookError) as caught:
        fill(f"It falls. {{{{ stands{what} }}}}")
    message = str(caught.value)
    assert words in message and "on page part/page" in message and "\n" not in message


def test_the_gate_sees_the_results_and_the_slips_of_every_sentence():
    text = "{{ mean:c }} {{ median:d }} {{ times:e / f }} {{ stands:a > other/page#b[1] = yes }} {{ stands:g > 2 = no }}"
    own = {(None, name) for name in "acdefg"}
    assert prose.result_names(text) == own | {("other/page", "b")}
    assert prose.malformed(text) == []
    slips = ["{{ meen:c }}", "{{ says:a | b / c / d }}", "{{ waffle }}"]
    assert prose.malformed(" ".join(slips)) == slips
    assert prose.malformed(" ".join(slips), {"waffle": ""}) == slips[:2]


def test_no_page_keeps_a_token_that_nothing_fills():
    assert prose.fill("{{ binder }}", "run", Pages({}, []), {"binder": "a link"}) == "a link"
    with pytest.raises(BnbookError, match="run.md: {{ blinder }} is not a token"):
        prose.fill("{{ blinder }}", "run", Pages({}, []), {"binder": "a link"})


def test_a_median_counts_a_diverged_seed_as_infinite_and_a_value_is_exactly_that_of_every_seed():
    assert prose.STATISTICS["median"](np.array([1.0, 2.0, np.nan])) == 2
    assert prose.STATISTICS["median"](np.array([1.0, np.nan, np.nan])) == np.inf
    assert np.isnan(prose.STATISTICS["value"](np.array([np.nan, np.nan])))
    with pytest.raises(ValueError, match="differ"):
        prose.STATISTICS["value"](np.array([1.0, 1.0 + 1e-9]))


def test_seeds_that_are_equal_are_on_no_side(monkeypatch):
    both = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])
    monkeypatch.setattr(prose, "values", lambda *_: both)
    for sign in "<>":
        assert fill(f"{{{{ seeds:a {sign} b }}}}") == "1 of 3"


# ---- `{measured}` tables ----


def expanded(body: str) -> str:
    return prose.expand(f"Before.\n\n```{{measured}}\n{body.strip()}\n```\n\nAfter.")


def lines(body: str) -> list[str]:
    text = expanded(body)
    assert text.startswith("Before.\n\n|") and text.endswith("|\n\nAfter.")
    return text.split("\n")[2:-2]


def test_rows_with_a_name_for_the_column():
    assert lines(
        """
corner: median
columns: {without: none, 'with it': batch}
statistic: geo
format: .2g
rows:
  range of the loss: loss_range.{column}
  share of steps: share:smoother.{column} | .0%
  seeds: n:loss_range.{column}
  verdict: ['verdict:loss-none', see below]
  in words: [–, 'about {{ mean:loss.{column} | .1f }}']
"""
    ) == [
        "| median | without | with it |",
        "| --- | --- | --- |",
        r"| range of the loss | {{ geo:loss_range.none \| .2g }} | {{ geo:loss_range.batch \| .2g }} |",
        r"| share of steps | {{ share:smoother.none \| .0% }} | {{ share:smoother.batch \| .0% }} |",
        "| seeds | {{ n:loss_range.none }} | {{ n:loss_range.batch }} |",
        "| verdict | {{ verdict:loss-none }} | see below |",
        r"| in words | – | about {{ mean:loss.batch \| .1f }} |",
    ]


def test_columns_with_names_that_the_rows_give():
    assert lines(
        r"""
columns:
  theory: value:theory.{net}.{arm}
  $q_{xy}$: ci:other/chapter#seen.{net}.{arm}[-1] | .3f
  in full: '{words}'
format: .0f
rows:
- '{{ param:width }} units': {net: fc, arm: none, words: '$\hat q^{l}$'}
- '{{ param:width }} units': {net: conv, arm: batch, words: 'effect:a-claim'}
- a third: [–, 'a | b', mean of all]
"""
    ) == [
        "| | theory | $q_{xy}$ | in full |",
        "| --- | --- | --- | --- |",
        r"| {{ param:width }} units | {{ value:theory.fc.none \| .0f }}"
        r" | {{ ci:other/chapter#seen.fc.none[-1] \| .3f }} | $\hat q^{l}$ |",
        r"| {{ param:width }} units | {{ value:theory.conv.batch \| .0f }}"
        r" | {{ ci:other/chapter#seen.conv.batch[-1] \| .3f }} | {{ effect:a-claim \| .0f }} |",
        r"| a third | – | a \| b | mean of all |",
    ]


def test_the_last_cell_serves_all_further_columns():
    found = lines("columns: {a: x, b: y, c: z}\nstatistic: mean\nrows:\n  r: [–, 'gap.{column}']")
    assert found[2] == r"| r | – | {{ mean:gap.y \| .3g }} | {{ mean:gap.z \| .3g }} |"


def test_every_statistic_of_a_cell_is_a_token():
    for verb in prose.FORMATTED + prose.PLAIN:
        row = lines(f"columns: {{a: x}}\nrows: {{r: ['{verb}:some-name']}}")[2]
        assert prose.TOKEN.search(row)["verb"] == verb
    assert set(prose.STATISTICS) <= {*prose.FORMATTED, *prose.PLAIN}


REFUSED = {
    "rows: {a: b}": "has rows; expected columns and rows",
    "columns: [": "is not YAML",
    "columns: {a: x, a: y}\nrows: {r: 'v.{column}'}": "'a' stands there and in line 1",
    "columns: {a: x}\nrows: 3": "has rows '3'; expected `title: text` lines",
    "columns: {a: x}\nrows: {r: 'v.{colunm}'}": "row 'r' asks for {colunm}; expected one of column",
    "columns: {a: x}\nrows: {r: v}": "row 'r' has no cells",
    "columns: {a: x, b: y}\nrows: {r: [one]}": "row 'r' has 1 cells; expected 2, one a column",
    "columns: {a: x}\nrows: {r: 'goe:v.{column}'}": "row 'r' has the cell 'goe:v.x'; expected mean",
    "columns: {a: x, b: y}\nrows: {r: [v.with, the same]}": "row 'r' has the cell 'v.with'; expected mean",
    "columns: {a: x}\nstatistic: mode\nrows: {r: v}": "has statistic 'mode'; expected one of mean",
}


@pytest.mark.parametrize("body,words", REFUSED.items(), ids=list(REFUSED.values()))
def test_a_mistake_is_one_line_that_names_the_table(body, words):
    with pytest.raises(BnbookError) as caught:
        prose.expand(f"```{{measured}}\n{body}\n```\n", "part/coin")
    message = str(caught.value)
    assert words in message and "\n" not in message
    assert message.startswith("page part/coin: {measured} table '")


def test_the_gate_asks_for_what_a_table_names(ran):
    path = ran / "book" / "part" / "coin.md"
    text = path.read_text()
    block = (
        "```{measured}\ncolumns: {a: heads, b: tails}\nrows: {r: 'ci:{column} | .1%'}\n```\n\n{{ verdicts }}"
    )
    path.write_text(text.replace("{{ verdicts }}", block))
    run = chapter_runs.fresh_run(chapters.select(["coin"])[0], "smoke")
    assert list(gate.required_results(run)) == ["result 'tails' is missing; the text or a claim needs it"]
    path.write_text(path.read_text().replace("rows:", "rwos:"))
    run = chapter_runs.fresh_run(chapters.select(["coin"])[0], "smoke")
    assert [problem for problem in gate.required_results(run) if "{measured} table" in problem]


def test_what_another_run_has_may_be_missing(ran):
    """A rung that was not reached; a name that is like no other is a slip."""
    path = ran / "book" / "part" / "coin.md"
    text = path.read_text().replace('record("heads", shares', 'record("heads.w1", shares')
    rows = "columns: {a: w1, b: w2}\nrows: {r: 'ci:heads.{column} | .1%'}"
    block = f"```{{measured}}\nmissing: not reached\n{rows}\n```"
    path.write_text(text.replace("{{ verdicts }}", block + "\n\n{{ mean:hades.w2 | .1% or none }}"))
    run = chapter_runs.fresh_run(chapters.select(["coin"])[0], "laptop")
    for entry in ("heads.w1", "early.w3"):
        run.results.entries[entry] = run.results.entries["heads"]
    problems = [each for each in gate.required_results(run) if "missing" in each]
    assert problems == ["result 'hades.w2' is missing; the text or a claim needs it"]
    shown = prose.fill(block, "part/coin", prose.Pages({"part/coin": run}, []))
    assert shown.endswith("</small> | not reached |")


def test_a_table_shows_what_its_tokens_would(ran):
    run = chapter_runs.fresh_run(chapters.select(["coin"])[0], "laptop")
    book = prose.Pages({"part/coin": run}, [])
    block = (
        "```{measured}\ncolumns: {share: heads}\nstatistic: ci\nformat: .1%\nrows: {heads: '{column}'}\n```"
    )
    by_hand = "| | share |\n| --- | --- |\n| heads | {{ ci:heads \\| .1% }} |"
    shown = prose.fill(block, "part/coin", book)
    assert shown == prose.fill(by_hand, "part/coin", book) and "<small>" in shown and "{" not in shown


def test_every_table_of_the_book_is_read():
    texts = [path.read_text(encoding="utf-8") for path in sorted(ROOT.glob("book/*/*.md"))]
    assert sum(len(prose.MEASURED.findall(text)) for text in texts) >= 20
    assert not [text for text in texts if "{measured}" in prose.expand(text)]


# ---- What check says of sentences ----


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (
            "stands:coin-fair = not reproduced",
            "BAD book/part/coin.md:{} states coin-fair = not reproduced; it is reproduced now: rewrite the sentence",
        ),
        (
            "stands:coin-fare = reproduced",
            "      book/part/coin.md:{} {{{{ stands:coin-fare = reproduced }}}}: no chapter has a claim 'coin-fare'",
        ),
        ("stands:coin-fair = reproduced", ""),
    ],
)
def test_check_names_the_line_of_a_sentence_that_does_not_stand(ran, monkeypatch, mark, words):
    monkeypatch.setattr(gate, "passed_run", lambda chapter: chapter_runs.fresh_run(chapter, "laptop"))
    path = ran / "book" / "part" / "coin.md"
    path.write_text(
        path.read_text().replace("{{ verdicts }}", f"It is so. {{{{ {mark} }}}}\n\n{{{{ verdicts }}}}")
    )
    line = path.read_text().partition("It is so.")[0].count("\n") + 1
    said = "\n".join(check.report([], some=True)[0]).splitlines()
    wrong = [each for each in said if each.startswith("BAD book/") or "stands:" in each]
    assert wrong == [words.format(line)] * bool(words)
    assert any(each.startswith("ok  2 verdicts in sentences, 1 of them") for each in said) is (
        "fare" not in mark
    )
