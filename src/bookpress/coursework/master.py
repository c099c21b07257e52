"""The notebook that otter-grader takes apart (its "Otter Assign" format), made from an assignment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nbformat
import yaml

from bookpress.coursework.reading import Assignment, CodeCell, Question


def notebook(assignment: Assignment) -> Any:
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
    lines = [
        f"# {assignment.title}",
        "",
        f"About {assignment.minutes} minutes; {assignment.points:g} points.",
        "",
    ]
    lines += ["When you are done you can:", "", *(f"- {goal}" for goal in assignment.goals)]
    return nbformat.v4.new_markdown_cell("\n".join(lines))


def _question(question: Question) -> Iterator[Any]:
    yield _raw("# BEGIN QUESTION", {"name": question.name, "points": question.points})
    yield nbformat.v4.new_markdown_cell(question.text)
    for cell in question.cells:
        if cell.kind == "given":
            yield nbformat.v4.new_code_cell(cell.source)
    yield _raw("# BEGIN SOLUTION")
    yield from (nbformat.v4.new_code_cell(cell.source) for cell in question.cells if cell.kind == "solution")
    yield _raw("# END SOLUTION")
    yield _raw("# BEGIN TESTS")
    yield from (
        nbformat.v4.new_code_cell(_test(cell)) for cell in question.cells if cell.kind in ("public", "hidden")
    )
    yield _raw("# END TESTS")
    yield _raw("# END QUESTION")


def _test(cell: CodeCell) -> str:
    settings = {"points": cell.points, "hidden": cell.kind == "hidden", "failure_message": cell.fails}
    config = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False, width=10_000)
    return f'""" # BEGIN TEST CONFIG\n{config}""" # END TEST CONFIG\n{cell.source}'


def _raw(first: str, settings: dict[str, Any] | None = None) -> Any:
    text = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True) if settings else ""
    return nbformat.v4.new_raw_cell(f"{first}\n{text}".strip())
