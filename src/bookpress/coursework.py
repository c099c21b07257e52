"""Assignments out of the book: student and instructor notebooks, autograders, a table of points.

A source, `coursework/NAME.md`, has text, questions, solutions and tests in one notebook. Its header holds
`coursework: {title, chapter, minutes, goals}`. A text cell whose metadata name a `question` opens it; code cells are
tagged `solution` (with otter's `# BEGIN SOLUTION` lines), `public` or `hidden` (tests, with `points` and `fails`: what
a student reads), and any other is given as it stands. One cell tagged `found` is the instructor's: it leaves the
numbers of a right answer "in words" in `found`, which its `says` puts into a sentence.
"""

from __future__ import annotations

import codecs
import importlib.util
import io
import json
import locale
import logging
import re
import shutil
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import nbformat
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_raw_cell

from bookpress import atomic, paths
from bookpress.book import command_name
from bookpress.claims import without_markup
from bookpress.errors import PressError
from bookpress.pipeline.chapters import read_myst
from bookpress.schema import Count, Entry, Some, Text, model, valid
from bookpress.texts import as_csv, read_text

#: Nothing below may stand in what a student gets.
SECRETS = ("BEGIN SOLUTION", "hidden=True")
UNWRITTEN = 'raise NotImplementedError("nothing is written here yet")'
#: Kinds of tests, and of code cells that are not given as they stand.
TESTS = ("public", "hidden")
KINDS = ("solution", *TESTS, "found")


@dataclass(frozen=True)
class Cell:
    """A cell of a sheet."""

    kind: str  # text, question (its text), given, or one of KINDS
    source: str
    question: str = ""  # the name of the one that it belongs to
    points: float = 0.0
    fails: str = ""  # what a failed test says
    says: str = ""  # the sentence that `found` fills


@model
class Assignment(Entry):
    """One sheet, its cells in order."""

    name: str
    title: Text
    chapter: Text
    minutes: Count  # that a student is meant to need
    goals: Annotated[tuple[Text, ...], Some]
    cells: tuple[Cell, ...]

    @property
    def questions(self) -> list[str]:
        """Their names, in order."""
        return [cell.question for cell in self.cells if cell.kind == "question"]

    @property
    def found(self) -> Cell:
        """What a right answer "in words" finds; no student gets it."""
        return self.of("found")[0]

    @property
    def points(self) -> float:
        return sum(cell.points for cell in self.of(*TESTS))

    def of(self, *kinds: str, question: str = "") -> list[Cell]:
        """The cells of these kinds, of one question or of all."""
        return [cell for cell in self.cells if cell.kind in kinds and question in ("", cell.question)]


def folder() -> Path:
    return paths.repository_root() / "coursework"


def discover() -> list[Path]:
    """The sources, in the order of their names."""
    return sorted(path for path in folder().glob("*.md") if path.stem != "README")


def read(path: Path) -> Assignment:
    """The assignment in a file; PressError where a part is missing or misplaced."""
    notebook, question = read_myst(read_text(path, path.name), path.name), ""
    cells: list[Cell] = []
    for cell in notebook.cells:
        about = cell.metadata
        if cell.cell_type == "markdown":
            question = about.get("question", "")
            kind = "question" if question else "text"
        else:
            kind = next((tag for tag in about.get("tags", []) if tag in KINDS), "given")
        if kind in ("solution", *TESTS) and not question:
            raise PressError(f"{path.name}: a {kind} cell outside a question; expected it right after one")
        words = (about.get(name, "") for name in ("fails", "says"))
        cells.append(Cell(kind, cell.source, question, float(about.get("points", 0)), *words))
    header = notebook.metadata.get("coursework", {}) | {"name": path.stem, "cells": tuple(cells)}
    made = valid(Assignment, header, f"{path.name}: its header's coursework")
    if len(made.of("found")) != 1 or not made.found.says:
        raise PressError(
            f"{path.name}: {len(made.of('found'))} cells tagged `found`; expected one, with `says`"
        )
    if not made.questions:
        raise PressError(f"{path.name} asks no question; expected at least one")
    for name in made.questions:
        kinds = [cell.kind for cell in made.of("given", *KINDS, question=name)]
        if kinds.count("solution") != 1 or not {*TESTS} <= {*kinds}:
            said = ", ".join(kinds) or "no cells"
            raise PressError(
                f"{path.name}, question {name}: {said}; expected one solution, a public test and a hidden one"
            )
        if not all(test.points > 0 and test.fails for test in made.of(*TESTS, question=name)):
            raise PressError(f"{path.name}, question {name}: a test without points or `fails`")
    return made


