"""What a kernel finds around it: its run's places, and nothing that its user's own sessions start with."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bnbook import paths
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.pipeline.execution import witness


@contextmanager
def surroundings(work: Evidence, scratch: Path) -> Iterator[None]:
    """Set the environment while the kernel runs, and prepare the files that its Pythons read first."""
    own = scratch / "startup"
    own.mkdir()
    shutil.copy2(witness.__file__, own / "sitecustomize.py")
    (own / "usercustomize.py").touch()
    (scratch / "matplotlibrc").touch()  # the first that Matplotlib looks for is the working folder's
    wanted = {
        "BNBOOK_RESULTS": str(work.results_path),
        "BNBOOK_FIGURES": str(work.figures_folder),
        "BNBOOK_CHAPTER": work.chapter.name,
        "BNBOOK_PROGRESS": str(scratch / "progress"),
        "BNBOOK_IMPORTED": str(scratch / "imported"),
        "BNBOOK_ROOT": str(paths.repository_root()),
        "MPLBACKEND": "agg",
        "IPYTHONDIR": str(own / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(own / "jupyter"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONSTARTUP": None,
        "PYTHONPATH": _before(str(own), "PYTHONPATH"),
        "PATH": _before(str(Path(sys.executable).parent), "PATH"),
    }
    before = {name: os.environ.get(name) for name in wanted}
    try:
        _set(wanted)
        yield
    finally:
        _set(before)


def _before(first: str, name: str) -> str:
    """A list of folders with one more in front."""
    return os.pathsep.join([first, *filter(None, [os.environ.get(name)])])


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
