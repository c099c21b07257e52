"""Assignments out of the book: student and instructor notebooks, autograders, a table of points.

A source, `coursework/NAME.md`, has text, questions, solutions and tests in one notebook. Its header holds
`coursework: {title, chapter, minutes, goals}`. A text cell whose metadata name a `question` opens it; code cells are
tagged `solution` (with otter's `# BEGIN SOLUTION` lines), `public` or `hidden` (tests, with `points` and `fails`: what
a student reads), and any other is given as it stands. One cell tagged `found` is the instructor's: it leaves the
numbers of a right answer "in words" in `found`, which its `says` puts into a sentence.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import locale
import logging
import re
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import nbformat
import yaml

from bookpress import atomic, paths
from bookpress.book import command_name
from bookpress.errors import PressError
from bookpress.pipeline.chapters import read_myst
from bookpress.schema import Count, Entry, Some, Text, model, valid
from bookpress.texts import read_text

#: Nothing below may stand in what a student gets.
SECRETS = ("BEGIN SOLUTION", "hidden=True")
UNWRITTEN = 'raise NotImplementedError("nothing is written here yet")'
KINDS = ("given", "solution", "public", "hidden", "found")


@dataclass(frozen=True)
class CodeCell:
    """A code cell of a question or of the assignment itself."""

    kind: str  # one of KINDS
    source: str
    points: float = 0.0
    fails: str = ""  # what a failed test says
    says: str = ""  # the sentence that `found` fills


@dataclass(frozen=True)
class Question:
    """A task: its text, what is given, one solution, tests."""

    name: str
    text: str
    cells: tuple[CodeCell, ...] = ()

    @property
    def points(self) -> float:
        return sum(cell.points for cell in self.cells)

    @property
    def tests(self) -> list[CodeCell]:
        return [cell for cell in self.cells if cell.kind in ("public", "hidden")]


@model
class Assignment(Entry):
    """One sheet; `parts` in order: texts, cells that are given, questions."""

    name: str
    title: Text
    chapter: Text
    minutes: Count  # that a student is meant to need
    goals: Annotated[tuple[Text, ...], Some]
    parts: tuple[str | CodeCell | Question, ...]
    found: CodeCell  # what a right answer "in words" finds; no student gets it

    @property
    def questions(self) -> tuple[Question, ...]:
        return tuple(part for part in self.parts if isinstance(part, Question))

    @property
    def points(self) -> float:
        return sum(question.points for question in self.questions)


def folder() -> Path:
    return paths.repository_root() / "coursework"


def discover() -> list[Path]:
    """The sources, in the order of their names."""
    return sorted(path for path in folder().glob("*.md") if path.stem != "README")


def read(path: Path) -> Assignment:
    """The assignment in a file; PressError where a part is missing or misplaced."""
    notebook = read_myst(read_text(path, path.name), path.name)
    parts: list[str | CodeCell | Question] = []
    found: list[CodeCell] = []
    for cell in notebook.cells:
        about = cell.metadata
        if cell.cell_type == "markdown":
            parts.append(Question(about["question"], cell.source) if "question" in about else cell.source)
            continue
        kind = next((tag for tag in about.get("tags", []) if tag in KINDS), "given")
        words = (about.get(name, "") for name in ("fails", "says"))
        code = CodeCell(kind, cell.source, float(about.get("points", 0)), *words)
        if kind == "found":
            found.append(code)
        elif parts and isinstance(parts[-1], Question):
            parts[-1] = replace(parts[-1], cells=(*parts[-1].cells, code))
        elif kind == "given":
            parts.append(code)
        else:
            raise PressError(f"{path.name}: a {kind} cell outside a question; expected it right after one")
    if len(found) != 1 or not found[0].says:
        raise PressError(f"{path.name}: {len(found)} cells tagged `found`; expected one, with `says`")
    own = {"name": path.stem, "parts": tuple(parts), "found": found[0]}
    made = valid(
        Assignment, notebook.metadata.get("coursework", {}) | own, f"{path.name}: its header's coursework"
    )
    if not made.questions:
        raise PressError(f"{path.name} asks no question; expected at least one")
    for question in made.questions:
        where, kinds = f"{path.name}, question {question.name}", [cell.kind for cell in question.cells]
        if kinds.count("solution") != 1 or not {"public", "hidden"} <= {*kinds}:
            said = ", ".join(kinds) or "no cells"
            raise PressError(f"{where}: {said}; expected one solution, a public test and a hidden one")
        if not all(cell.points > 0 and cell.fails for cell in question.tests):
            raise PressError(f"{where}: a test without points or `fails`")
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
    lines: list[list[Any]] = [["assignment", "chapter", "minutes", "question", "public", "hidden"]]
    for each in assignments:
        for question in each.questions:
            points = (
                sum(c.points for c in question.tests if c.kind == kind) for kind in ("public", "hidden")
            )
            lines.append([each.name, each.chapter, each.minutes, question.name, *(f"{n:g}" for n in points)])
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()


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
    instructor = _with_found(_scrubbed(work / "out" / "autograder" / source.name), assignment)
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


def _with_found(notebook: dict, assignment: Assignment) -> dict:
    """At the end, for the instructor: what a right answer to the written question finds."""
    text = nbformat.v4.new_markdown_cell("## For the instructor: what a right answer finds", id="found-text")
    code = nbformat.v4.new_code_cell(f"{assignment.found.source}\nfound", id="found-code")
    notebook["cells"] += [text, code]
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


def master(assignment: Assignment) -> Any:
    """The master: texts and cells as they are, questions between otter's raw cells."""
    made = nbformat.v4.new_notebook()
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    made.cells = [_raw("# ASSIGNMENT CONFIG", _settings(assignment)), _title(assignment)]
    for part in assignment.parts:
        if isinstance(part, Question):
            made.cells += _question(part)
        elif isinstance(part, CodeCell):
            made.cells.append(nbformat.v4.new_code_cell(part.source))
        else:
            made.cells.append(nbformat.v4.new_markdown_cell(part))
    for number, cell in enumerate(made.cells):
        cell.id = f"cell-{number}"  # the same bytes each time
    return made


