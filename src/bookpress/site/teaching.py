"""The course on the site: the instructors' page, and on a chapter's page the sheets that go with it."""

from __future__ import annotations

import importlib.util
import re
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

from bookpress import coursework
from bookpress.claims import without_markup
from bookpress.errors import PressError

PAGE = "teach.md"
#: Where the students' notebooks lie beside the pages; and the sentence in whose place links to them come.
SHEETS, MADE = "data/sheets", "The sheets are made once, as <em>Making the sheets</em> below says."
SOLUTION = re.compile(r"^(`{3,}|:{3,})\{solution\}.*?^\1[ \t]*$", re.M | re.S)


def page() -> str:
    """The instructors' page, its links those of the site; empty without sheets."""
    source = coursework.folder() / "README.md"
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    text = re.sub(r"\]\(\.\./book/(\w[\w-]*/[\w-]+)\.md\)", r"](/\1.ipynb)", text)
    text = re.sub(r"^\* `.*", lambda line: without_markup(line[0]), text, flags=re.M)  # what was measured
    return text.replace("](../book/", "](/")


def students() -> dict[str, bytes]:
    """What students get, by the names of its files: nothing without sheets, or without otter-grader, which makes
    them."""
    if not page() or not importlib.util.find_spec("otter"):
        return {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            coursework.make(made := Path(folder) / "course")
        except PressError:  # a locale in which otter cannot write
            return {}
        return {path.name: path.read_bytes() for path in sorted((made / "student").iterdir())}


def write(site: Path, texts: dict[str, bytes]) -> str:
    """Put what students get beside the pages, a notebook a sheet and all as a zip, and the links to them, which it returns,
    onto the instructors' page; where there is nothing that page says how they are made."""
    if not texts:
        return MADE
    (site / SHEETS).mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(site / SHEETS / "sheets.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            (site / SHEETS / name).write_bytes(text)
            archive.writestr(zipfile.ZipInfo(name), text)
    each = ", ".join(f'<a href="{SHEETS}/{name}" download>{Path(name).stem}</a>' for name in texts)
    links = (
        f'The sheets for students: <a href="{SHEETS}/sheets.zip" download>all of them</a>, or {each}. Solutions, hidden '
        "tests and autograders are made as <em>Making the sheets</em> below says."
    )
    if (page := site / "teach.html").is_file():
        page.write_text(page.read_text(encoding="utf-8").replace(MADE, links), encoding="utf-8")
    return links


def sheets() -> dict[str, list[str]]:
    """Chapter -> titles of the sheets that belong to it."""
    found = defaultdict(list)
    for sheet in map(coursework.read, coursework.discover()):
        found[sheet.chapter].append(sheet.title)
    return found


def with_sheets(text: str, titles: list[str]) -> str:
    """The text of a chapter, a line behind its solution that names its sheets."""
    named = " and ".join(f"*{title}*" for title in titles)
    plural = "sheets" if len(titles) > 1 else "sheet"
    line = f"**In a course:** the {plural} {named}, with tests and an autograder, [for teachers](/{PAGE})."
    return SOLUTION.sub(lambda match: f"{match[0]}\n\n{line}", text) if titles else text
