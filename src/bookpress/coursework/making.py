"""`coursework DIR`: what students, instructors and graders get."""

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
from pathlib import Path

import nbformat

from bookpress import atomic
from bookpress.book import command_name
from bookpress.coursework import master, reading
from bookpress.coursework.reading import Assignment
from bookpress.errors import BnbookError

#: Nothing below may stand in what a student gets.
SECRETS = ("BEGIN SOLUTION", "hidden=True")
UNWRITTEN = 'raise NotImplementedError("nothing is written here yet")'


def make(target: Path, names: Sequence[str] = ()) -> list[Assignment]:
    """Write student/NAME.ipynb, instructor/NAME.ipynb, autograder/NAME.zip and points.csv; all or nothing.

    `names`: some assignments; by default all. BnbookError for an unknown name, for a folder that is there,
    where otter-grader is not installed, where a secret would reach the students.
    """
    target = Path(target)
    if codecs.lookup(locale.getpreferredencoding(False)).name != "utf-8":  # in which otter writes
        raise BnbookError("otter-grader needs Python's UTF-8 mode here; set PYTHONUTF8=1 and run it again")
    if target.exists():
        raise BnbookError(f"{target} is there already; name a folder that is not")
    known = {path.stem: path for path in reading.discover()}
    if unknown := [name for name in names if name not in known]:
        raise BnbookError(f"no assignment {unknown[0]!r}; expected some of {', '.join(known)}")
    assignments = [reading.read(known[name]) for name in names or known]
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
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["assignment", "chapter", "minutes", "question", "public", "hidden"])
    for each in assignments:
        for question in each.questions:
            counted = [
                sum(cell.points for cell in question.cells if cell.kind == kind)
                for kind in ("public", "hidden")
            ]
            row = [
                each.name,
                each.chapter,
                each.minutes,
                question.name,
                *(f"{points:g}" for points in counted),
            ]
            writer.writerow(row)
    return buffer.getvalue()


def _one(assignment: Assignment, folder: Path) -> None:
    try:
        from otter.assign import main as assign
    except ImportError:
        raise BnbookError(
            f"otter-grader is not installed; expected version 7; install {command_name()}[coursework]"
        ) from None
    work = folder / f".{assignment.name}"
    source = work / f"{assignment.name}.ipynb"
    work.mkdir(parents=True)
    nbformat.write(master.notebook(assignment), source)
    logging.getLogger("otter").setLevel(logging.ERROR)
    assign(str(source), str(work / "out"), no_pdfs=True)
    student = _text(_unwritten(_scrubbed(work / "out" / "student" / source.name)))
    if found := [secret for secret in SECRETS if secret in student]:
        raise BnbookError(f"{assignment.name}: students would get {found[0]!r}; nothing was written")
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
        cell["metadata"] = {
            name: value
            for name, value in cell["metadata"].items()
            if name in ("deletable", "editable", "tags")
        }
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