def _settings(assignment: Assignment) -> dict[str, Any]:
    return {
        "name": assignment.name,
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


def _title(assignment: Assignment) -> Any:
    time = f"About {assignment.minutes} minutes; {assignment.points:g} points."
    lines = [f"# {assignment.title}", "", time, "", "When you are done you can:", ""]
    return nbformat.v4.new_markdown_cell("\n".join([*lines, *(f"- {goal}" for goal in assignment.goals)]))


def _question(question: Question) -> list[Any]:
    def code(kind: str) -> list[Any]:
        return [nbformat.v4.new_code_cell(cell.source) for cell in question.cells if cell.kind == kind]

    return [
        _raw("# BEGIN QUESTION", {"name": question.name, "points": question.points}),
        nbformat.v4.new_markdown_cell(question.text),
        *code("given"),
        _raw("# BEGIN SOLUTION"),
        *code("solution"),
        _raw("# END SOLUTION"),
        _raw("# BEGIN TESTS"),
        *(nbformat.v4.new_code_cell(_test(cell)) for cell in question.tests),
        _raw("# END TESTS"),
        _raw("# END QUESTION"),
    ]


def _test(cell: CodeCell) -> str:
    settings = {"points": cell.points, "hidden": cell.kind == "hidden", "failure_message": cell.fails}
    config = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False, width=10_000)
    return f'""" # BEGIN TEST CONFIG\n{config}""" # END TEST CONFIG\n{cell.source}'


def _raw(first: str, settings: dict[str, Any] | None = None) -> Any:
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True) if settings else ""
    return nbformat.v4.new_raw_cell(f"{first}\n{text}".strip())
