"""How the book is cited: of `_config.yml` alone, in BibTeX as in CITATION.cff."""

from __future__ import annotations

import datetime
import html
import re

import pytest
import yaml

from bookpress.errors import PressError
from bookpress.site import citing, shell

ADDRESS = "https://code.example/a/b"
AUTHORS = [{"name": "The coin group"}, {"given-names": "Ada", "family-names": "Toss"}]
TOLD = {"authors": AUTHORS, "version": "1.2", "date-released": datetime.date(2026, 1, 2), "subtitle": "a & b"}


@pytest.fixture
def said(ran):
    """Settings into the tiny book's `_config.yml`."""

    def put(**changes):
        path = ran / "_config.yml"
        told = yaml.safe_load(path.read_text("utf-8")) | {"title": "Coins", "citation": TOLD} | changes
        path.write_text(yaml.safe_dump(told), "utf-8")

    return put


def bibtex(*given) -> dict[str, str]:
    shown = html.unescape(str(citing.citation(*given)))
    return dict(re.findall(r'^  (\w+) = "(.*?)",?$', shown, flags=re.M))


def test_bibtex_and_the_citation_file_say_the_same(said):
    said(repository={"url": ADDRESS})
    fields, file = (
        bibtex("Is it fair?", "part/coin", "", "c0ffee" * 7, "2026-11-27"),
        yaml.safe_load(citing.cff()),
    )
    assert fields["author"] == "{The coin group} and Toss, Ada" and file["authors"] == AUTHORS
    assert fields["note"] == str(file["date-released"]) == "2026-01-02" and fields["year"] == "2026"
    assert file["version"] == "1.2" and "version 1.2, commit c0ffeec0ff" in fields["howpublished"]
    assert fields["url"] == file["repository-code"] == ADDRESS
    assert file["title"] == "Coins: a & b" and fields["howpublished"].startswith(r"In: Coins: a \& b, ")


def test_an_address_that_is_not_set_is_left_out(said):
    said(repository={"url": ""}, html={"baseurl": ""})
    assert "url" not in bibtex("Is it fair?", "part/coin", "", "", "")
    assert {"repository-code", "url"}.isdisjoint(yaml.safe_load(citing.cff()))
    said(repository={"url": ADDRESS}, html={"baseurl": "https://coins.example"})
    page = "https://coins.example/part/coin.html"
    assert bibtex("Is it fair?", "part/coin", page, "", "")["url"] == page
    assert yaml.safe_load(citing.cff())["url"] == "https://coins.example"


def test_an_author_without_a_name_is_one_clear_line(said):
    said(citation={"authors": ["Ann"]})
    with pytest.raises(PressError, match="author 'Ann' has no name; expected {name: …} of a group"):
        citing.cff()


def test_the_pages_have_the_authors_of_the_citation(said):
    said()
    assert yaml.safe_load(shell.configuration())["author"] == "The coin group, Ada Toss"
    assert "citation" not in yaml.safe_load(shell.configuration())
