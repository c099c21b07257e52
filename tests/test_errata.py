"""The errata: what the file may hold, each mistake in it as one line, and the page made from it."""

from __future__ import annotations

import pytest
import tiny_book
import yaml
from conftest import ROOT, bnbook

from bnbook.errors import BnbookError
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


def test_a_row_is_read_whole(book):
    (row,) = read(book, GOOD)
    assert (row.id, row.kind, row.claim, row.test) == ("coin-two-sides", "wrong", "coin-fair", GOOD["test"])
    assert (row.source.key, row.source.version, row.source.where) == ("folklore", "oral", "on coins")
    assert (row.printed, row.correct, row.why) == (GOOD["printed"], GOOD["correct"], GOOD["why"])
    assert read(book, changed(claim=None))[0].claim == "" and read(book, changed(test=None))[0].test == ""
    kinds = [read(book, changed(kind=kind))[0].kind for kind in claims.ERRATUM_KINDS]
    assert kinds == ["wrong", "incomplete", "contradiction", "unclear"]


REFUSED = [
    (dict(id="Two Sides"), "id 'Two Sides' is malformed"),
    (dict(id=None), "id None is malformed"),
    (dict(colour="red"), "unknown key colour"),
    (dict(source=None), "lacks source"),
    (dict(kind=None), "lacks kind"),
    (dict(printed=None), "lacks printed"),
    (dict(correct=None), "lacks correct"),
    (dict(why=None), "lacks why"),
    (dict(why=" "), "why is ' '"),
    (dict(source="folklore"), "source is str"),
    (dict(source__where=None), "source lacks where"),
    (dict(source__page="3"), "source has unknown key page"),
    (dict(source__key="hearsay"), "source 'hearsay' is not in references.bib"),
    (dict(kind="typo"), "kind 'typo' is unknown"),
    (dict(changes="all"), "changes 'all' is unknown; expected one of theorem, formula, read"),
    (dict(claim=None, test=None), "nothing shows it"),
    (dict(claim="coin-unfair"), "there is no claim 'coin-unfair'"),
    (dict(test="tests/test_coin.py::test_tos"), "there is no test 'tests/test_coin.py::test_tos'"),
    (dict(test="tests/test_dice.py::test_toss"), "there is no test 'tests/test_dice.py::test_toss'"),
    (dict(test="tests/test_coin.py::test_inner"), "there is no test"),
    (dict(test="test_toss"), "there is no test 'test_toss'"),
    (dict(printed="Chance $p."), "printed has a formula that does not end"),
    (dict(correct="It has $p = \frac12$."), "correct has a backslash that YAML read as an escape"),
    (dict(why="First $\tilde q$."), "why has a backslash"),
]


@pytest.mark.parametrize("changes, words", REFUSED, ids=[words for _, words in REFUSED])
def test_a_mistake_is_one_line_that_names_file_row_and_remedy(book, changes, words):
    with pytest.raises(BnbookError) as caught:
        read(book, changed(**changes))
    message = str(caught.value)
    assert words in message and "\n" not in message
    assert message.startswith("errata.yml: erratum ") and "; expected " in message
    assert "id" in changes or "erratum coin-two-sides:" in message


def test_a_doubled_id_is_refused_even_if_only_the_address_is_the_same(book):
    with pytest.raises(BnbookError, match="erratum coin-two-sides appears twice"):
        read(book, GOOD, GOOD)
    dotted, dashed = changed(id="theorem-4.1"), changed(id="theorem-4-1")
    assert read(book, dotted)[0].anchor == "erratum-theorem-4-1"
    with pytest.raises(BnbookError, match="erratum theorem-4-1 appears twice"):
        read(book, dotted, dashed)


@pytest.mark.parametrize(
    "text, words",
    [
        ("- id: [", "line 2 is not YAML"),
        ("id: x", "holds no list"),
        ("- 3", "number 1: the erratum is int"),
        ('- {id: x, why: "$\\sigma$"}', "is not YAML"),
    ],
)
def test_a_broken_file_is_one_line(book, text, words):
    (book / "book" / "errata.yml").write_text(text + "\n", encoding="utf-8")
    with pytest.raises(BnbookError, match=words) as caught:
        load_errata()
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(book):
    (book / "book" / "errata.yml").unlink()
    with pytest.raises(BnbookError, match="no file errata.yml; expected it under book"):
        load_errata()


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
