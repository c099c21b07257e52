"""The errata: the page made from them, and what is not said of them beside the ledger."""

from __future__ import annotations

import pytest
import tiny_book
import yaml
from conftest import ROOT, bnbook

from bookpress import claims, paths
from bookpress.claims import load_errata
from bookpress.pipeline import chapter_runs, chapters, prose
from bookpress.site import pages

GOOD = {
    "id": "coin-two-sides",
    "source": {"key": "folklore", "version": "oral", "where": "on coins"},
    "kind": "wrong",
    "printed": "Heads has chance $p = 1$.",
    "correct": "It has $p = \\frac12$.",
    "why": "Tails is a side too.",
    "claim": "coin-fair",
    "test": "tests/test_coin.py::test_toss",
}


@pytest.fixture
def book(tiny):
    """A tiny book with a test that a row may name."""
    (tiny / "tests").mkdir()
    (tiny / "tests" / "test_coin.py").write_text("def test_toss():\n    def test_inner():\n        pass\n")
    return tiny


def changed(**changes):
    return tiny_book.changed(GOOD, **changes)


def read(book, *entries):
    path = book / "book" / "errata.yml"
    path.write_text(yaml.safe_dump(list(entries), allow_unicode=True), encoding="utf-8")
    return load_errata()


def test_titles_of_the_sources(book):
    bib = book / "book" / "references.bib"
    bib.write_text(
        bib.read_text()
        + "@article{a2020,\n  title = {On {ReLU}s, again},\n}\n@misc{untitled, year = {1900}}\n"
    )
    assert claims.source_titles() == {
        "folklore": "Sayings",
        "a2020": "On ReLUs, again",
        "untitled": "untitled",
    }


def test_check_reports_a_broken_file(ran):
    assert "ok  1 errata" in bnbook("check", "--runs", "--profile", "laptop", root=ran).stdout
    path = ran / "book" / "errata.yml"
    path.write_text(path.read_text().replace("coin-fair", "coin-unfair"))
    shown = bnbook("check", "--runs", "--profile", "laptop", root=ran, code=1).stdout
    assert "ok  laptop/part/coin" in shown, "what is good is still said to be"
    assert "BAD errata\n      errata.yml: erratum coin-two-sides: there is no claim 'coin-unfair'" in shown


def page(ran, profile="laptop") -> str:
    chapter = chapters.select(["coin"])[0]
    shown = prose.Pages(
        {chapter.name: chapter_runs.fresh_run(chapter, profile) if profile else None}, claims.load_claims()
    )
    return pages.errata(load_errata(), [chapter], shown)


def test_the_page_has_counts_anchors_formulas_verdicts_and_links(ran):
    (ran / "tests").mkdir()
    (ran / "tests" / "test_coin.py").write_text("def test_toss():\n    pass\n")
    other = changed(id="coin-edge", kind="unclear", claim=None, source__key="gossip", changes="reading")
    bib = ran / "book" / "references.bib"
    bib.write_text(bib.read_text() + "@misc{gossip,\n  title = {Whispers}\n}\n")
    read(ran, other, GOOD, changed(id="coin-again", changes="theorem", short="It is false."))
    text = page(ran)
    assert "**3 places where a source" in text
    assert "| Sayings {cite:t}`folklore` | 1 | 1 | 0 | 0 |" in text
    assert "| Whispers {cite:t}`gossip` | 0 | 0 | 1 | 0 |" in text
    places = ["## A theorem", "(erratum-coin-again)=", "## A formula", "(erratum-coin-two-sides)="]
    places += ["## What can be read in two ways", "(erratum-coin-edge)="]
    found = [text.index(place) for place in places]
    assert found == sorted(found), "what changes most comes first, whatever the file's order"
    assert "- [It is false.](#erratum-coin-again) *folklore*" in text
    block = text[text.index("(erratum-coin-two-sides)=") : text.index("## What can be read")]
    assert "### On coins" in block and "**wrong** · folklore, oral" in block
    for word, key in (("Printed", "printed"), ("Holds", "correct"), ("Why", "why")):
        assert f"\n{word}\n: {GOOD[key]}\n" in block
    assert (
        "half of the time”: <a" in block
        and "reproduced</a> in [A coin](/part/coin.ipynb), [figure](" in block
    )
    assert "the test “toss” in `tests/test_coin.py`" in block
    assert "reproduced" not in text[text.index("(erratum-coin-edge)=") :]


def test_the_verdict_is_that_of_the_evidence(ran):
    assert "</span>reproduced</a>" in page(ran)
    assert 'title="not tested at this scale (smoke run)"' in page(ran, "smoke")
    assert "</span>not run</a>" in page(ran, None)


def test_measured_numbers_and_sentences_in_a_row_are_filled_in(ran):
    said = "Heads is {{ says:coin-fair | half / not half / perhaps half }} of {{ n:part/coin#heads }} tosses."
    read(ran, changed(correct=said, test=None))
    assert ": Heads is half of 5 tosses.\n" in page(ran)


@pytest.mark.parametrize(("kind", "refused"), [("wrong", True), ("incomplete", False), ("unclear", False)])
def test_what_the_ledger_says_holds_is_not_called_wrong(ran, monkeypatch, kind, refused):
    monkeypatch.setattr(pages, "passed_run", lambda chapter: chapter_runs.fresh_run(chapter, "laptop"))
    path = ran / "book" / "part" / "coin.claims.yml"
    path.write_text(path.read_text("utf-8").replace("- id: coin-fair", "- statement: true\n  id: coin-fair"))
    read(ran, changed(kind=kind, test=None))
    lines, _ = pages.ledger([], runs=False)
    assert ("coin-two-sides in errata.yml: wrong is what" in "\n".join(lines)) is refused


def test_the_books_own_errata_are_whole(monkeypatch):
    for name in ("BNBOOK_ROOT", "BNBOOK_EXECUTED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    rows = load_errata()
    assert paths.repository_root() == ROOT and len(rows) >= 50
    assert {"santurkar2018", "meanfield2018", "encyclopedia"} <= {row.source.key for row in rows}
    assert {row.kind for row in rows} == set(claims.ERRATUM_KINDS)
    assert not [row.id for row in rows if not row.short], "each has its one line"
    assert not [row.id for row in rows if prose.malformed(f"{row.printed} {row.correct} {row.why}")]
    assert "errata" in (ROOT / "_toc.yml").read_text(encoding="utf-8")
