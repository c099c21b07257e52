"""The numbers of the instructor's page: measured, kept in coursework/measured.json, put into the page.

`python scripts/course.py [SHEET ...]` measures the sheets, or some anew, and the commands that
the page gives for the class. A sheet's record carries the SHA-256 of the code that it rests on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bnbook.errors import BnbookError
from bookpress import atomic, coursework, paths
from bookpress.book import book
from bookpress.coursework import Assignment

START, END = "<!-- measured by python scripts/course.py -->", "<!-- end -->"


def record_file() -> Path:
    return coursework.folder() / "measured.json"


def page_file() -> Path:
    return coursework.folder() / "README.md"


def solved(assignment: Assignment) -> str:
    """The code of the right answers."""
    return "\n\n".join(cell.source for cell in assignment.of("given", "solution"))


def code(assignment: Assignment) -> str:
    """The right answers, then the instructor's own measurement."""
    return f"{solved(assignment)}\n\n{assignment.found.source}"


def digest(assignment: Assignment) -> str:
    return hashlib.sha256(code(assignment).encode()).hexdigest()


def found(assignment: Assignment) -> dict[str, float]:
    """The numbers of a right answer "in words"."""
    world: dict[str, Any] = {}
    exec(compile(code(assignment), assignment.name, "exec"), world)
    return {name: float(value) for name, value in world["found"].items()}


def measure(names: Sequence[str] = ()) -> dict[str, Any]:
    """Record of each sheet: what is found, the seconds of a run and of its grading, its points."""
    sheets = {}
    with tempfile.TemporaryDirectory() as scratch:
        course = Path(scratch) / "course"
        for assignment in coursework.make(course, names):
            name = assignment.name
            notebook = course / "instructor" / f"{name}.ipynb"
            words = ["nbconvert", "--to", "notebook", "--execute", "--output", "out", str(notebook)]
            ran = _timed(words, notebook.parent)
            del ran["said"]
            zipped = course / "autograder" / f"{name}.zip"
            words = ["otter", "run", "-a", str(zipped), "--no-logo", "-o", scratch, str(notebook)]
            graded = _timed(words, course)
            del graded["said"]
            tests = json.loads((Path(scratch) / "results.json").read_text("utf-8"))["tests"]
            sheets[name] = {
                "code": digest(assignment),
                "run": ran,
                "grading": graded,
                "points": sum(test.get("score", 0) for test in tests),
                "found": found(assignment),
            }
            print(f"{name}: run {ran['seconds']} s, graded in {graded['seconds']} s", flush=True)
    return sheets


def commands(page: str) -> list[list[str]]:
    """The words behind `run` in the page's own lines."""
    return [
        line.split() for line in re.findall(rf"^ *\.venv/bin/{book().package} (run .*)$", page, flags=re.M)
    ]


def rerun(words: Sequence[str]) -> dict[str, Any]:
    """Seconds of one of the page's commands, and what it says at its end about the book."""
    with tempfile.TemporaryDirectory() as scratch:
        differs = 1  # is no error: the page asks why
        more = {"BNBOOK_RUNS": scratch}
        ran = _timed([book().package, *words], paths.repository_root(), more, good=(0, differs))
    said = outcome(ran.pop("said"))
    print(f"{words[1]}: {ran['seconds']} s, {said}", flush=True)
    return ran | {"command": " ".join(words), "said": said}


def outcome(printed: str) -> str:
    """What `--compare` found, among the lines that `run` printed: the words behind "this … run"."""
    (said,) = re.findall(r"^[\w/-]+: this \w+ run (\w+ .*the book.*)$", printed, flags=re.M)
    return said


def _timed(
    words: Sequence[str], place: Path, more: Mapping[str, str] | None = None, good: Sequence[int] = (0,)
) -> dict[str, Any]:
    """Seconds by the clock and of the processor of a command with all that it starts, and what it said.

    `good`: its exit codes that are no error.
    """
    import resource  # not on Windows

    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=place,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONUTF8": "1"} | (more or {}),
    )
    if done.returncode not in good:
        raise BnbookError(f"{' '.join(words)} fails: {done.stderr[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seconds = round(time.perf_counter() - began, 1)
    return {"seconds": seconds, "processor": round(processor, 1), "said": done.stdout + done.stderr}


def block(record: dict[str, Any], assignments: Sequence[Assignment]) -> str:
    """The part of the page that is made of what was measured."""
    made, sheets = record["made"], record["sheets"]
    lines = [START]
    for each in assignments:
        lines.append(f"* `{each.name}`: {each.found.says.format_map(sheets[each.name]['found'])}")
    lines += ["", "| sheet | runs in | graded in |", "|---|---|---|"]
    lines += [
        f"| `{each.name}` | {_clock(sheets[each.name]['run'])} | {_clock(sheets[each.name]['grading'])} |"
        for each in assignments
    ]
    lines += ["", "| command for the class | takes | says at its end |", "|---|---|---|"]
    lines += [
        f"| `{book().package} {one['command']}` | {_clock(one)} | {one['said']} |" for one in record["class"]
    ]
    slowest = max(own["run"]["seconds"] for own in sheets.values())
    lines += [
        "",
        f"Seconds by the clock, in brackets of the processor. Measured {made['date']} on {made['cores']} cores "
        f"under a load of {made['load']:.0f}. The slowest sheet takes {slowest:.0f} seconds. Other draws and "
        "networks give other numbers.",
        END,
    ]
    return "\n".join(lines)


def _clock(ran: Mapping[str, Any]) -> str:
    return f"{ran['seconds']:.0f} s ({ran['processor']:.0f} s)"


def with_block(page: str, text: str) -> str:
    return re.sub(f"{re.escape(START)}.*?{re.escape(END)}", lambda _: text, page, flags=re.S)


def main(names: Sequence[str]) -> None:
    old = json.loads(record_file().read_text("utf-8")) if names else {"sheets": {}}
    made = {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count(), "load": round(os.getloadavg()[2], 1)}
    lines = [rerun(words) for words in commands(page_file().read_text("utf-8"))]
    sheets = dict(sorted((old["sheets"] | measure(names)).items()))
    record = {"made": made, "sheets": sheets, "class": lines}
    atomic.write_json(record_file(), record)
    assignments = [coursework.read(path) for path in coursework.discover()]
    atomic.write_text(page_file(), with_block(page_file().read_text("utf-8"), block(record, assignments)))


if __name__ == "__main__":
    main(sys.argv[1:])
