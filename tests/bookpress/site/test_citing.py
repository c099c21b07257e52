"""How the book is cited: of `CITATION.cff` alone, in a sentence and in BibTeX."""

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
TOLD = {"title": "Coins: a & b", "authors": AUTHORS, "version": "1.2"}
TOLD |= {"date-released": datetime.date(2026, 1, 2)}


@pytest.fixture
def said(ran):
    """What the tiny book's CITATION.cff says, and changes of its `_config.yml`."""

    def put(told, **changes):
        path = ran / "_config.yml"
        path.write_text(
            yaml.safe_dump(yaml.safe_load(path.read_text("utf-8")) | {"title": "Coins"} | changes)
        )
        (ran / "CITATION.cff").write_text(yaml.safe_dump(told), "utf-8")

    return put


def bibtex(*given) -> dict[str, str]:
    shown = html.unescape(str(citing.citation(*given)))
    return dict(re.findall(r'^  (\w+) = "(.*?)",?$', shown, flags=re.M))


def test_bibtex_says_what_the_citation_file_does(said):
    said(TOLD, repository={"url": ADDRESS})
    fields = bibtex("Is it fair?", "part/coin", "", "c0ffee" * 7, "2026-11-27")
    assert fields["author"] == "{The coin group} and Toss, Ada"
    assert fields["note"] == "2026-01-02" and fields["year"] == "2026" and fields["url"] == ADDRESS
    assert fields["howpublished"] == r"In: Coins: a \& b, version 1.2, commit c0ffeec0ff"
    assert yaml.safe_load(shell.configuration())["author"] == "The coin group, Ada Toss"
    page = "https://coins.example/part/coin.html"
    assert bibtex("Is it fair?", "part/coin", page, "", "")["url"] == page


def test_what_is_not_said_is_left_out(said):
    said({}, author="Ann", repository={"url": ""})
    assert bibtex("Is it fair?", "part/coin", "", "", "") == {
        "author": "{Ann}",
        "title": "{Is it fair?}",
        "howpublished": "In: Coins",
    }
    said({"authors": ["Ann"]})
    with pytest.raises(
        PressError, match="CITATION.cff: author 'Ann' has no name; expected {name: …} of a group"
    ):
        citing.about()
