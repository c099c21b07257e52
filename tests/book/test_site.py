"""The real book at the smoke profile: every number that a reader sees equals the results file, every claim is
listed."""

from __future__ import annotations

import html
import json
import re
import statistics
from pathlib import Path

import pytest
import yaml
from conftest import ROOT

from bookpress import paths
from bookpress.claims import count_sentences, load_claims, load_coverage
from bookpress.claims.words import spelled
from bookpress.pipeline import chapters, prose, publishing

CHAPTERS = sorted(
    path.relative_to(ROOT / "book").with_suffix("").as_posix() for path in (ROOT / "book").glob("*/*.md")
)
TOKEN = re.compile(r"\{\{\s*(mean|value):(?:([a-z0-9/-]+)#)?([a-z0-9_.]+)\s*(?:\\?\|\s*([^}]*?))?\s*\}\}")


def words(page: Path) -> str:
    """What a page says, its pictures' words too, as one line; superscripts and other marks keep their text
    only."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.S)
    text = re.sub(r'<img\b[^>]*?\balt="([^"]*)"[^>]*>', r" \1 ", text)
    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    return re.sub(r"\s+", " ", text)


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
    power = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(d)] if d != "-" else "⁻" for d in str(int(exponent))) if e else ""
    return (f"{mantissa}·10{power}" if e and mantissa != "1" else f"10{power}" if e else mantissa).replace(
        "-", "−"
    )


@pytest.mark.parametrize("page", [*CHAPTERS, "index"])
def test_numbers_in_the_prose_are_those_of_the_results_files(built_site, page):
    source = prose.expand((ROOT / "book" / f"{page}.md").read_text(encoding="utf-8"))
    shown = words(built_site / "html" / f"{page}.html")
    checked = 0

    for verb, other, name, spec in TOKEN.findall(source):
        spec, _, instead = spec.partition(" or ")
        recorded = results(built_site, other or page)["results"]
        if instead and name not in recorded:
            continue
        values = recorded[name]["values"]
        if any(isinstance(value, str) for value in values):
            continue
        value = values[0] if verb == "value" else statistics.fmean(values)
        assert in_plain_digits(value, spec) in shown, (name, value, spec)
        checked += 1
    assert checked or "{{ value:" not in source and "{{ mean:" not in source
    assert "{{" not in shown, "a token was left unfilled"


LETTERS = re.compile(r"[^\W\d_]+")


@pytest.mark.parametrize("page", [*CHAPTERS, "index", "why", "asked", "new"])
def test_sentences_state_the_verdicts_of_the_book_and_a_smoke_run_speaks_beside_them(built_site, page):
    file = ROOT / "book" / f"{page}.md"
    made = (built_site / "html" / f"{page}.html").read_text(encoding="utf-8")
    shown = words(built_site / "html" / f"{page}.html")
    assert "erdict of this run" not in shown
    assert "Sentences state the book’s verdicts; numbers and figures are this run’s." in shown
    assert "⚠ now:" not in shown, "a smoke run does not count"
    said, checked = " ".join(LETTERS.findall(shown)), 0
    text = file.read_text(encoding="utf-8")
    for sentence in re.split(r"\s*\{\{ stands:[^}]*\}\}", text)[:-1]:  # the last words before each mark
        plain = re.sub(r"\]\([^)]*\)", "]", sentence)  # a link shows its words
        last = LETTERS.findall(re.split(r"[$`{}<>\[\]()]|\n", plain.rstrip(" .,;:*)"))[-1])[-6:]
        assert " ".join(last) in said, sentence[-80:]
        checked += len(last) > 2
    assert checked or "stands:" not in text
    marked = {match[1] for match in re.finditer(r"stands:([a-z][a-z0-9.-]*)(?:\[[^\]]*\])? =", text)}
    linked = set(re.findall(r'class="chip mark [a-z]+" href="[^"#]*#claim-([^"]+)"', made))
    assert linked <= marked


def test_the_scoreboard_lists_every_claim(built_site):
    shown = words(built_site / "html" / "scoreboard.html")
    page = (built_site / "html" / "scoreboard.html").read_text(encoding="utf-8")
    claims = load_claims()
    says = [re.sub(r"[^\w ]|_", "", spelled(claim.says)) for claim in claims]
    bare = re.sub(r"[^\w ]|_", "", shown)
    assert len(claims) > 30 and [text for text in says if text not in bare] == []
    assert page.count('<li class="claim') == len(claims)
    for claim in claims:
        moved = (built_site / "html" / "claims" / f"{claim.id}.html").read_text(encoding="utf-8")
        assert f'url=../{claim.chapter}.html#claim-{claim.id}"' in moved and f'id="claim-{claim.id}"' in page
        chapter = (built_site / "html" / f"{claim.chapter}.html").read_text(encoding="utf-8")
        row = chapter.partition(f'<details class="verdict" id="claim-{claim.id}">')[2].partition(
            "</details>"
        )[0]
        anchor = re.search(r'href="#([^"]+)">The figure', row)[1]
        assert chapter.count(f'id="claim-{claim.id}"') == 1 and f'id="{anchor}"' in chapter, claim.id
    assert "test changed after the run" not in shown


def test_the_errata_list_every_row_with_links_that_lead_somewhere(built_site):
    rows = yaml.safe_load((ROOT / "book" / "errata.yml").read_text(encoding="utf-8"))
    page = (built_site / "html" / "errata.html").read_text(encoding="utf-8")
    assert f"{len(rows)} places where a source is wrong, unclear or contradicts another" in words(
        built_site / "html" / "errata.html"
    )
    for row in rows:
        name = f"erratum-{row['id'].replace('.', '-')}"
        assert page.count(f'<section id="{name}">') == 1  # an address of its own, which the heading links to
        assert f'class="headerlink" href="#{name}"' in page, "the link beside the heading is one that lasts"
        name = row.get("test", "").partition("::test_")[2].replace("_s_", "’s ").replace("_", " ")
        assert f"the test “{name}”" in page or not name
    links = re.findall(r'href="([a-z-]+/[a-z-]+\.html)#([^"]+)"', page)
    assert len(links) >= len([row for row in rows if "claim" in row])
    for target, anchor in set(links):
        assert f'id="{anchor}"' in (built_site / "html" / target).read_text(encoding="utf-8"), anchor
    assert "not tested at this scale (smoke run)" in page and "wrong as printed, corrected" in page


def test_every_sentence_of_the_sources_leads_to_pages_of_claims(built_site):
    listed = count_sentences(load_coverage())
    page = (built_site / "html" / "coverage.html").read_text(encoding="utf-8")
    counted = f"{listed.judged} of {listed.sentences} are judged"
    assert counted in words(built_site / "html" / "coverage.html")
    assert counted in words(built_site / "html" / "index.html")
    links = re.findall(r'class="chip [a-z]+" href="([^"]+)"', page)
    errata = re.findall(r'class="verdict" href="errata\.html#([^"]+)"', page)
    assert len(links) + len(errata) >= listed.judged
    for target, _, anchor in (link.partition("#") for link in set(links)):
        assert f'id="{anchor}"' in (built_site / "html" / target).read_text(encoding="utf-8"), anchor
    slips = (built_site / "html" / "errata.html").read_text(encoding="utf-8")
    assert [name for name in set(errata) if f'id="{name}"' not in slips] == []


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_provenance_page_tells_how_each_chapter_was_made(built_site, chapter):
    shown = words(built_site / "html" / "provenance.html")
    made = results(built_site, chapter)
    assert made["provenance"]["commit"][:10] in shown
    for row in made["data"]:
        assert row["sha256"][:16] in shown and row["name"].endswith("-standin")
    for name, number in made["provenance"]["versions"].items():
        assert f"{name} {number}" in shown
    assert "Peak memory" in shown and "Seeds" in shown and "Time" in shown
    stamp = words(built_site / "html" / f"{chapter}.html")
    assert "Numbers on this page: smoke profile" in stamp and made["provenance"]["date"] in stamp


#: Locked chapters whose trainings are under way, as their pages say.
UNDER_WAY: set[str] = set()


def test_what_is_committed_is_fresh_and_passes_the_gate(monkeypatch):
    for name in ("BNBOOK_ROOT", "BNBOOK_EXECUTED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    assert paths.repository_root() == ROOT
    problems = publishing.executed_problems(chapters.discover())
    assert {name: lines for name, lines in problems.items() if lines} == {}
    missing = {chapter for chapter in CHAPTERS if f"laptop/{chapter}" not in problems}
    assert missing <= UNDER_WAY, "every chapter has a published laptop run"
    assert missing >= UNDER_WAY, "it has one now: take its name out"
