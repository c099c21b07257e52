"""Watches a running chapter from outside: its memory, and its progress lines, which go to the terminal
only."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import psutil


class Monitor:
    """Context manager that samples the memory of all child processes and prints what they append to a
    file."""

    def __init__(self, label: str, progress: Path, interval: float = 0.5) -> None:
        self.label, self.progress, self.interval = label, progress, interval
        self.peak_mib = 0
        self._printed = self._ticks = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Monitor:
        self.progress.touch()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._printed and sys.stderr.isatty():
            sys.stderr.write("\n")

    def _watch(self) -> None:
        while not self._stop.wait(self.interval):
            self.peak_mib = max(self.peak_mib, _children_mib())
            self._show()

    def _show(self) -> None:
        """The newest line: in place on a terminal, otherwise one line each half minute."""
        try:
            lines = self.progress.read_text(encoding="utf-8").splitlines()
        except OSError:
            return
        if len(lines) <= self._printed:
            return
        self._printed = len(lines)
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{self.label}: {lines[-1]}")
            sys.stderr.flush()
        elif self._due():
            print(f"{self.label}: {lines[-1]}", file=sys.stderr, flush=True)

    def _due(self, every: int = 60) -> bool:
        self._ticks += 1
        return self._ticks % every == 1


def _children_mib() -> int:
    """Memory of this process's descendants, in MiB; what they share counts once, where the system tells."""
    total = 0
    for child in psutil.Process().children(recursive=True):
        try:
            linux = sys.platform == "linux"  # elsewhere it takes rights that a user may lack
            total += child.memory_full_info().pss if linux else child.memory_info().rss
        except psutil.Error:
            continue
    return total // 2**20
