"""Sentences that state a verdict, numbers of results, `{measured}` tables: against NumPy and by hand, and what is
refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bnbook.errors import BnbookError
from bookpress import claims
from bookpress.claims import judging
from bookpress.pipeline import chapter_runs, chapters, gate, prose
from bookpress.results import Results
from bookpress.site import check

A, B = np.array([0.30, 0.34, 0.41]), np.array([0.10, 0.11, 0.12])
RESULTS = {"a": A, "b": B, "mixed": A - 0.35, "times": 4 * A, "others": B}
RESULTS |= {"speed.w1.batch": A, "speed.w1.none": B}


class Run:
    """What tokens ask a run for."""

    def __init__(self, profile="laptop", default=True, is_published=True, exact=False):
        self.profile, self.is_published, self.chapter = profile, is_published, SimpleNamespace(exact=exact)
        seeds = {name: [7, 8, 9] if name == "others" else [0, 1, 2] for name in RESULTS}
        entries = {name: {"values": x.tolist(), "seeds": seeds[name]} for name, x in RESULTS.items()}
        header = {"default_parameters": default, "parameters": {"seeds": 3}, "profile": profile}
        self.results = Results(header, entries)

    def column(self, name, index=None, *, alone=False, together=()):
        if name not in self.results:
            raise ValueError(f"no result {name!r}")
        return self.results.entries[name]["seeds"], self.results[name]


class Pages(prose.Pages):
    verdicts = {"loss-falls": judging.NOT_REPRODUCED, "two-parts": judging.MIXED}

    def claim(self, name):
        if name not in self.verdicts:
            raise ValueError(f"no claim {name!r}")
        tests = [claims.Test("ratio", a="a", b=other, side="less", threshold=1.0) for other in ("b", "mixed")]
        parts = tuple(claims.Part("one or two", test) for test in tests)
        own = {"parts": parts} if name == "two-parts" else {"test": tests[0]}
        source = claims.Source("key", "version", "where")
        return claims.Claim(name, "part/page", source, "It falls.", "curve", **own)

    def judgement(self, claim):
        if self.evidence["part/page"] is None:
            return None
        parts = [{"verdict": judging.REPRODUCED}, {"verdict": judging.NOT_REPRODUCED}]
        return {"verdict": self.verdicts[claim.id], "tests": parts if claim.id == "two-parts" else [{}]}


RUN = Run()


def fill(text, run=RUN, **extra):
    return prose.fill(text, "part/page", Pages({"part/page": run}, []), extra)


def mark(guard, stated="yes", run=RUN):
    token = prose.Token(prose.TOKEN.fullmatch(f"{{{{ stands:{guard} = {stated} }}}}"))
    return prose.mark_of(token, "part/page", Pages({"part/page": run}, []))


# ---- Numbers ----

LOG = np.log(A / B)
EDGES = [f"{np.exp(LOG.mean() + sign * 4.302653 * LOG.std(ddof=1) / 3**0.5):.2f}" for sign in (-1, 1)]
INTERVAL = f"(95 % interval {EDGES[0]} to {EDGES[1]})"
SAID = {
    "{{ median:a | .2f }}": "0.34",
    "{{ times:a / b | .3f }}": f"{np.exp(LOG.mean()):.3f}",
    "{{ ratio:a/b | .2f }}": f"{np.exp(LOG.mean()):.2f} {INTERVAL}",
    "{{ ratio:a / b | .2f times as much }}": f"{np.exp(LOG.mean()):.2f} times as much {INTERVAL}",
    "| {{ ratio:a / b \\| .2f }} |": f"| {np.exp(LOG.mean()):.2f}<br><small>{EDGES[0]} to {EDGES[1]}</small> |",
    "{{ points:a - b | .1f }}": f"{100 * (A - B).mean():.1f}",
    "{{ seeds:a > 0.33 }} and {{ seeds:a < b }}": "2 of 3 and 0 of 3",
    "{{ seeds:a > a }}": "0 of 3",  # seeds that are equal are on no side
    "{{ seeds:a < a }}": "0 of 3",
    "{{ mean:c | .2f or none }} {{ times:c / a | .2f or –}}": "none –",
    "$\\hat{{a}}$ {{ binder }}": "$\\hat{{a}}$ a link",
}


@pytest.mark.parametrize(("text", "said"), SAID.items())
def test_a_token_says_what_numpy_does(text, said):
    assert fill(text, binder="a link") == said


def test_a_difference_has_its_unit_and_a_diverged_seed_is_infinite():
    assert fill("{{ gap:a - b | .1f }}").startswith("24.0 points (95 % interval ")
    assert fill("{{ ci:a | .2f }}").startswith("0.35 (95 % interval 0.2")
    assert prose.STATISTICS["median"](np.array([1.0, 2.0, np.nan])) == 2
    assert prose.STATISTICS["median"](np.array([1.0, np.nan, np.nan])) == np.inf
    assert np.isnan(prose.STATISTICS["value"](np.array([np.nan, np.nan])))


def test_without_a_run_nothing_is_said():
    text = "{{ times:a / b }} {{ stands:loss-falls = yes }} {{ stands:a > b = yes }}{{ mean:a }}{{ profile }}"
    assert fill(text, None) == "———"


#: A token that asks for nothing that exists -> words of the one line that says so.
AMISS = {
    "times:a / c": "no result 'c'",
    "times:a - b": "expected / between the two results of times",
    "ratio:mixed / a": "needs values above 0",
    "points:a - times": "points are of shares, and one of these is none",
    "gap:a - times": "points are of shares, and one of these is none",
    "value:a": "its seeds differ; use mean or ci",
    "share:times": "a share lies between 0 and 1; use ci",
    "times:a / others": "come from different seeds",
    "stands:a > others = yes": "come from different seeds",
    "stands:a > c = yes": "no result 'c'",
    "stands:sped.long.batch > speed.long.none = yes": "no result",
    "stands:speed.long.bach > speed.long.none = yes": "no result",
    "stands:a = yes": "no claim 'a'",
    "stands:loss-fells = yes": "no claim 'loss-fells'",
    "stands:two-parts[c] = yes": "c",
    "stands:two-parts[a] = yes": "a",
    "stands:two-parts[1] = yes": "1",
    "stands:loss-falls[a] = yes": "a",
    "stands:loss-falls = refuted": "'refuted' is no verdict; expected one of reproduced, mixed",
    "stands:loss-falls = reproduced, mixed": "'reproduced, mixed' is no verdict",
    "stands:loss-falls": "expected `stands:CLAIM = VERDICT`",
    "stands: = yes": "expected `stands:CLAIM = VERDICT`",
    "stands": "expected `stands:CLAIM = VERDICT`",
    "blinder": "part/page.md: {{ blinder }} is not a token that pages know; docs/writing.md lists them",
    "men:heads": "is not a token that pages know; did you mean mean? docs/writing.md lists them",
}


@pytest.mark.parametrize("token", ["{{ mean:heads | .2f } of", "{{ mean:heads | .2f"])
def test_a_token_that_does_not_end_is_refused(token):
    (found,) = prose.malformed(f"It falls to {token}\nand a set $x_{{{{a:b}}}}$ {{{{ mean:heads }}}}")
    assert prose.no_token(found).endswith("does not end; expected }} behind it")


@pytest.mark.parametrize(("token", "words"), AMISS.items())
def test_what_asks_for_nothing_that_exists_is_refused_in_one_line(token, words):
    with pytest.raises(BnbookError) as caught:
        fill(f"It falls. {{{{ {token} }}}}")
    message = str(caught.value)
    assert words in message and "part/page" in message and "\n" not in message


def test_the_gate_sees_the_results_and_the_slips_of_every_sentence():
    text = "{{ mean:c }} {{ median:d }} {{ times:e / f }} {{ stands:a > other/page#b[1] = yes }} {{ stands:g > 2 = no }}"
    assert prose.result_names(text) == {(None, name) for name in "acdefg"} | {("other/page", "b")}
    assert prose.malformed(text) == []
    slips = ["{{ meen:c }}", "{{ says:a | b / c / d }}", "{{ waffle }}"]
    assert prose.malformed(" ".join(slips)) == slips
    assert prose.malformed(" ".join(slips), {"waffle": ""}) == slips[:2]


# ---- Marks ----

STANDS = {
    "a > b": "yes",
    "a < b": "no",
    "geo:a < b": "no",
    "a > 0.2": "yes",
    "a > 0.35": "open",
    "mixed > 0": "open",
    "speed.w1.batch > speed.w1.none": "yes",
    "speed.long.batch > speed.long.none": "open",  # a size that the run has not reached
    "loss-falls": "not reproduced",
    "two-parts": "mixed",
    "two-parts[b]": "reproduced",
    "two-parts[mixed]": "not reproduced",
}


@pytest.mark.parametrize(("guard", "word"), STANDS.items())
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
    run, found = Run(*kind), (judging.NOT_REPRODUCED, judging.OPEN, judging.NOT_TESTED)
    monkeypatch.setattr(chapter_runs, "published_runs", lambda _: [])
    for verdict, beside in zip(found, RUNS[kind], strict=True):
        monkeypatch.setitem(Pages.verdicts, "loss-falls", verdict)
        assert mark("loss-falls", "reproduced", run).turned == beside
        assert mark("loss-falls", prose.WORD_FOR[verdict], run).turned == ""
        text = "It falls. {{ stands:loss-falls = reproduced }}"
        assert fill(text, run) == "It falls." + f" ({beside})" * bool(beside)


def test_a_smoke_run_tries_no_comparison_and_may_have_no_factor(monkeypatch):
    monkeypatch.setattr(chapter_runs, "published_runs", lambda _: [])
    assert mark("a > b", "no", Run("smoke")).now == "not tested"
    assert mark("a > b", "no", Run("smoke", exact=True)).now == "yes"
    assert fill("{{ times:mixed / a }}", Run("smoke", is_published=False)) == "—"


def test_an_alternative_text_has_no_chip():
    text = "```{figure} x.svg\n:alt: It falls {{ stands:loss-falls = open }}.\n\nIt falls. {{ stands:a > b = yes }}\n```"
    filled = fill(text, stands=lambda mark: f"<{mark.claim or mark.guard}>")
    assert filled == "```{figure} x.svg\n:alt: It falls (now: not reproduced).\n\nIt falls.\u00a0<a > b>\n```"


def test_how_sure_says_how_many_tests_stood_before_the_run():
    def sure(*which):
        made = {"exploratory": "", "pooled": False}
        return chapter_runs.how_sure([made | kind for kind in which])

    late, more, pooled = (
        {"exploratory": "test after its data"},
        {"exploratory": "5 seeds where 3 were"},
        {"pooled": True},
    )
    assert sure({}, {}) == "All 2 tests of this chapter were fixed before its run"
    assert sure({}, late, {}) == (
        "2 of the 3 tests of this chapter were fixed before its run. The other is exploratory: test after its data"
    )
    assert sure(late, more, more) == (
        "The 3 tests of this chapter are exploratory, each for one of these reasons: "
        "5 seeds where 3 were; test after its data"
    )
    assert sure() == "No test"
    assert sure(pooled, late).endswith(
        "exploratory: test after its data. One is judged with the seeds of earlier runs as well"
    )
    assert sure(pooled, pooled).endswith(
        "before its run. All are judged with the seeds of earlier runs as well"
    )


# ---- `{measured}` tables ----

#: Body -> rows of the table.
TABLES = {
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
""": [
        "| median | without | with it |",
        "| --- | --- | --- |",
        r"| range of the loss | {{ geo:loss_range.none \| .2g }} | {{ geo:loss_range.batch \| .2g }} |",
        r"| share of steps | {{ share:smoother.none \| .0% }} | {{ share:smoother.batch \| .0% }} |",
        "| seeds | {{ n:loss_range.none }} | {{ n:loss_range.batch }} |",
        "| verdict | {{ verdict:loss-none }} | see below |",
        r"| in words | – | about {{ mean:loss.batch \| .1f }} |",
    ],
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
""": [
        "| | theory | $q_{xy}$ | in full |",
        "| --- | --- | --- | --- |",
        r"| {{ param:width }} units | {{ value:theory.fc.none \| .0f }}"
        r" | {{ ci:other/chapter#seen.fc.none[-1] \| .3f }} | $\hat q^{l}$ |",
        r"| {{ param:width }} units | {{ value:theory.conv.batch \| .0f }}"
        r" | {{ ci:other/chapter#seen.conv.batch[-1] \| .3f }} | {{ effect:a-claim \| .0f }} |",
        r"| a third | – | a \| b | mean of all |",
    ],
    # the last cell serves all further columns
    "columns: {a: x, b: y, c: z}\nstatistic: mean\nmissing: '?'\nrows:\n  r: [–, 'gap.{column}']": [
        "| | a | b | c |",
        "| --- | --- | --- | --- |",
        r"| r | – | {{ mean:gap.y \| .3g or ? }} | {{ mean:gap.z \| .3g or ? }} |",
    ],
}


@pytest.mark.parametrize("body", TABLES)
def test_a_block_is_a_table_of_tokens(body):
    text = prose.expand(f"Before.\n\n```{{measured}}\n{body.strip()}\n```\n\nAfter.")
    assert text == "\n".join(["Before.", "", *TABLES[body], "", "After."])


REFUSED = {
    "rows: {a: b}": "has rows; expected columns and rows",
    "columns: [": "is not YAML",
    "columns: {a: x, a: y}\nrows: {r: 'v.{column}'}": "'a' stands there and in line 1",
    "columns: {a: x}\nrows: 3": "has rows '3'; expected `title: text` lines",
    "columns: {a: x}\nrows: {r: 'v.{colunm}'}": "row 'r' asks for {colunm}; expected one of column",
    "columns: {a: x}\nrows: {r: v}": "row 'r' has no cells",
    "columns: {a: x, b: y}\nrows: {r: [one]}": "row 'r' has 1 cells; expected 2, one a column",
    "columns: {a: x, b: y}\nrows: {r: [v.with, the same]}": "row 'r' has the cell 'v.with'; expected mean",
    "columns: {a: x}\nrows: {r: 'goe:v.{column}'}": "page.md: {{ goe:v.x \\| .3g }} is not a token",
    "columns: {a: x}\nstatistic: mode\nrows: {r: 'v.{column}'}": "page.md: {{ mode:v.x \\| .3g }} is not a token",
}


@pytest.mark.parametrize(("body", "words"), REFUSED.items(), ids=list(REFUSED.values()))
def test_a_mistake_is_one_line_that_names_the_table_or_its_cell(body, words):
    with pytest.raises(BnbookError) as caught:
        fill(f"```{{measured}}\n{body}\n```\n")
    message = str(caught.value)
    assert words in message and "\n" not in message
    assert "is not a token" in words or message.startswith("page part/page: {measured} table '")


def coin(ran, put):
    """The tiny book's run whose page has this in place of its verdicts."""
    path = ran / "book" / "part" / "coin.md"
    path.write_text(path.read_text().replace("{{ verdicts }}", put))
    return chapter_runs.fresh_run(chapters.select(["coin"])[0], "laptop")


