"""The course on the site: the instructors' page, and on a chapter's page the sheets that go with it."""

from __future__ import annotations

import re

from bookpress.claims import without_markup
from bookpress.coursework import reading

PAGE = "teach.md"
SOLUTION = re.compile(r"^(`{3,}|:{3,})\{solution\}.*?^\1[ \t]*$", re.M | re.S)


def page() -> str:
    """The instructors' page, its links those of the site; empty without sheets."""
    source = reading.folder() / "README.md"
    if not source.is_file():
        return ""
    text = re.sub(
        r"\]\(\.\./book/(\w[\w-]*/[\w-]+)\.md\)", r"](/\1.ipynb)", source.read_text(encoding="utf-8")
    )
    text = re.sub(r"^\* `.*", lambda line: without_markup(line[0]), text, flags=re.M)  # what was measured
    return text.replace("](../book/", "](/")


def sheets() -> dict[str, list[str]]:
    """Chapter -> titles of the sheets that belong to it."""
    found: dict[str, list[str]] = {}
    for path in reading.discover():
        sheet = reading.read(path)
        found.setdefault(sheet.chapter, []).append(sheet.title)
    return found


def with_sheets(text: str, titles: list[str]) -> str:
    """The text of a chapter, a line behind its solution that names its sheets."""
    named = " and ".join(f"*{title}*" for title in titles)
    plural = "sheets" if len(titles) > 1 else "sheet"
    line = f"**In a course:** the {plural} {named}, with tests and an autograder, [for teachers](/{PAGE})."
    return SOLUTION.sub(lambda match: f"{match[0]}\n\n{line}", text) if titles else text
