"""The coverage lists beside each other, the counts, and the page made of them."""

from __future__ import annotations

import pytest
import tiny_book
import yaml
from conftest import ROOT, bnbook

from bnbook.errors import BnbookError
from bookpress import claims
from bookpress.claims import load_coverage

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
GOOD = {"source": {"key": "folklore", "version": "oral"}, "sentences": [HALF, EDGE, AGAIN]}


def write(root, content, name="song.yml"):
    folder = root / "book" / "coverage"
    folder.mkdir(exist_ok=True)
    text = content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True)
    (folder / name).write_text(text, encoding="utf-8")


def row(sentence, **changes):
    """The good list with one sentence alone, changed."""
    return GOOD | {"sentences": [tiny_book.changed(sentence, **changes)]}


def test_a_text_has_one_list_and_the_folder_holds_nothing_else(tiny):
    write(tiny, GOOD)
    write(tiny, GOOD, "tune.yml")
    with pytest.raises(BnbookError, match="the list of folklore, oral appears twice"):
        load_coverage()
    write(tiny, GOOD | {"source": {"key": "folklore", "version": "written"}}, "tune.yml")
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


def test_check_counts_and_reports_a_broken_list(ran):
    write(ran, GOOD)
    words = ("check", "--runs", "--profile", "laptop")
    assert "ok  2 sentences of the sources, 1 judged" in bnbook(*words, root=ran).stdout
    write(ran, row(HALF, claims=["coin-unfair"]))
    shown = bnbook(*words, root=ran, code=1).stdout
    assert "ok  laptop/part/coin" in shown and "ok  1 errata" in shown
    assert "BAD coverage\n      coverage/song.yml: sentence Verse 1: there is no claim 'coin-unfair'" in shown
    assert "locks in" in shown, "what comes behind a fault is looked at, too"


def test_the_books_own_lists_are_whole(monkeypatch):
    for name in ("BNBOOK_ROOT", "BNBOOK_EXECUTED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    lists = load_coverage()
    assert claims.unfinished_sources(lists) == [], "every source has its lists, and they lead to every claim"
    assert {one.version for one in lists if one.source == "santurkar2018"} == {"arXiv v1", "NeurIPS"}
    assert claims.count_sentences(lists).judged >= 300
    assert "file: coverage" in (ROOT / "_toc.yml").read_text(encoding="utf-8")
    assert "{{ coverage }}" in (ROOT / "book" / "index.md").read_text(encoding="utf-8")
