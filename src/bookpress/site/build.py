"""The site: pages staged in _build/pages, rendered by jupyter-book with `extension`, and put in place in one step."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bookpress import atomic, coursework, paths
from bookpress.book import command_name
from bookpress.errors import PressError
from bookpress.pipeline import handout
from bookpress.site import check, exports, pages, shell, verdicts

#: What the site needs of MathJax; the rest of the package (20 MB of other renderers and languages) is left out.
MATHJAX_KEPT = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions", "a11y")
MATHJAX_KEPT += ("sre/mathmaps/en.json",)
#: What comes with the theme and no reader's browser asks for: its scripts' sources, words for Sphinx, its templates,
#: and fonts that stand there in a smaller form.
UNREAD = (".map", ".po", ".mo", "macros.html", ".ttf")


def build(profile: str | None = None) -> Path:
    """Render the book and return its first page: the fresh runs of `profile`, or with None the committed
    evidence.

    `_build` is wiped before: what an earlier build left (glue files, pages of removed chapters) never reaches
    the site.
    """
    if profile is None and (wrong := check.unlocked()):
        first = "; ".join(wrong[:3])
        raise PressError(f"the locks cannot be trusted: {first}; {command_name()} check says all")
    folder = paths.build_folder()
    words = f"another process builds the site in {folder}; wait for it and start again"
    with atomic.alone(folder / ".lock", PressError(words)):
        try:
            return _built(folder, profile)
        finally:
            shutil.rmtree(folder / "output", ignore_errors=True)


def _built(folder: Path, profile: str | None) -> Path:
    staged, output, site = folder / "pages", folder / "output", folder / "html"
    for old in (staged, output, folder / "jupyter_execute", folder / ".jupyter_cache"):
        shutil.rmtree(old, ignore_errors=True)
    chapters, shown = pages.stage(staged, profile, _say)
    rendered, made = output / "_build" / "html", output / "made"
    _say("rendering the site")
    with _jupyter_book(staged, output):  # meanwhile, what needs none of its pages
        handout.write(made, chapters, shown)
        handout.write_wheel(output / "wheel", chapters, shown)
        sheets = coursework.students()
    leave_out_unread(rendered / "_static")
    coursework.write(rendered, sheets)
    titles = json.loads((staged / shell.TOLD).read_text(encoding="utf-8"))["titles"]
    shell.draw_previews(titles, shown.rows.values(), rendered / "_images")
    verdicts.redirect(rendered, shown)
    # what the download button of a page gives
    shutil.copytree(made, rendered / "_sources", dirs_exist_ok=True)
    exports.write(rendered, shown)
    for beside in filter(Path.is_dir, (staged / "data", output / "wheel")):
        shutil.copytree(beside, rendered / "data", dirs_exist_ok=True)
    shutil.rmtree(folder / "html.old", ignore_errors=True)
    if site.exists():
        os.replace(site, folder / "html.old")
    os.replace(rendered, site)
    shutil.rmtree(folder / "html.old", ignore_errors=True)
    return site / "index.html"


def _say(stage: str) -> None:
    """A build takes minutes: each stage has a line as it begins."""
    print(f"{stage} …", flush=True)


#: This interpreter's jupyter-book, whatever PATH says, in which nbformat starts as quickly as here; without the
#: collector of cyclic garbage, which takes a third of its time and finds little before its end; and ended with this
#: process, at whose end its input ends.
PROGRAM = """
import gc, os, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
gc.disable()
import bookpress.pipeline
from jupyter_book.cli.main import main
main()
"""


@contextmanager
def _jupyter_book(staged: Path, output: Path) -> Iterator[None]:
    """Run jupyter-book with warnings as errors beside what is done inside; PressError with its own words when it
    refuses."""
    command = [sys.executable, "-c", PROGRAM, "build", str(staged), "--path-output", str(output)]
    command += ["-W", "-n", "--keep-going", "--all", "-q"]
    environment = os.environ | {"PYTHONWARNINGS": "ignore", "SOURCE_DATE_EPOCH": str(int(time.time()))}
    environment |= {"PYTHONUTF8": "1", shell.MARK: "1"}  # what it says is read as UTF-8
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=said, env=environment)
        try:
            yield
            process.wait()
        finally:
            process.kill()
            process.stdin.close()
        if process.returncode or not (output / "_build" / "html" / "index.html").is_file():
            said.seek(0)
            lines = said.read().splitlines()
            telling = [line for line in lines if re.search(r"WARNING|ERROR|Error", line)] or lines[-5:]
            raise PressError("jupyter-book refused the pages: " + " | ".join(telling[:6]))


def leave_out_unread(static: Path) -> None:
    """What no browser asks for is removed."""
    mathjax = static / "mathjax"
    for path in sorted(static.rglob("*"), reverse=True):
        rest = mathjax in path.parents and not path.relative_to(mathjax).as_posix().startswith(MATHJAX_KEPT)
        if path.is_file() and (rest or path.name.endswith(UNREAD)):
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
