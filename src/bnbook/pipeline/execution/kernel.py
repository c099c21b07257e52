"""One notebook executed by papermill, in a kernel of this Python that finds the run's own copy of the package
and nothing that its user's own sessions start with."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bnbook
from bnbook import paths
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.evidence import Evidence

#: What marks a chapter's own BnbookError among the failures of its cells.
MENDABLE = "bad input: "
#: Attempts at starting a kernel: two that start at once may have picked the same free port.
STARTS = 3
#: Seconds within which a kernel must answer: on a machine busy with other things a minute is too short.
ANSWERS_WITHIN = 180


def copy_package(scratch: Path) -> Path:
    """The package as it is now, in `scratch/code`: what the run imports and is hashed by. An edit during the
    run does not reach it."""
    copy = scratch / "code" / "bnbook"
    shutil.copytree(Path(bnbook.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    traced = "import bnbook_tracing\n" if os.environ.get("BNBOOK_TRACES") else ""  # of the tests
    (copy.parent / "sitecustomize.py").write_text(traced, encoding="utf-8")
    (copy.parent / "usercustomize.py").touch()
    return copy


def execute_notebook(source: Path, work: Evidence, values: dict[str, Any]) -> str | None:
    """Execute `source`, beside which lies the copy of the package; the first line of what went wrong, or
    None."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    _reach_own_machine()
    (source.parent / "matplotlibrc").touch()  # the first that Matplotlib looks for is the working folder's
    for start in range(1, STARTS + 1):
        try:
            with _environment(source.parent, work), _progress(work.chapter.name, source.parent / "progress"):
                papermill.execute_notebook(
                    source,
                    work.notebook_path,
                    parameters=values,
                    kernel_name="python3",
                    progress_bar=False,
                    start_timeout=ANSWERS_WITHIN,
                    cwd=source.parent,
                    extra_arguments=["--log-level=CRITICAL"],  # its own remarks do not belong in the terminal
                )
        except papermill.PapermillExecutionError as error:
            mendable = error.ename == BnbookError.__name__
            where = f"cell {error.exec_count}: {error.ename}: {error.evalue}"
            return f"{MENDABLE}{error.evalue}" if mendable else where
        except (DeadKernelError, CellTimeoutError) as error:
            return f"the kernel died: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        except RuntimeError as error:
            if "before replying" not in str(error) and "didn't respond" not in str(error):
                raise
            if start == STARTS:
                return f"the kernel did not start in {STARTS} attempts: {error}"
        else:
            return None
    raise AssertionError("a kernel starts at least once")


@contextmanager
def _environment(scratch: Path, work: Evidence) -> Iterator[None]:
    """What a kernel finds around it while it runs, and this process again afterwards."""
    before = dict(os.environ)
    os.environ.pop("PYTHONSTARTUP", None)
    os.environ |= {
        "BNBOOK_RESULTS": str(work.results_path),
        "BNBOOK_FIGURES": str(work.figures_folder),
        "BNBOOK_CHAPTER": work.chapter.name,
        "BNBOOK_PROGRESS": str(scratch / "progress"),
        "BNBOOK_ROOT": str(paths.repository_root()),
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": str(scratch / "own"),
        "IPYTHONDIR": str(scratch / "own" / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "own" / "jupyter"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": _before(str(scratch / "code"), "PYTHONPATH"),
        "PATH": _before(str(Path(sys.executable).parent), "PATH"),
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def _before(first: str, name: str) -> str:
    """A list of folders with one more in front."""
    return os.pathsep.join([first, *filter(None, [os.environ.get(name)])])


@contextmanager
def _progress(label: str, said: Path) -> Iterator[None]:
    """What the chapter's trainings say of themselves goes to the terminal: the newest line in place, in a log
    one each half minute."""
    said.touch()
    over, watched = threading.Event(), sys.stderr.isatty()

    def show() -> None:
        shown = ""
        while not over.wait(0.5 if watched else 30):
            line = said.read_text(encoding="utf-8").rpartition("\n")[0].rpartition("\n")[2]
            if line and line != shown:
                shown = line
                text = f"\r\x1b[K{label}: {line}" if watched else f"{label}: {line}\n"
                sys.stderr.write(text)
                sys.stderr.flush()
        if shown and watched:
            sys.stderr.write("\n")

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _reach_own_machine() -> None:
    """Raises BnbookError where processes cannot speak to each other by 127.0.0.1, as a kernel must."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        raise BnbookError(
            f"a notebook's kernel is reached by 127.0.0.1, which does not answer here ({error}): bring the "
            "loopback device up (ip link set lo up)"
        ) from None
