"""Other people's packages, each asked in an environment of its own, which uv makes from the packages that stand pinned."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bnbook.errors import BnbookError
from bnbook.results import record, record_table

SLOWEST = 3600  # seconds: jittor compiles itself at its first import
Answers = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Environment:
    """Packages with their versions, between blanks, and the Python that they want; head: more of uv's settings."""

    packages: str
    python: str = "==3.11.*"
    head: str = ""

    @property
    def said(self) -> list[str]:
        """The packages whose versions a run names."""
        names = [re.split(r"[\[=]", each)[0] for each in self.packages.split()]
        return [name for name in dict.fromkeys(names) if name not in ("numpy", "setuptools")]

    def program(self, folder: Path, module: str, call: str) -> str:
        """A script with this environment in its head, as uv reads it, that imports the folder's modules and calls."""
        head = f'requires-python = "{self.python}"\ndependencies = {json.dumps(self.packages.split())}\n{self.head}'
        comment = "".join(f"# {line}\n" for line in ["/// script", *head.splitlines(), "///"])
        return f"{comment}import sys\nsys.path.insert(0, {str(folder)!r})\nimport {module}\n{call}\n"


def uv() -> list[str]:
    """The command that makes an environment from the head of a script; BnbookError where it is not installed."""
    if found := shutil.which("uv"):
        return [found]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise BnbookError(
        "the other libraries run in environments that uv makes, and uv is not installed; install it (pip install uv) "
        "and run again, or leave `ask` at what is here already"
    )


def ask(
    programs: Mapping[str, str], here: Collection[str], cache: str | None, workers: int
) -> tuple[Answers, dict[str, str]]:
    """What each program answers, and of each other in a line why not; those that are here run in this environment."""
    elsewhere: list[str] = []
    if set(programs) - set(here):
        elsewhere = [*uv(), *(["--cache-dir", cache] if cache else []), "run", "--quiet", "-"]
    with ThreadPoolExecutor(workers) as pool:
        commands = [[sys.executable, "-"] if name in here else elsewhere for name in programs]
        said = dict(zip(programs, pool.map(run_one, commands, programs.values()), strict=True))
    return (
        {name: each for name, each in said.items() if not isinstance(each, str)},
        {name: each for name, each in said.items() if isinstance(each, str)},
    )


def run_one(command: list[str], program: str) -> dict[str, Any] | str:
    """What a program answers that is handed to a command, or why it does not, in a few words."""
    # one thread a library; answers go through a pipe, for one library hangs where its output is a file
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MPLBACKEND", "VIRTUAL_ENV")
    }
    environment |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command,
                input=program,
                capture_output=True,
                encoding="utf-8",
                env=environment,
                cwd=folder,
                timeout=SLOWEST,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return f"took longer than {SLOWEST} seconds"
    return answers_of(done.stdout) or _reason(done.stderr, done.returncode)


def answers_of(printed: str) -> dict[str, Any] | None:
    """The last line that is a JSON object; what a library prints beside it is passed over."""
    for line in reversed(printed.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return None


def _reason(printed: str, code: int) -> str:
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    told = (
        [line for line in lines if re.search(r"[Ee]rror|No solution|not found|cause", line)]
        or lines
        or ["no word"]
    )
    ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"{ended}: {told[-1][:200]}"


def chosen(words: str, every: Collection[str], here: Collection[str] = ()) -> list[str]:
    """The names of a parameter: "every", "here" (no other environment), or names separated by commas."""
    known = {"every": every, "here": here}
    return list(known[words]) if words in known else words.replace(" ", "").split(",")


def record_answers(answers: Answers, judged: Mapping[str, Mapping[str, float]]) -> None:
    """Record and print by which versions each answered; record what the tests read, quantity -> name -> number."""
    for name, document in answers.items():
        versions = ", ".join(" ".join(each) for each in document["versions"].items())
        said = f"{versions}, Python {document['python']}"
        record(f"asked.{name}", [1], note=said)
        print(f"{name}: {said}")
    record_quantities(judged, "as the tests read it")


def record_quantities(found: Mapping[str, Mapping[str, float]], words: str) -> None:
    """Record numbers by quantity and name, with the quantity and these words as their note."""
    for quantity, of in found.items():
        record_table({quantity: {name: [value] for name, value in of.items()}}, note=f"{quantity}, {words}")


def markdown(head: list[str], rows: list[list[str]]) -> Any:
    """Rows of words as a table for a notebook; what a row lacks of the head's cells is empty."""
    from IPython.display import Markdown

    cells = [[*(each.replace("|", "/") for each in row), *[""] * (len(head) - len(row))] for row in rows]
    return Markdown("\n".join(f"| {' | '.join(each)} |" for each in (head, ["---"] * len(head), *cells)))