# ---- What students, instructors and graders get ---------------------------------------------------------------------


def make(target: Path, names: Sequence[str] = ()) -> list[Assignment]:
    """Write student/NAME.ipynb, instructor/NAME.ipynb, autograder/NAME.zip and points.csv; all or nothing.

    `names`: some assignments; by default all. PressError for an unknown name, for a folder that is there,
    where otter-grader is not installed, where a secret would reach the students.
    """
    target = Path(target)
    if codecs.lookup(locale.getpreferredencoding(False)).name != "utf-8":  # in which otter writes
        raise PressError("otter-grader needs Python's UTF-8 mode here; set PYTHONUTF8=1 and run it again")
    if target.exists():
        raise PressError(f"{target} is there already; name a folder that is not")
    known = {path.stem: path for path in discover()}
    if unknown := [name for name in names if name not in known]:
        raise PressError(f"no sheet {unknown[0]!r}; expected some of {', '.join(known)}")
    assignments = [read(known[name]) for name in names or known]
    scratch = target.with_name(f".{target.name}.making")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        for each in assignments:
            _one(each, scratch)
        atomic.write_text(scratch / "points.csv", points_table(assignments))
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return assignments


def points_table(assignments: Sequence[Assignment]) -> str:
    """CSV: assignment, chapter, question, points that public tests give, points that hidden ones give."""
    table = [["assignment", "chapter", "minutes", "question", *TESTS]]
    for each in assignments:
        for name in each.questions:
            points = (sum(test.points for test in each.of(kind, question=name)) for kind in TESTS)
            table.append([each.name, each.chapter, each.minutes, name, *(f"{n:g}" for n in points)])
    return as_csv(table)


def _one(assignment: Assignment, folder: Path) -> None:
    try:
        from otter.assign import main as assign
    except ImportError:
        raise PressError(
            f"otter-grader is not installed; expected version 7; install {command_name()}[coursework]"
        ) from None
    work = folder / f".{assignment.name}"
    source = work / f"{assignment.name}.ipynb"
    work.mkdir(parents=True)
    nbformat.write(master(assignment), source)
    logging.getLogger("otter").setLevel(logging.ERROR)
    assign(str(source), str(work / "out"), no_pdfs=True)
    student = _text(_unwritten(_scrubbed(work / "out" / "student" / source.name)))
    if found := [secret for secret in SECRETS if secret in student]:
        raise PressError(f"{assignment.name}: students would get {found[0]!r}; nothing was written")
    atomic.write_text(folder / "student" / source.name, student)
    instructor = _scrubbed(work / "out" / "autograder" / source.name)
    instructor["cells"] += [
        new_markdown_cell("## For the instructor: what a right answer finds", id="found-text"),
        new_code_cell(f"{assignment.found.source}\nfound", id="found-code"),
    ]
    atomic.write_text(folder / "instructor" / source.name, _text(instructor))
    (made,) = (work / "out" / "autograder").glob("*.zip")
    atomic.write_bytes(folder / "autograder" / f"{assignment.name}.zip", _same_bytes(made))
    shutil.rmtree(work)


def _unwritten(notebook: dict) -> dict:
    """What a student has not begun says so; Python's ... would give None, and a test's error about that."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            cell["source"] = re.sub(r"^( +)\.\.\.$", rf"\1{UNWRITTEN}", source, flags=re.M)
    return notebook


def _text(notebook: dict) -> str:
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _scrubbed(path: Path) -> dict:
    """The notebook without outputs and without what its making left in its metadata."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    kept = {"kernelspec", "otter", "language_info"}
    notebook["metadata"] = {name: value for name, value in notebook["metadata"].items() if name in kept}
    for cell in notebook["cells"]:
        own = cell["metadata"]
        cell["metadata"] = {name: own[name] for name in own if name in ("deletable", "editable", "tags")}
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return notebook


