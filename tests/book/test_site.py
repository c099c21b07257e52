"""The real book at the smoke profile: every number that a reader sees equals the results file, every claim, erratum and
sentence is listed, every link leads somewhere; and what is committed passes `check`."""

from __future__ import annotations

import html
import json
import re
import statistics
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import browsing
import pytest
from conftest import ROOT, bnbook

from bookpress.claims import count_sentences, load_claims, load_coverage, load_errata
from bookpress.claims.words import spelled
from bookpress.pipeline import prose

CHAPTERS = sorted(
    path.relative_to(ROOT / "book").with_suffix("").as_posix() for path in (ROOT / "book").glob("*/*.md")
)
TOKEN = re.compile(r"\{\{\s*(mean|value):(?:([a-z0-9/-]+)#)?([a-z0-9_.]+)\s*(?:\\?\|\s*([^}]*?))?\s*\}\}")
LETTERS = re.compile(r"[^\W\d_]+")


read = cache(lambda page: page.read_text(encoding="utf-8"))


@cache
def words(page: Path) -> str:
    """What a page says, its pictures' words too, as one line; superscripts and other marks keep their text
    only."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", read(page), flags=re.S)
    text = re.sub(r'<img\b[^>]*?\balt="([^"]*)"[^>]*>', r" \1 ", text)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", text)))


@cache
def results(site: Path, chapter: str) -> dict:
    return json.loads((site / "runs" / "smoke" / f"{chapter}.json").read_text(encoding="utf-8"))


def in_plain_digits(value: float, spec: str) -> str:
    """The number as the page should show it, by the reader's own arithmetic."""
    text = format(value, spec or ".3g").replace("%", " %")
    mantissa, e, exponent = text.partition("e")
    if e and spec[-1:] in ("", "g") and 1 <= int(exponent) <= 5:
        mantissa, e = str(round(float(text))), ""
    if e and spec[-1:] == "e" and -2 <= int(exponent) <= 3:
        mantissa, e = f"{float(text):g}", ""
    if re.fullmatch(r"-?\d{4,}(\.\d+)?", mantissa):
        whole, dot, rest = mantissa.partition(".")
        mantissa = f"{whole[:-3]},{whole[-3:]}{dot}{rest}"
    if e:
        power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        mantissa = power if mantissa == "1" else f"{mantissa}·{power}"
    return mantissa.replace("-", "−")


@pytest.mark.parametrize("page", [*CHAPTERS, "index"])
def test_numbers_in_the_prose_are_those_of_the_results_files(built_site, page):
    source = prose.expand((ROOT / "book" / f"{page}.md").read_text(encoding="utf-8"))
    shown = words(built_site / "html" / f"{page}.html")
    assert "{{" not in shown, "a token was left unfilled"
    for verb, other, name, spec in TOKEN.findall(source):
        spec, _, instead = spec.partition(" or ")
        recorded = results(built_site, other or page)["results"]
        if instead and name not in recorded:
            continue
        values = recorded[name]["values"]
        if not any(isinstance(value, str) for value in values):
            value = values[0] if verb == "value" else statistics.fmean(values)
            assert in_plain_digits(value, spec) in shown, (name, value, spec)


@pytest.mark.parametrize("page", [*CHAPTERS, "index", "why", "asked", "new"])
def test_sentences_state_the_verdicts_of_the_book_and_a_smoke_run_speaks_beside_them(built_site, page):
    shown = words(built_site / "html" / f"{page}.html")
    assert "Sentences state the book’s verdicts; numbers and figures are this run’s." in shown
    assert "⚠ now:" not in shown, "a smoke run does not count"
    said = " ".join(LETTERS.findall(shown))
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    for sentence in re.split(r"\s*\{\{ stands:[^}]*\}\}", text)[:-1]:  # the last words before each mark
        plain = re.sub(r"\]\([^)]*\)", "]", sentence)  # a link shows its words
        last = LETTERS.findall(re.split(r"[$`{}<>\[\]()]|\n", plain.rstrip(" .,;:*)"))[-1])[-6:]
        assert " ".join(last) in said, sentence[-80:]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_provenance_page_tells_how_each_chapter_was_made(built_site, chapter):
    made, shown = results(built_site, chapter), words(built_site / "html" / "provenance.html")
    assert made["provenance"]["commit"][:10] in shown
    assert all(f"{name} {number}" in shown for name, number in made["provenance"]["versions"].items())
    for row in made["data"]:
        assert row["sha256"][:16] in shown and row["name"].endswith("-standin")
    stamp = words(built_site / "html" / f"{chapter}.html")
    assert "Numbers on this page: smoke profile" in stamp and made["provenance"]["date"] in stamp


def test_every_claim_erratum_and_sentence_is_listed(built_site):
    shown = lambda page: read(built_site / "html" / f"{page}.html")
    board, bare = shown("scoreboard"), re.sub(r"[^\w ]|_", "", words(built_site / "html" / "scoreboard.html"))
    listed = load_claims()
    assert board.count('<li class="claim') == len(listed) > 30
    for claim in listed:
        assert re.sub(r"[^\w ]|_", "", spelled(claim.says)) in bare and f'id="claim-{claim.id}"' in board
        assert f'url=../{claim.chapter}.html#claim-{claim.id}"' in shown(f"claims/{claim.id}")
        assert shown(claim.chapter).count(f'<details class="verdict" id="claim-{claim.id}">') == 1
    for row in load_errata():  # an address of its own, which the heading links to
        assert shown("errata").count(f'<section id="{row.anchor}">') == 1, row.id
        assert f'class="headerlink" href="#{row.anchor}"' in shown("errata"), row.id
    counted = count_sentences(load_coverage())
    for page in ("coverage", "index"):
        said = words(built_site / "html" / f"{page}.html")
        assert f"{counted.judged} of {counted.sentences} are judged" in said


def test_every_link_inside_the_site_leads_somewhere(built_site):
    site = (built_site / "html").resolve()
    texts = {path: read(path) for path in browsing.pages_of(site)}
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    for path, text in texts.items():
        for link in set(map(html.unescape, re.findall(r'<a [^>]*?href="([^"]+)"', text))):
            address, _, anchor = unquote(link).partition("#")
            there = (path.parent / address.partition("?")[0]).resolve() if address else path
            if not re.match("[a-z]+:", link):
                assert there.exists(), f"{path}: {link}"
                known = anchors.get(there, {anchor}) | {""}
                assert anchor in known or "=" in anchor, f"{path}: {link}"  # a filter of the board


def test_what_is_committed_is_fresh_and_passes_the_gate():
    said = bnbook("check", root=ROOT).stdout
    for chapter in CHAPTERS:
        assert re.search(rf"^ok  (laptop|overnight|paper)/{chapter}$", said, re.M), f"no run of {chapter}"
