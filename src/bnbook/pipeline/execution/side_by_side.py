"""Chapters one after the other or several at once, each in its own process; outcomes in the order given."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import psutil

from bnbook.cores import cores
from bnbook.errors import BnbookError, reason
from bnbook.pipeline.chapters import evidence, verdicts
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.execution import execute
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


def run(chapters: Sequence[Chapter], job: Job, jobs: int | None = None) -> Iterator[ChapterOutcome]:
    """The outcome of each chapter, in order; at most `jobs` at once: by default one a core, at the paper
    profile one, which fills the accelerator. BnbookError and Ctrl-C end what runs."""
    jobs = max(1, min(jobs or (1 if job.profile == "paper" else cores()), len(chapters)))
    if len(chapters) == 1:
        yield job.run(chapters[0])
        return
    ends = threading.Event()
    with ThreadPoolExecutor(jobs) as threads:
        pending = [threads.submit(_apart, chapter, job, cores() // jobs, ends) for chapter in chapters]
        try:
            for future in pending:
                while not future.done():  # one whose input has to be mended ends all, whichever it is
                    wait([each for each in pending if not each.done()], return_when=FIRST_COMPLETED)
                    for each in pending:
                        if each.done() and each.exception():
                            each.result()
                yield future.result()
        except BaseException:
            ends.set()
            threads.shutdown(wait=False, cancel_futures=True)
            for child in psutil.Process().children():  # each stops its kernel and tidies up
                child.terminate()
            raise


def _apart(chapter: Chapter, job: Job, share: int, ends: threading.Event) -> ChapterOutcome:
    """Run it in a process of its own, whose end is this chapter's failure and no other's."""
    if ends.is_set():
        return ChapterOutcome(False)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=_begin, initargs=(max(1, share),)) as pool:
        try:
            return pool.submit(job.run, chapter).result()
        except BnbookError:
            ends.set()
            raise
        except BrokenExecutor:
            words = f"FAILED {chapter.name}: its process was ended; perhaps memory ran out"
            return ChapterOutcome(False, [(True, words)])
        except Exception:
            return ChapterOutcome(False, [(True, f"FAILED {chapter.name}\n{traceback.format_exc()}")])


def _begin(share: int) -> None:
    """In the process: its share of the cores, and an end with its parent."""
    os.environ["BNBOOK_CORES"] = str(share)
    os.environ.setdefault("OMP_NUM_THREADS", str(share))  # kernels that wait for each other's cores spin
    for how in (signal.SIGTERM, signal.SIGINT):  # Ctrl-C reaches every process of the terminal
        signal.signal(how, _interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _interrupt(*_: object) -> None:
    for how in (signal.SIGTERM, signal.SIGINT):
        signal.signal(how, signal.SIG_IGN)
    logging.disable()  # an event loop that is torn down tells of its tasks, each with a traceback
    raise KeyboardInterrupt


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)  # the kernel sees that and ends, too


def _parameters(chapter: Chapter, profile: str, name: str | None) -> dict[str, Any]:
    """Those of the run that is there already, if there is one."""
    try:
        return evidence.fresh_run(chapter, profile, name).results.header["parameters"]
    except (BnbookError, OSError, KeyError):
        return {}


def _differing(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What the parameters were where they differ: "width = 0.25, steps = 50"."""
    return ", ".join(f"{key} = {value!r}" for key, value in before.items() if now.get(key, value) != value)