def test_the_gate_asks_for_what_a_table_names_and_a_page_shows_what_its_tokens_would(ran):
    block = "```{measured}\ncolumns: {share: heads}\nstatistic: ci\nformat: .1%\nrows: {heads: '{column}', r: ['ci:tails']}\n```"
    run = coin(ran, f"{block}\n\n{{{{ verdicts }}}}")
    assert list(gate.required_results(run)) == ["result 'tails' is missing; the text or a claim needs it"]
    book, known = prose.Pages({"part/coin": run}, []), block.replace(", r: ['ci:tails']", "")
    shown = prose.fill(known, "part/coin", book)
    by_hand = "| | share |\n| --- | --- |\n| heads | {{ ci:heads \\| .1% }} |"
    assert shown == prose.fill(by_hand, "part/coin", book) and "<small>" in shown and "{" not in shown
    run = coin(ran, block.replace("rows:", "rwos:"))
    assert [problem for problem in gate.required_results(run) if "{measured} table" in problem]


def test_what_another_run_has_may_be_missing(ran):
    """A rung that was not reached; a name that is like no other is a slip."""
    block = "```{measured}\nmissing: not reached\ncolumns: {a: w1, b: w2}\nrows: {r: 'ci:heads.{column} | .1%'}\n```"
    run = coin(ran, block + "\n\n{{ mean:hades.w2 | .1% or none }}")
    for entry in ("heads.w1", "early.w3"):
        run.results.entries[entry] = run.results.entries["heads"]
    problems = [each for each in gate.required_results(run) if "missing" in each]
    assert problems == ["result 'hades.w2' is missing; the text or a claim needs it; did you mean heads.w1?"]
    assert prose.fill(block, "part/coin", prose.Pages({"part/coin": run}, [])).endswith(
        "</small> | not reached |"
    )


