"""The errata: the page made from them, and what is not said of them beside the ledger."""

from __future__ import annotations

import pytest
import tiny_book
import yaml
from conftest import ROOT, bnbook

from bookpress import claims, paths
from bookpress.claims import load_errata
from bookpress.pipeline import chapter_runs, chapters, gate, prose
from bookpress.site import check, pages

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


def test_measured_numbers_and_sentences_in_a_row_are_filled_in(ran):
    said = "Heads is half of {{ n:part/coin#heads }} tosses. {{ stands:coin-fair = reproduced }} {{ stands:coin-fair = no }}"
    read(ran, changed(correct=said, test=None))
    shown = page(ran)
    assert (
        ': Heads is half of 5 tosses. <a class="chip mark true" href="part/coin.html#claim-coin-fair"'
        in shown
    )
    assert shown.count("⚠") == 1 and "⚠ now: reproduced</strong>" in shown


@pytest.mark.parametrize(
    ("kind", "condition", "refused"),
    [("wrong", "", True), ("wrong", "  condition: it is fair\n", True), ("incomplete", "", False)],
)
def test_what_the_ledger_says_holds_is_not_called_wrong(ran, monkeypatch, kind, condition, refused):
    monkeypatch.setattr(gate, "passed_run", lambda chapter: chapter_runs.fresh_run(chapter, "laptop"))
    path = ran / "book" / "part" / "coin.claims.yml"
    statement = f"- statement: true\n{condition}  id: coin-fair"
    path.write_text(path.read_text("utf-8").replace("- id: coin-fair", statement))
    read(ran, changed(kind=kind, test=None))
    lines, _ = check.report([], some=True)
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
