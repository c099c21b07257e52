"""A process that runs chapters, one after the other, for another that says which and hears how they went."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any

from bnbook.errors import BnbookError, reason
from bnbook.pipeline.chapters import evidence, verdicts
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.execution import execute, forked_kernel
from bnbook.pipeline.gate import compare


@dataclass
class ChapterOutcome:
    """How one chapter went: whether it passed (and, where asked, agrees with the book), and what to say."""

    passed: bool = True
    lines: list[tuple[bool, str]] = field(default_factory=list)  # (an error, text)


@dataclass(frozen=True)
class Job:
    """What is done with each chapter."""

    profile: str
    changes: dict[str, dict[str, Any]]  # by the name of the chapter
    compare: bool = False
    figure: bool = False  # of the comparison
    name: str | None = None  # into runs/NAME
    details: bool = False  # of a comparison that is none

    def run(self, chapter: Chapter) -> ChapterOutcome:
        """Run it here; BnbookError where the chapter met input that the user can mend."""
        started = time.perf_counter()
        before = _parameters(chapter, self.profile, self.name)
        try:
            done = execute.run_chapter(chapter, self.profile, self.changes[chapter.name], name=self.name)
        except execute.ChapterFailed as error:
            return ChapterOutcome(False, [(True, f"FAILED {error}")])
        except OSError as error:  # a full disk, a folder that cannot be written
            return ChapterOutcome(False, [(True, f"FAILED {chapter.name}: {reason(error)}")])
        seconds = time.perf_counter() - started
        outcome = ChapterOutcome(
            lines=[(False, f"passed {chapter.name} ({self.profile}) in {seconds:.1f} s")]
        )
        if over := execute.check_budget(done):
            outcome.lines.append((True, f"warning: {over}"))
        if len(self.changes) == 1:
            files = f"{done.notebook_path}, {done.results_path.name}, {done.figures_folder.name}/"
            words = verdicts.tally(found.verdict for found in verdicts.chapter_verdicts(done))
            outcome.lines += [(False, f"wrote {files}"), (False, f"verdicts: {words or 'no claim'}")]
            if other := _differing(before, done.results.header["parameters"]):
                words = f"it replaced a run with {other}; --name NAME keeps both"
                outcome.lines.append((False, words))
        if self.compare:
            lines, found = compare.compare(done, self.details)
            outcome.passed = found in compare.PASSING
            outcome.lines += [(False, line) for line in lines]
        if self.figure:
            from bnbook.pipeline.gate import rerun_figure  # Matplotlib takes a second

            path = rerun_figure.write(done) or "none, for no number of this chapter is judged by a band"
            outcome.lines.append((False, f"figure: {path}"))
        return outcome


def _parameters(chapter: Chapter, profile: str, name: str | None) -> dict[str, Any]:
    """Those of the run that is there already, if there is one."""
    try:
        return evidence.fresh_run(chapter, profile, name).results.header["parameters"]
    except (BnbookError, OSError, KeyError):
        return {}


def _differing(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What the parameters were where they differ: "width = 0.25, steps = 50"."""
    return ", ".join(f"{key} = {value!r}" for key, value in before.items() if now.get(key, value) != value)


class ChapterProcess:
    """One process, its chapter and the last that it said."""

    def __init__(self, job: Job, shown: bool, share: int, forking: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, job, shown, share, forking))
        self.process.start()
        other.close()
        self.chapter: Chapter
        self.says = ""


def _work(line: connection.Connection, job: Job, shown: bool, share: int, forking: bool) -> None:
    """In the process: run the chapters that come along the line, until it is ended."""
    os.environ["BNBOOK_CORES"] = str(share)
    os.environ.setdefault("OMP_NUM_THREADS", str(share))  # kernels that wait for each other's cores spin
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if forking:
        forked_kernel.use()
    sys.stderr = _Words(line, shown)
    try:
        while True:
            chapter = line.recv()
            try:
                answer = job.run(chapter)
            except BnbookError as error:
                answer = error
            except Exception:
                answer = ChapterOutcome(False, [(True, f"FAILED {chapter.name}\n{traceback.format_exc()}")])
            sys.stderr.send(answer)
    except (KeyboardInterrupt, EOFError, BrokenPipeError):
        pass


def _interrupt(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)  # the kernel sees that and ends, too


class _Words:
    """A process's standard error: what is written goes along the line."""

    encoding = "utf-8"

    def __init__(self, line: connection.Connection, shown: bool) -> None:
        self.line, self.shown, self.lock = line, shown, threading.Lock()

    def send(self, message: Any) -> None:
        with self.lock:
            self.line.send(message)

    def write(self, text: str) -> int:
        self.send(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return self.shown
