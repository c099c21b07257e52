"""An assignment's source, `coursework/NAME.md`: text, questions, solutions and tests in one notebook.

The header holds `coursework: {title, chapter, minutes, goals}`. A text cell whose metadata name a `question`
opens it; code cells are tagged `solution` (with otter's `# BEGIN SOLUTION` lines), `public` or `hidden`
(tests, with `points` and `fails`: what a student reads), and any other is given as it stands. One cell tagged
`found` is the instructor's: it leaves the numbers of a right answer "in words" in `found`, which its `says`
puts into a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bookpress import paths
from bookpress.errors import BnbookError

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
    cells: tuple[CodeCell, ...]

    @property
    def points(self) -> float:
        return sum(cell.points for cell in self.cells)


@dataclass(frozen=True)
class Assignment:
    """One sheet; `parts` in order: texts, cells that are given, questions."""

    name: str
    title: str
    chapter: str
    minutes: int  # that a student is meant to need
    goals: tuple[str, ...]
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
    """The assignment in a file; BnbookError where a part is missing or misplaced."""
    import jupytext

    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    about = notebook.metadata.get("coursework", {})
    missing = {"title", "chapter", "minutes", "goals"} - set(about)
    if missing:
        raise BnbookError(f"{path.name}: its header's coursework lacks {', '.join(sorted(missing))}")
    parts: list[str | CodeCell | Question] = []
    found: list[CodeCell] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            name = cell.metadata.get("question")
            parts.append(Question(name, cell.source, ()) if name else cell.source)
            continue
        kind = next((tag for tag in cell.metadata.get("tags", []) if tag in KINDS), "given")
        about_it = cell.metadata
        read_cell = CodeCell(
            kind,
            cell.source,
            float(about_it.get("points", 0)),
            about_it.get("fails", ""),
            about_it.get("says", ""),
        )
        if kind == "found":
            found.append(read_cell)
        elif isinstance(parts[-1] if parts else None, Question):
            last = parts.pop()
            parts.append(Question(last.name, last.text, (*last.cells, read_cell)))
        elif kind == "given":
            parts.append(read_cell)
        else:
            raise BnbookError(f"{path.name}: a {kind} cell outside a question; expected it right after one")
    if len(found) != 1 or not found[0].says:
        raise BnbookError(f"{path.name}: {len(found)} cells tagged `found`; expected one, with `says`")
    made = Assignment(
        path.stem,
        about["title"],
        about["chapter"],
        int(about["minutes"]),
        tuple(about["goals"]),
        tuple(parts),
        found[0],
    )
    _check(made, path)
    return made


def _check(assignment: Assignment, path: Path) -> None:
    if not assignment.questions:
        raise BnbookError(f"{path.name} asks no question; expected at least one")
    for question in assignment.questions:
        kinds = [cell.kind for cell in question.cells]
        if kinds.count("solution") != 1 or "public" not in kinds or "hidden" not in kinds:
            raise BnbookError(
                f"{path.name}, question {question.name}: {', '.join(kinds) or 'no cells'}; expected one "
                "solution, a public test and a hidden one"
            )
        for cell in question.cells:
            if cell.kind in ("public", "hidden") and not (cell.points > 0 and cell.fails):
                raise BnbookError(f"{path.name}, question {question.name}: a test without points or `fails`")
