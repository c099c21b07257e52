"""One line on how far the training is: to the terminal, never into a page."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path


class Progress:
    """Counts runs and steps and says now and then: done, speed, time left.

    Under `bnbook run` (BNBOOK_PROGRESS names a file that it follows) each line is appended there; on a
    terminal and in a notebook opened by hand it overwrites itself; elsewhere nothing is said.
    """

    def __init__(self, runs: int, steps: int, interval: float = 0.5) -> None:
        self.runs, self.steps, self.interval = runs, steps, interval
        self.done_runs = self.done_steps = 0
        self._start = self._last = time.monotonic()
        self._handle = None

    def advance(self, steps: int) -> None:
        self.done_steps += steps
        if time.monotonic() - self._last >= self.interval:
            self._say()

    def finish_run(self, missing_steps: int = 0) -> None:
        """One run less to do; a diverged one stops early, and its missing steps are no longer due."""
        self.done_runs += 1
        self.steps -= missing_steps
        self._say()

    def line(self, elapsed: float) -> str:
        speed = self.done_steps / elapsed if elapsed > 0 else 0.0
        left = duration((self.steps - self.done_steps) / speed) if speed else "unknown"
        return f"run {self.done_runs} of {self.runs} done, {speed:.0f} steps/s, {left} left"

    def close(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        elif not os.environ.get("BNBOOK_PROGRESS") and _is_terminal():
            sys.__stderr__.write("\r\x1b[K")
            sys.__stderr__.flush()

    def _say(self) -> None:
        self._last = time.monotonic()
        text = self.line(self._last - self._start)
        followed = os.environ.get("BNBOOK_PROGRESS")
        if followed:
            with Path(followed).open("a", encoding="utf-8") as file:
                file.write(text + "\n")
        elif os.environ.get("BNBOOK_RESULTS"):
            return  # a run that nobody follows: a line here would end up in the executed notebook
        elif "ipykernel" in sys.modules:
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


def duration(seconds: float) -> str:
    """Seconds in words: "40 s", "3 min", "2 h 5 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _is_terminal() -> bool:
    return sys.__stderr__ is not None and sys.__stderr__.isatty()
