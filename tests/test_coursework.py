"""Coursework: full points for the instructor, none for the untouched sheet, the right ones for mistakes, and
nothing of a solution in what students get."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from coursework_answers import WRONG

from bnbook.coursework import making, reading
from bnbook.errors import BnbookError

otter = pytest.importorskip("otter.test_files", reason="otter-grader is not installed")
NAMES = [path.stem for path in reading.discover()]


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("course") / "course"
    making.make(target)
    return target


def answers(path: Path, changes: dict[str, tuple[str, str]] | None = None) -> dict:
    """What the notebook's cells define, each cell run as a student would; {question: (old, new)} rewrites
    code."""
    world: dict = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code" or "grader" in source:
            continue
        for old, new in (changes or {}).values():
            source = source.replace(old, new)
        exec(compile(source, path.name, "exec"), world)
    return world


def failed(course: Path, name: str, world: dict) -> dict[str, str]:
    """Function name -> what a student reads, for each test of the autograder that fails."""
    found = {}
    with zipfile.ZipFile(course / "autograder" / f"{name}.zip") as archive:
        for member in archive.namelist():
            if member.startswith("tests/"):
                tests = otter.ExceptionTestFile.from_string(archive.read(member).decode())
                tests.run(world)
                for result in tests.test_case_results:
                    if not result.passed:
                        found[result.test_case.body.test_func.__name__] = (
                            f"{result.test_case.failure_message}\n{result.message}"
                        )
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_solution_earns_everything(course, name):
    assert failed(course, name, answers(course / "instructor" / f"{name}.ipynb")) == {}


@pytest.mark.parametrize("name", NAMES)
def test_the_untouched_sheet_earns_nothing_and_says_why(course, name):
    found = failed(course, name, answers(course / "student" / f"{name}.ipynb"))
    tests = [
        cell for q in assignment(name).questions for cell in q.cells if cell.kind in ("public", "hidden")
    ]
    assert len(found) == len(tests)
    for cell in tests:
        assert found[re.search(r"def (\w+)", cell.source).group(1)].startswith(cell.fails)


@pytest.mark.parametrize("mistake", WRONG)
def test_a_typical_mistake_loses_the_right_points(course, mistake):
    name, question, right, wrong, tests = WRONG[mistake]
    (asked,) = (each for each in assignment(name).questions if each.name == question)
    assert sum(cell.source.count(right) for cell in asked.cells if cell.kind == "solution") == 1
    world = answers(course / "instructor" / f"{name}.ipynb", {question: (right, wrong)})
    assert set(failed(course, name, world)) == set(tests)


@pytest.mark.parametrize("name", NAMES)
def test_students_get_no_solution_and_no_hidden_test(course, name):
    sheet = (course / "student" / f"{name}.ipynb").read_text(encoding="utf-8")
    content = json.loads(sheet)
    assert set(content["metadata"]) <= {"kernelspec", "otter", "language_info"}
    assert not any(cell.get("outputs") for cell in content["cells"])
    text = "\n".join("".join(cell["source"]) for cell in content["cells"]) + json.dumps(content["metadata"])
    for question in assignment(name).questions:
        for cell in question.cells:
            if cell.kind == "hidden":
                assert re.search(r"def (\w+)", cell.source).group(1) not in text
            if cell.kind == "solution":
                inside = re.search(
                    r"# BEGIN SOLUTION\n(.*?)\n *# END SOLUTION", cell.source, flags=re.S
                ).group(1)
                assert not [
                    line for line in inside.splitlines() if len(line.strip()) > 20 and line.strip() in text
                ]


def test_the_points_table_adds_up(course):
    with open(course / "points.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for name in NAMES:
        own = [row for row in rows if row["assignment"] == name]
        assert sum(float(row["public"]) + float(row["hidden"]) for row in own) == assignment(name).points


def test_the_machine_that_grades_gets_what_the_sheets_import(course):
    for name in NAMES:
        with zipfile.ZipFile(course / "autograder" / f"{name}.zip") as archive:
            text = archive.read("environment.yml").decode()
        assert re.search(r"^ *- torch$", text, flags=re.M)


def test_the_instructors_page_names_pages_and_sheets_as_they_are():
    page = reading.folder() / "README.md"
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\[([^]]+)\]\((\.\./book/[^)]+)\)", text)
    assert len(links) >= 8
    for words, target in links:
        title = re.search(r"^# (.+)$", (page.parent / target).read_text(encoding="utf-8"), flags=re.M).group(
            1
        )
        assert words.lower() == title.lower() or target.endswith(("index.md", "your-network.md")), target
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| (\d+) \|$", text, flags=re.M)
    assert dict(rows) == {name: str(assignment(name).minutes) for name in NAMES}


def test_otter_itself_gives_the_same_points(course, tmp_path):
    """One assignment all the way: the zip that goes to Gradescope on a submission with one mistake."""
    name, _, right, wrong, tests = WRONG["transform: gamma forgotten"]
    text = (course / "instructor" / f"{name}.ipynb").read_text(encoding="utf-8")
    submitted = tmp_path / f"{name}.ipynb"
    submitted.write_text(text.replace(right, wrong), encoding="utf-8")
    words = [
        sys.executable,
        "-m",
        "otter",
        "run",
        "-a",
        str(course / "autograder" / f"{name}.zip"),
        "--no-logo",
    ]
    done = subprocess.run(
        [*words, "-o", str(tmp_path), str(submitted)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    graded = json.loads((tmp_path / "results.json").read_text())["tests"]
    lost = sum(
        cell.points
        for question in assignment(name).questions
        for cell in question.cells
        if any(f"def {test}(" in cell.source for test in tests)
    )
    assert sum(test.get("score", 0) for test in graded) == pytest.approx(assignment(name).points - lost)


def assignment(name: str) -> reading.Assignment:
    return reading.read(reading.folder() / f"{name}.md")


def test_bad_input_is_one_clear_line(tmp_path):
    with pytest.raises(BnbookError, match="no assignment 'nothing'"):
        making.make(tmp_path / "new", ["nothing"])
    with pytest.raises(BnbookError, match="is there already"):
        making.make(tmp_path)
    assert not list(tmp_path.iterdir())
