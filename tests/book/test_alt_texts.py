"""An alternative text says what is drawn; a finding in it is a number of the run or bears the mark of its verdict."""

from __future__ import annotations

import re

import pytest
from conftest import ROOT

from bookpress.pipeline import chapter_runs, prose

PAGES = {
    path.relative_to(ROOT / "book").with_suffix("").as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "book").rglob("*.md"))
}
PLAIN = ("mean", "median", "power", "value", "param", "n", "times", "points", "seeds")  # no interval, no link
#: Words with which a text says how an experiment came out.
OUTCOME = re.compile(
    r"\b(?:falls?|falling|rises?|rising|grows?|climbs?|shoots?|drops?|shrinks?|follows?|reach(?:es)?|stays?|lies?"
    r"|sits?|approach(?:es)?|(?<!how )far|close|near|nearly|only|always|never|steeply|slowly"
    r"|faster|fastest|slower|slowest"
    r"|(?:above|below) (?:a|an|it|one|the|them|zero))\b",
    re.I,
)
#: Such words that state no outcome, and why.
NO_OUTCOME = {
    "which starts at 1 and falls for all three norms": "the norms of a shifted Gaussian, by their formulas",
    "constant for batch norm, falling for the others": "the standard deviations, by the same formulas",
    "rises from zero to one and that of the gradient share along the output falls from one to zero": (
        "of σ²/(σ²+ε) and ε/(σ²+ε)"
    ),
    "with which the squared sum of the gradient grows": "the name of an exponent",
    "where the final loss lies off every plateau": "what a cross stands for",
}


def images(text: str) -> list[str]:
    """The alternative texts of a page."""
    return [alt for _, alt, *_ in chapter_runs.referenced_figures(text)] + re.findall(r"!\[([^\]]+)\]", text)


def unguarded(alt: str) -> list[str]:
    """The words of an outcome that bears no mark of a verdict in its clause."""
    clauses = re.split(r"[;.](?=\s|$)", prose.TOKEN.sub(lambda token: " ✓" * ("stands:" in token[0]), alt))
    alt = ";".join(each for each in clauses if "✓" not in each)
    for phrase in NO_OUTCOME:
        alt = alt.replace(phrase, "")
    return OUTCOME.findall(alt)


def test_a_finding_is_seen_and_what_evidence_chooses_is_none():
    assert unguarded("Three curves; the loss falls fastest with it, far beyond the others.") == [
        "falls",
        "fastest",
        "far",
    ]
    assert unguarded("Points near depth; they lie on the line {{ stands:a-b[2] = yes }}.") == ["near"]
    assert unguarded("Two rows, without above and with it below; slope {{ mean:slope.near | .2f }}.") == []


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if images(text)])
def test_no_alternative_text_states_a_finding_without_its_evidence(page):
    assert {alt: words for alt in images(PAGES[page]) if (words := unguarded(alt))} == {}


def test_every_exception_is_still_needed():
    every = "\n".join(alt for text in PAGES.values() for alt in images(text))
    assert [phrase for phrase in NO_OUTCOME if phrase not in every] == []


@pytest.mark.parametrize("page", [page for page, text in PAGES.items() if "{{" in "".join(images(text))])
def test_what_fills_an_alternative_text_is_plain(page):
    """An attribute shows no markup, neither a chip's link nor a small interval; ` #` would end it."""
    for alt in images(PAGES[page]):
        assert {token.verb for token in prose.tokens(alt)} <= {*PLAIN, "stands"}, alt
        assert not re.search(r"[<*`$\"]| #|\\\|", re.sub(r"\{\{ stands:.*?\}\}", "", alt)), alt
        assert not prose.malformed(alt), alt
