"""Chapters one after the other, or several at once in processes of their own; outcomes in the order given."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any

import psutil

from bnbook.cores import cores
from bnbook.errors import BnbookError, reason
from bnbook.pipeline import compare, evidence, execute, verdicts
from bnbook.pipeline.chapters import Chapter

#: MiB that a chapter is expected to take which has not run here yet, by profile.
EXPECTED = {"smoke": 1500}
EXPECTED_ELSEWHERE = 4000


@dataclass
class Outcome:
    """How one chapter went: whether it passed (and, where asked, agrees with the book), and what to say."""

    passed: bool = True
    lines: list[tuple[bool, str]] = field(default_factory=list)  # (an error, text)


@dataclass(frozen=True)
class Job:
    """What is done with each chapter."""

    profile: str
    changes: dict[str, dict[str, Any]]  # by the name of the chapter
    compare: bool = False

    def run(self, chapter: Chapter) -> Outcome:
        """Run it here; BnbookError where the chapter met input that the user can mend."""
        started = time.perf_counter()
        try:
            done = execute.run_chapter(chapter, self.profile, self.changes[chapter.name])
        except execute.ChapterFailed as error:
            return Outcome(False, [(True, f"FAILED {error}")])
        except OSError as error:  # a full disk, a folder that cannot be written
            words = f"{reason(error)} ({error.filename})" if error.filename else reason(error)
            return Outcome(False, [(True, f"FAILED {chapter.name}: {words}")])
        seconds = time.perf_counter() - started
        outcome = Outcome(lines=[(False, f"passed {chapter.name} ({self.profile}) in {seconds:.1f} s")])
        if over := execute.check_budget(done):
            outcome.lines.append((True, f"warning: {over}"))
        if len(self.changes) == 1:
            files = f"{done.notebook_path}, {done.results_path.name}, {done.figures_folder.name}/"
            words = verdicts.tally(found.words for found in verdicts.chapter_verdicts(done))
            outcome.lines += [(False, f"wrote {files}"), (False, f"verdicts: {words or 'no claim'}")]
        if self.compare:
            lines, found = compare.compare(done)
            outcome.passed = found in compare.PASSING
            outcome.lines += [(False, line) for line in lines]
        return outcome


def run(chapters: Sequence[Chapter], job: Job, jobs: int | None = None) -> Iterator[Outcome]:
    """The outcome of each chapter, in order; at most `jobs` at once, by default one a core.

    Fewer where memory is short: what the chapters took last time must fit into what is free now. At the paper
    profile one at a time, which fills the accelerator. BnbookError and Ctrl-C end what runs.
    """
    jobs = min(jobs or (1 if job.profile == "paper" else cores()), len(chapters))
    return map(job.run, chapters) if jobs == 1 else _Team(chapters, job, jobs).outcomes()


def expected_mib(chapter: Chapter, profile: str) -> int:
    """What the last run of the chapter took at its peak."""
    last = evidence.fresh_run(chapter, profile)
    try:
        return last.results.header["provenance"]["peak_memory_mib"]
    except (BnbookError, OSError, ValueError, KeyError):
        return EXPECTED.get(profile, EXPECTED_ELSEWHERE)


def fits(next_one: int, running: Sequence[int], free: int) -> bool:
    """Whether a chapter may start beside those that run (all in MiB); alone it always may."""
    return not running or next_one + sum(running) <= free


class _Team:
    """Processes that run chapters, and the line that shows how far they are."""

    def __init__(self, chapters: Sequence[Chapter], job: Job, jobs: int) -> None:
        self.chapters, self.job, self.jobs = list(chapters), job, jobs
        self.free = psutil.virtual_memory().available // 2**20
        self.needs = {chapter.name: expected_mib(chapter, job.profile) for chapter in chapters}
        self.running: dict[connection.Connection, _Member] = {}
        self.idle: list[_Member] = []
        self.done: dict[str, Outcome] = {}
        self.shown = sys.stderr.isatty()

    def outcomes(self) -> Iterator[Outcome]:
        waiting, due = list(self.chapters), list(self.chapters)
        try:
            while due:
                while waiting and len(self.running) < self.jobs and self._may_start(waiting[0]):
                    self._start(waiting.pop(0))
                for ready in connection.wait(list(self.running)):
                    self._hear(self.running[ready])
                while due and due[0].name in self.done:
                    self._show("")
                    yield self.done[due.pop(0).name]
        finally:
            self._show("")
            self._dismiss()

    def _may_start(self, chapter: Chapter) -> bool:
        running = [self.needs[member.chapter.name] for member in self.running.values()]
        return fits(self.needs[chapter.name], running, self.free)

    def _start(self, chapter: Chapter) -> None:
        member = self.idle.pop() if self.idle else _Member(self.job, self.shown, max(1, cores() // self.jobs))
        member.chapter, member.says = chapter, chapter.name
        member.line.send(chapter)
        self.running[member.line] = member

    def _hear(self, member: _Member) -> None:
        try:
            message = member.line.recv()
        except EOFError:  # killed, most likely for want of memory: the chapter failed, the others go on
            member.process.join()
            words = f"its process ended with code {member.process.exitcode}; perhaps memory ran out"
            message = Outcome(False, [(True, f"FAILED {member.chapter.name}: {words}")])
        if isinstance(message, BnbookError):
            raise message
        if isinstance(message, Outcome):
            self.done[member.chapter.name] = message
            del self.running[member.line]
            if member.process.is_alive():
                self.idle.append(member)
        elif text := message.replace("\r", "").replace("\x1b[K", "").strip():
            member.says = text
            if not self.shown:
                print(text, file=sys.stderr, flush=True)
        self._show(
            f"{len(self.done)} of {len(self.chapters)} done; "
            + "; ".join(m.says for m in self.running.values())
        )

    def _show(self, text: str) -> None:
        """One line, written over; nothing where nobody looks."""
        if self.shown:
            sys.stderr.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
            sys.stderr.flush()

    def _dismiss(self) -> None:
        """End every process; those that are in the midst of a chapter stop its kernel and tidy up."""
        members = [*self.running.values(), *self.idle]
        for member in members:
            member.process.terminate()
        for member in members:
            member.process.join(timeout=10)
            member.process.kill()
            member.process.join()


class _Member:
    """One process, its chapter and the last that it said."""

    def __init__(self, job: Job, shown: bool, share: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.line, other = context.Pipe()
        self.process = context.Process(target=_work, args=(other, job, shown, share))
        self.process.start()
        other.close()
        self.chapter: Chapter
        self.says = ""


def _work(line: connection.Connection, job: Job, shown: bool, share: int) -> None:
    """In the process: run the chapters that come along the line, until it is ended."""
    os.environ["BNBOOK_CORES"] = str(share)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.stderr = _Words(line, shown)
    try:
        while True:
            chapter = line.recv()
            try:
                answer = job.run(chapter)
            except BnbookError as error:
                answer = error
            except Exception:
                answer = Outcome(False, [(True, f"FAILED {chapter.name}\n{traceback.format_exc()}")])
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