def _same_bytes(path: Path) -> bytes:
    """The archive with its members in order and without their dates: the same sources give the same file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name in sorted(old.namelist()):
            member = zipfile.ZipInfo(name)
            member.external_attr, member.compress_type = old.getinfo(name).external_attr, zipfile.ZIP_DEFLATED
            new.writestr(member, old.read(name))
    return buffer.getvalue()


# ---- The notebook that otter-grader takes apart (its "Otter Assign" format) ------------------------------------------

SETTINGS: dict[str, Any] = {
    "init_cell": True,
    "check_all_cell": True,
    "export_cell": {"pdf": False, "run_tests": True},
    "run_tests": False,  # our own tests grade the solution
    "requirements": ["numpy", "torch"],  # where the zip grades; otter itself is there
    "tests": {"ok_format": False, "files": False},
    "solutions_pdf": False,
    "template_pdf": False,
    "generate": {"pdf": False, "show_stdout": False, "show_hidden": False, "seed": None},
}
MAKE = {"text": new_markdown_cell, "question": new_markdown_cell}  # of a cell's source, others are code


def master(assignment: Assignment) -> Any:
    """The master: texts and cells as they are, questions between otter's raw cells."""
    lines = [f"# {assignment.title}", ""]
    lines += [f"About {assignment.minutes} minutes; {assignment.points:g} points."]
    lines += ["", "When you are done you can:", "", *(f"- {goal}" for goal in assignment.goals)]
    made = new_notebook()
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.cells = [_raw("# ASSIGNMENT CONFIG", {"name": assignment.name} | SETTINGS)]
    made.cells.append(new_markdown_cell("\n".join(lines)))
    for name, group in groupby(assignment.cells, lambda cell: cell.question):
        cells = [*group]
        if not name:
            made.cells += _cells(cells, "text", "given")
            continue
        tests = [cell for cell in cells if cell.kind in TESTS]
        points = sum(test.points for test in tests)
        made.cells += [_raw("# BEGIN QUESTION", {"name": name, "points": points})]
        made.cells += _cells(cells, "question") + _cells(cells, "given")
        made.cells += [
            _raw("# BEGIN SOLUTION"),
            *_cells(cells, "solution"),
            _raw("# END SOLUTION"),
            _raw("# BEGIN TESTS"),
        ]
        made.cells += [*map(_test, tests), _raw("# END TESTS"), _raw("# END QUESTION")]
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"  # the same bytes each time
    return made


def _cells(cells: Sequence[Cell], *kinds: str) -> list[Any]:
    return [MAKE.get(cell.kind, new_code_cell)(cell.source) for cell in cells if cell.kind in kinds]


def _test(cell: Cell) -> Any:
    settings = {"points": cell.points, "hidden": cell.kind == "hidden", "failure_message": cell.fails}
    config = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False, width=10_000)
    return new_code_cell(f'""" # BEGIN TEST CONFIG\n{config}""" # END TEST CONFIG\n{cell.source}')


def _raw(first: str, settings: dict[str, Any] | None = None) -> Any:
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True) if settings else ""
    return new_raw_cell(f"{first}\n{text}".strip())


# ---- On the site: the instructors' page, and on a chapter's page the sheets that go with it ----------------------------

PAGE = "teach.md"
#: Where the students' notebooks lie beside the pages; and the sentence in whose place links to them come.
SHEETS, MADE = "data/sheets", "The sheets are made once, as <em>Making the sheets</em> below says."
SOLUTION = re.compile(r"^(`{3,}|:{3,})\{solution\}.*?^\1[ \t]*$", re.M | re.S)


def page() -> str:
    """The instructors' page, its links those of the site; empty without sheets."""
    source = folder() / "README.md"
    text = source.read_text(encoding="utf-8") if source.is_file() else ""
    text = re.sub(r"\]\(\.\./book/(\w[\w-]*/[\w-]+)\.md\)", r"](/\1.ipynb)", text)
    text = re.sub(r"^\* `.*", lambda line: without_markup(line[0]), text, flags=re.M)  # what was measured
    return text.replace("](../book/", "](/")


def students() -> dict[str, bytes]:
    """What students get, by the names of its files: nothing without sheets, or without otter-grader, which makes
    them."""
    if not page() or not importlib.util.find_spec("otter"):
        return {}
    with tempfile.TemporaryDirectory() as place:
        try:
            make(made := Path(place) / "course")
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
    for sheet in map(read, discover()):
        found[sheet.chapter].append(sheet.title)
    return found


def with_sheets(text: str, titles: list[str]) -> str:
    """The text of a chapter, a line behind its solution that names its sheets."""
    named = " and ".join(f"*{title}*" for title in titles)
    plural = "sheets" if len(titles) > 1 else "sheet"
    line = f"**In a course:** the {plural} {named}, with tests and an autograder, [for teachers](/{PAGE})."
    return SOLUTION.sub(lambda match: f"{match[0]}\n\n{line}", text) if titles else text
