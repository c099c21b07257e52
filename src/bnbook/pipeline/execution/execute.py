"""Run one chapter with papermill in a scratch folder, then put notebook, results and figures in place
together."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bnbook import data, fingerprint
from bnbook.errors import BnbookError
from bnbook.fingerprint.sources import Sources
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence, fresh_run, move
from bnbook.pipeline.execution.kernel import MENDABLE, copy_package, execute_notebook
from bnbook.pipeline.gate import gate, header
from bnbook.profiles import BUDGETS


class ChapterFailed(Exception):
    """A chapter whose run stopped or did not pass the gate; the message is what to read."""


def run_chapter(
    chapter: Chapter, profile: str, changes: dict[str, Any], *, name: str | None = None
) -> Evidence:
    """Execute `chapter` at `profile` with `changes` to its parameters; returns the evidence, in runs/PROFILE
    or runs/NAME.

    Raises ChapterFailed when a cell fails or the gate refuses; the failed notebook is kept as
    NAME.failed.ipynb and an earlier good run stays as it was. Raises BnbookError where the chapter met input
    that the user can mend.
    """
    import nbformat

    parameters = chapter.parameters(profile)
    values = parameters | changes
    target = fresh_run(chapter, profile, name)
    if "data" in values:  # now, where a download can show its progress and a fault is the user's to mend
        data.prepare(values["data"])

    with _alone(target), _scratch_folder(target) as scratch:
        # Taken now: an edit during a long run, of code or of a claim's threshold, must not pass as what ran.
        package = copy_package(scratch)
        began = fingerprint.chapter_fingerprint(chapter.code_cells, values, [], Sources(package))
        made_from = header.made_from(chapter, began, package)
        work = Evidence(chapter, scratch)
        work.figures_folder.mkdir(parents=True)
        nbformat.write(chapter.notebook, scratch / "input.ipynb")
        started = time.time()
        failure = execute_notebook(scratch / "input.ipynb", work, values)
        if failure and failure.startswith(MENDABLE):
            raise BnbookError(f"{chapter.name}: {failure.removeprefix(MENDABLE)}")
        header.complete(work, values, values == parameters, made_from, time.time() - started, peak_mib())
        problems = [failure] if failure else gate.problems(work, fresh=True)
        failed_path = target.notebook_path.with_suffix(".failed.ipynb")
        if problems:
            os.replace(work.notebook_path, failed_path)
            raise ChapterFailed(
                "\n  ".join([f"{chapter.name} failed; its notebook is {failed_path}", *problems])
            )
        move(work, target)
        for path in (failed_path, target.comparison_path):  # of the run before
            path.unlink(missing_ok=True)
    return target


@contextmanager
def _alone(target: Evidence):
    """No other process runs the same chapter into the same place (the system ends the lock of a dead one)."""
    path = target.notebook_path.parent / f".{target.notebook_path.stem}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise ChapterFailed(
            f"{target.chapter.name} is being run by another process into {path.parent}; wait for it, or name "
            "another folder by BNBOOK_RUNS"
        ) from None
    try:
        yield
    finally:
        lock.release()


def sweep(folder: Path) -> None:
    """Remove what killed runs left: scratch folders whose lock nobody holds."""
    for left in folder.rglob(".*.running"):
        lock = FileLock(left.with_suffix(".lock"), timeout=0)
        with suppress(Timeout), lock:
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _scratch_folder(target: Evidence):
    """A folder beside the target that is gone afterwards, however the run ends (after a kill: at the next
    run)."""
    scratch = target.notebook_path.parent / f".{target.notebook_path.stem}.running"
    shutil.rmtree(scratch, ignore_errors=True)
    sweep(target.folder)
    scratch.mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def peak_mib() -> int:
    """The most memory that one process of this run took, in MiB; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit // 2**20


def check_budget(evidence: Evidence) -> str | None:
    """A warning where the run took longer than its profile's budget."""
    seconds, limit = evidence.results.header["provenance"]["seconds"], BUDGETS[evidence.profile]
    if seconds <= limit:
        return None
    return f"{evidence.chapter.name}: {seconds:.0f} s, over the {evidence.profile} budget of {limit} s"
