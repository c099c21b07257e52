"""Settings of the profiles: a chapter's own, those it shares, and what is refused."""

from __future__ import annotations

import re

import pytest
import tiny_book
from conftest import ROOT

from bnbook.errors import BnbookError
from bookpress.pipeline import chapters

SHARED = """
short:  # a group
  evidence: {rate: 0.25}  # for every profile but smoke
  laptop: {tosses: 400}
  paper: {tosses: 1000}
long:
  paper: {tosses: 9000}
odd:
  weekly: {tosses: 1}
"""
OWN = "profiles:\n    smoke: {}\n    laptop: {tosses: 400, seeds: 5}\n    paper: {tosses: 1000, seeds: 5}"


@pytest.fixture
def header(tiny):
    """Gives the tiny chapter other lines in place of its profiles, and a settings file beside it."""

    def changed(lines: str) -> chapters.Chapter:
        part = tiny / "book" / "part"
        (part / "_settings.yml").write_text(SHARED)
        assert OWN in tiny_book.CHAPTER
        (part / "coin.md").write_text(tiny_book.CHAPTER.replace(OWN, lines))
        return chapters.select(["coin"])[0]

    return changed


def test_own_settings_and_shared_ones_are_joined_by_profile(header):
    chapter = header("settings: {_settings.yml: [short]}\n  profiles:\n    evidence: {seeds: 5}")
    assert chapter.parameters("smoke") == chapter.defaults
    for profile, tosses in (("laptop", 400), ("paper", 1000)):
        beyond = {"profile": profile, "tosses": tosses, "rate": 0.25, "seeds": 5}
        assert chapter.parameters(profile) == chapter.defaults | beyond


@pytest.mark.parametrize(
    "lines,words",
    [
        ("settings: {_settings.yml: [short, long]}",
         "tosses at profile paper is given twice, in _settings.yml"),
        ("settings: {_settings.yml: [short]}\n  profiles: {laptop: {rate: 0.1}}",
         "rate at profile laptop is given"),
        ("settings: {_settings.yml: [odd]}", "_settings.yml, odd: weekly.[key] is 'weekly'; expected 'smoke', 'la"),
        ("color: red", "has unknown key color; expected keys title; optional exact, data, profiles, settings"),
        ("profiles: {evidence: {seeds: 3}, paper: {seeds: 5}}",
         "seeds at profile paper is given twice, in its header"),
        ("settings: {_settings.yml: [shrot]}", "_settings.yml has no group 'shrot'; it has: short, long, odd"),
        ("settings: {_other.yml: [short]}", "no settings file _other.yml; expected it beside the chapter"),
        ("settings: _settings.yml", "settings is '_settings.yml'; expected names with values"),
        ("profiles: {laptpo: {seeds: 3}}", "profiles.laptpo.[key] is 'laptpo'; expected 'smoke', 'laptop'"),
        ("profiles: {laptop: 3}", "profiles.laptop is 3; expected names with values"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_the_chapter(header, lines, words):
    with pytest.raises(BnbookError) as caught:
        header(lines)
    message = str(caught.value)
    assert words in message and message.startswith("part/coin: ") and "\n" not in message


def test_a_shared_name_that_the_chapter_does_not_have_is_refused(header):
    chapter = header("settings: {_settings.yml: [short]}")
    cell = chapter.path.read_text()
    chapter.path.write_text(cell.replace("rate = 0.5  # chance of heads\n", ""))
    with pytest.raises(BnbookError, match="part/coin has no parameter 'rate'"):
        chapters.select(["coin"])[0].parameters("laptop")


@pytest.mark.parametrize("path", sorted(ROOT.glob("book/*/*.md")), ids=lambda path: path.stem)
def test_every_setting_of_the_book_is_known_and_has_its_reason(path, monkeypatch):
    monkeypatch.setenv("BNBOOK_ROOT", str(ROOT))
    chapter = chapters.read(path, f"{path.parent.name}/{path.stem}")
    for profile in filter(chapter.has, chapters.PROFILES):
        chapter.parameters(profile)
    header = path.read_text(encoding="utf-8").split("\n---\n")[0]
    shared = [file.read_text(encoding="utf-8") for file in path.parent.glob("_settings.yml")]
    for line in "\n".join([header.partition("\n  profiles:\n")[2], *shared]).split("\n"):
        value = re.match(r" {4,6}\w+: [^#]+", line)
        assert not value or "  # " in line, f"a reason is missing: {line}"
