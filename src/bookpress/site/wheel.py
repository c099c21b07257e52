"""The wheel of the book's package that the site offers, for a notebook that has been taken away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bookpress import paths
from bookpress.book import book, folders
from bookpress.claims import reading
from bookpress.errors import PressError
from bookpress.pipeline import handout
from bookpress.pipeline.chapters import Chapter
from bookpress.pipeline.prose import Pages

#: Beside the code, what the package is made by; the interpreter's setuptools makes it, nothing is fetched.
MADE_BY = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "LICENSE-text")
PROGRAM = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def is_offered() -> bool:
    """Whether the package that makes this book has its code in the book's repository."""
    root = paths.repository_root()
    return (root / "pyproject.toml").is_file() and root in folders()[book().package].parents


def write(folder: Path, chapters: Sequence[Chapter], shown: Pages) -> Path | None:
    """Write the wheel, with the claims and verdicts that `shown` has, into the folder; None where none is offered."""
    if not is_offered():
        return None
    root = paths.repository_root()
    with TemporaryDirectory() as temporary:
        copy = Path(temporary) / "source"
        left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(root / "src", copy / "src", ignore=left_out)
        for name in filter(lambda name: (root / name).is_file(), MADE_BY):
            shutil.copyfile(root / name, copy / name)
        carried = copy / "src" / book().package / reading.CARRIED
        carried.write_text(handout.carried(chapters, shown), encoding="utf-8")
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", PROGRAM, str(folder.resolve())]
        surroundings = {"cwd": copy, "env": os.environ | {"PYTHONUTF8": "1"}}
        done = subprocess.run(command, **surroundings, capture_output=True, encoding="utf-8")
    made = folder / handout.wheel()
    if done.returncode or not made.is_file():
        said = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise PressError(f"the package's wheel {made.name} could not be made: {' '.join(said)}")
    return made


def link() -> str:
    """Where a page of the site's first folder finds it, or how one is made where it offers none."""
    name = handout.wheel()
    if is_offered():
        return f'<a href="data/{name}" download>{name}</a>'
    return f"{name} (made with `pip wheel --no-deps .` in the package's repository)"
