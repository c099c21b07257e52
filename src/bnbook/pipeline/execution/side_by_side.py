"""Chapters one after the other, or several at once in processes of their own; outcomes in the order given.

By hand: a chapter starts processes itself, a kernel and a cluster, and all of them have to be gone when it is
ended; the workers of a pool may not have children.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import connection

import psutil

from bnbook.cores import cores
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import evidence
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.execution.chapter_process import ChapterOutcome, ChapterProcess, Job

#: MiB that a chapter is expected to take which has not run here yet, by profile.
EXPECTED = {"smoke": 1500}
EXPECTED_ELSEWHERE = 4000
#: From so many chapters a process on their kernels are forked: it costs as much as two of them save.
FORKS_FROM = 3


def run(chapters: Sequence[Chapter], job: Job, jobs: int | None = None) -> Iterator[ChapterOutcome]:
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
        self.running: dict[connection.Connection, ChapterProcess] = {}
        self.idle: list[ChapterProcess] = []
        self.done: dict[str, ChapterOutcome] = {}
        self.shown = sys.stderr.isatty()

    def outcomes(self) -> Iterator[ChapterOutcome]:
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
        share, forking = max(1, cores() // self.jobs), len(self.chapters) >= FORKS_FROM * self.jobs
        member = self.idle.pop() if self.idle else ChapterProcess(self.job, self.shown, share, forking)
        member.chapter, member.says = chapter, chapter.name
        member.line.send(chapter)
        self.running[member.line] = member

    def _hear(self, member: ChapterProcess) -> None:
        try:
            message = member.line.recv()
        except EOFError:  # killed, most likely for want of memory: the chapter failed, the others go on
            member.process.join()
            words = f"its process ended with code {member.process.exitcode}; perhaps memory ran out"
            message = ChapterOutcome(False, [(True, f"FAILED {member.chapter.name}: {words}")])
        if isinstance(message, BnbookError):
            raise message
        if isinstance(message, ChapterOutcome):
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