def test_a_slip_is_near_a_result_that_the_page_reads_as_well(ran):
    run = coin(ran, "{{ mean:heads | .1% }} {{ mean:head | .1% }}")
    (slip,) = (each for each in gate.required_results(run) if "'head' is missing" in each)
    assert slip.endswith("did you mean heads?")


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (
            "stands:coin-fair = not reproduced",
            "BAD book/part/coin.md:{} states coin-fair = not reproduced; it is reproduced now: rewrite the sentence",
        ),
        (
            "stands:coin-fare = reproduced",
            "      book/part/coin.md:{} {{{{ stands:coin-fare = reproduced }}}}: no chapter has a claim 'coin-fare'; "
            "did you mean coin-fair?",
        ),
        ("stands:coin-fair = reproduced", ""),
    ],
)
def test_check_names_the_line_of_a_sentence_that_does_not_stand(ran, monkeypatch, mark, words):
    monkeypatch.setattr(gate, "passed_run", lambda chapter: chapter_runs.fresh_run(chapter, "laptop"))
    coin(ran, f"It is so. {{{{ {mark} }}}}\n\n{{{{ verdicts }}}}")
    line = (ran / "book/part/coin.md").read_text().partition("It is so.")[0].count("\n") + 1
    said = "\n".join(check.report([], some=True)[0]).splitlines()
    wrong = [each for each in said if each.startswith("BAD book/") or "stands:" in each]
    assert wrong == [words.format(line)] * bool(words)
    counted = any(each.startswith("ok  2 verdicts in sentences, 1 of them") for each in said)
    assert counted is ("fare" not in mark)
