"""One line on how far the training is: to the terminal, never into a page."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bookpress.book import command_name


class Progress:
    """Counts runs and steps and says now and then: done, speed, time left.

    Under `run` (BNBOOK_PROGRESS names a file that it follows) each line is appended there; on a
    terminal and in a notebook opened by hand it overwrites itself; elsewhere nothing is said.
    """

    def __init__(self, steps: Sequence[int], interval: float = 0.5) -> None:
        self.due, self.interval = list(steps), interval  # steps of each run
        self.at: dict[int, int] = {}  # where each run that began stands
        self.done = self.made = 0  # runs; steps made since the first run began
        self._start = self._said = 0.0
        self._handle = None

    def tell(self, run: int, step: int, begins: bool = False) -> bool:
        """A run has come to this step, or begins there: not at 0 where it goes on from a checkpoint or begins
        once more. Always true: whoever sees the progress waits for the result."""
        news = begins or not self.made
        self._start = self._start or time.monotonic()
        self.made += 0 if begins else step - self.at.get(run, 0)
        self.at[run] = step
        if news or time.monotonic() - self._said >= self.interval:
            self._say(self.line())
        return True

    def finish(self, run: int) -> None:
        """One run less to do; a diverged one stops early, and its missing steps are no longer due."""
        self.done += 1
        self.due[run] = self.at[run] = min(self.at.get(run, 0), self.due[run])
        self._say(self.line())

    def starting(self, what: str) -> None:
        self._say(what)

    def line(self, elapsed: float | None = None) -> str:
        runs = f"run {self.done} of {len(self.due)} done"
        elapsed = time.monotonic() - self._start if elapsed is None else elapsed
        if not (self.made and elapsed > 0):
            return f"{runs}, the first steps are under way"
        speed = self.made / elapsed
        left = duration(max(0.0, sum(self.due) - sum(self.at.values())) / speed)
        return f"{runs}, {speed:.{0 if speed >= 9.95 else 1 if speed >= 0.995 else 3}f} steps/s, {left} left"

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        elif not os.environ.get("BNBOOK_PROGRESS") and _is_terminal():
            sys.__stderr__.write("\r\x1b[K")
            sys.__stderr__.flush()

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        if _in_a_run(text):
            return
        if "ipykernel" in sys.modules:
            self._show(text)
        elif _is_terminal():
            sys.__stderr__.write(f"\r\x1b[K{text}")
            sys.__stderr__.flush()

    def _show(self, text: str) -> None:
        from IPython.display import display

        if self._handle is None:
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)


def note(text: str) -> None:
    """A line of its own, where lines go."""
    if not _in_a_run(text) and sys.__stderr__ is not None:
        print(f"{command_name()}: {text}", file=sys.__stderr__)


def duration(seconds: float) -> str:
    """Seconds in words: "40 s", "3 min", "2 h 5 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _in_a_run(text: str) -> bool:
    """Whether the pipeline runs this chapter; the line then goes to the file that it follows, if it does: on
    standard error it would end up in the executed notebook."""
    followed = os.environ.get("BNBOOK_PROGRESS")
    if followed:
        with suppress(OSError), Path(followed).open("a", encoding="utf-8") as file:  # a full disk above all
            file.write(text + "\n")
    return bool(followed or os.environ.get("BNBOOK_RESULTS"))


def _is_terminal() -> bool:
    return sys.__stderr__ is not None and sys.__stderr__.isatty()
