"""`{measured}` tables: what they stand for, written out by hand, and what is refused."""

from __future__ import annotations

import pytest
from conftest import ROOT

from bnbook.errors import BnbookError
from bookpress.pipeline import chapter_runs, chapters, gate, prose


def table(body: str) -> str:
    return prose.expand(f"Before.\n\n```{{measured}}\n{body.strip()}\n```\n\nAfter.")


def lines(body: str) -> list[str]:
    text = table(body)
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
    "columns: {a: x, a: y}\nrows: {r: 'v.{column}'}": "'a' comes twice: use a list",
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
    assert gate.required_results(run) == ["result 'tails' is missing; the text or a claim needs it"]
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
