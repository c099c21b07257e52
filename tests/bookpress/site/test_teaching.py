"""The site tells teachers of the course: their page, and on each page the sheets that belong to it."""

import re
import zipfile

import pytest

from bookpress import coursework
from bookpress.book import chapter_names
from bookpress.paths import book_folder


def test_the_instructors_page_links_to_pages_that_are_there():
    page = coursework.page()
    targets = re.findall(r"\]\(([^)]*)\)", page)
    assert len(targets) > 8 and all(target.startswith("/") for target in targets)
    for target in targets:
        name = target.strip("/").removesuffix(".ipynb").removesuffix(".md")
        assert (book_folder() / f"{name}.md").is_file(), target


def test_each_sheet_is_named_on_the_page_of_its_chapter():
    found = coursework.sheets()
    assert sum(map(len, found.values())) == 9 and set(found) <= set(chapter_names())
    for chapter, titles in found.items():
        text = (book_folder() / f"{chapter}.md").read_text(encoding="utf-8")
        shown = coursework.with_sheets(text, titles)
        assert all(shown.count(f"*{title}*") == 1 for title in titles), chapter
        assert coursework.with_sheets(text, []) == text


def test_the_line_stands_behind_the_solution():
    text = "```{solution} x\n:class: dropdown\nY.\n```\n\n## Next"
    line = "**In a course:** the sheets *A* and *B*, with tests and an autograder, [for teachers](/teach.md)."
    assert coursework.with_sheets(text, ["A", "B"]) == text.replace("\n\n## Next", f"\n\n{line}\n\n## Next")


def test_the_sheets_for_students_lie_beside_the_page_and_leak_nothing(tmp_path):
    pytest.importorskip("otter", reason="otter-grader makes the sheets")
    links = re.findall(r'href="([^"]+)" download', coursework.write(tmp_path, coursework.students()))
    assert len(links) == 10 and all((tmp_path / link).is_file() for link in links)
    with zipfile.ZipFile(tmp_path / links[0]) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert {f"{coursework.SHEETS}/{name}" for name in texts} == set(links[1:])
    assert not any(secret in text for text in texts.values() for secret in coursework.SECRETS)
    assert "*Making the sheets*" in coursework.page() and "Making the sheets" in coursework.MADE


def test_without_what_makes_sheets_the_page_says_how(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert coursework.write(tmp_path, coursework.students()) == coursework.MADE
    assert not (tmp_path / "data").exists()
