"""The errata: the page made from them, and what is not said of them beside the ledger."""

from __future__ import annotations

import pytest
import tiny_book
import yaml
from conftest import ROOT, bnbook

from bnbook.errors import BnbookError
from bookpress import claims, paths
from bookpress.claims import load_coverage, load_errata
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


@pytest.mark.parametrize("broken, fault", [
    ("errata.yml", "errata\n      errata.yml: erratum coin-two-sides: there is no claim 'coin-unfair'"),
    ("coverage/song.yml", "coverage\n      coverage/song.yml: sentence Verse 1: there is no claim 'coin-unfair'"),
])  # fmt: skip
def test_check_counts_and_reports_a_broken_file(ran, broken, fault):
    write(ran, WHOLE)
    words = ("check", "--runs", "--profile", "laptop")
    shown = bnbook(*words, root=ran).stdout
    assert "ok  1 errata" in shown and "ok  2 sentences of the sources, 1 judged" in shown
    path = ran / "book" / broken
    path.write_text(path.read_text().replace("coin-fair", "coin-unfair"))
    shown = bnbook(*words, root=ran, code=1).stdout
    assert f"BAD {fault}" in shown and "ok  laptop/part/coin" in shown, "what is good is still said to be"
    assert "locks in" in shown, "what comes behind a fault is looked at, too"


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
        ': Heads is half of 5 tosses.\u00a0<a class="chip mark own" href="part/coin.html#claim-coin-fair"'
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


@pytest.fixture
def real(monkeypatch):
    """The real book."""
    for name in ("BNBOOK_ROOT", "BNBOOK_EXECUTED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    assert paths.repository_root() == ROOT
    return (ROOT / "_toc.yml").read_text(encoding="utf-8")


def test_the_books_own_errata_are_whole(real):
    rows = load_errata()
    assert len(rows) >= 50 and "errata" in real and {row.kind for row in rows} == set(claims.ERRATUM_KINDS)
    assert {"santurkar2018", "meanfield2018", "encyclopedia"} <= {row.source.key for row in rows}
    assert not [row.id for row in rows if not row.short], "each has its one line"
    assert not [row.id for row in rows if prose.malformed(f"{row.printed} {row.correct} {row.why}")]


HALF = {
    "where": "Verse 1",
    "says": "Heads has chance $p = \\frac12$.",
    "claims": ["coin-fair"],
    "note": "One coin.",
}
EDGE = {"where": "Verse 2", "says": "It never stands.", "not_judged": "open: toss it often"}
AGAIN = {"where": "Refrain", "says": "Half, I say.", "repeats": "Verse 1"}
CODA = {"where": "Coda", "says": "Heads it is.", "errata": ["coin-two-sides"]}
SIDES = HALF | CODA | {"where": "Verse 3"}
WHOLE = {"source": {"key": "folklore", "version": "oral"}, "sentences": [HALF, EDGE, AGAIN]}


def write(root, content, name="song.yml"):
    folder = root / "book" / "coverage"
    folder.mkdir(exist_ok=True)
    text = content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True)
    (folder / name).write_text(text, encoding="utf-8")


def row(sentence, **changes):
    """The good list with one sentence alone, changed."""
    return WHOLE | {"sentences": [tiny_book.changed(sentence, **changes)]}


def test_a_text_has_one_list_and_the_folder_holds_nothing_else(tiny):
    write(tiny, WHOLE)
    write(tiny, WHOLE, "tune.yml")
    with pytest.raises(BnbookError, match="the list of folklore, oral appears twice"):
        load_coverage()
    write(tiny, WHOLE | {"source": {"key": "folklore", "version": "written"}}, "tune.yml")
    found = claims.count_sentences(load_coverage()[:1])
    assert (found.sentences, found.judged, found.not_judged, found.open, found.repeats) == (2, 1, 1, 1, 1)
    assert [one.name for one in load_coverage()] == ["song", "tune"]
    write(tiny, "words", "notes.txt")
    with pytest.raises(BnbookError, match="coverage/notes.txt is no list; expected NAME.yml"):
        load_coverage()


def test_a_complete_list_leads_to_every_claim_of_its_source(tiny):
    write(tiny, row(EDGE))
    assert claims.unfinished_sources(load_coverage()) == ["folklore"]
    write(tiny, row(EDGE) | {"complete": True})
    with pytest.raises(BnbookError, match=r"no sentence leads to coin-fair \(everywhere\)"):
        load_coverage()
    write(tiny, row(HALF) | {"complete": True})
    with pytest.raises(BnbookError, match=r"no sentence leads to coin-two-sides \(On coins\)"):
        load_coverage()
    write(tiny, row(EDGE) | {"complete": True})
    other = {"source": {"key": "folklore", "version": "written"}, "sentences": [EDGE]}
    write(tiny, other, "tune.yml")
    assert claims.unfinished_sources(load_coverage()) == ["folklore"], "the other text is not finished"
    write(tiny, other | {"complete": True, "sentences": [SIDES]}, "tune.yml")
    assert claims.unfinished_sources(load_coverage()) == [], "either text may lead to the claim"


def test_a_claim_that_no_sentence_leads_to_is_said_once_and_by_every_command_before_the_site(ran):
    write(ran, row(EDGE) | {"complete": True})
    fault = "coverage/song.yml: it is complete, but no sentence leads to coin-fair"
    for words, code in ((["publish", "coin"], 0), (["check", "coin"], 0), (["check"], 1)):
        said = bnbook(*words, root=ran, code=code).stdout
        assert said.count(fault) == 1 and (f"note {fault}" in said) is (code == 0)


def test_the_books_own_lists_are_whole(real):
    lists = load_coverage()
    assert claims.unfinished_sources(lists) == [], "every source has its lists, and they lead to every claim"
    assert {one.version for one in lists if one.source == "santurkar2018"} == {"arXiv v1", "NeurIPS"}
    assert claims.count_sentences(lists).judged >= 300 and "file: coverage" in real
