"""How far a download is, said where a person can see it and never in a page."""

from __future__ import annotations

import os
import sys
import time


class ProgressLine:
    """One line that is rewritten in a terminal or a live notebook; a line for every tenth in a log.

    Under `bnbook run` a chapter's output becomes a page, so there nothing is shown (trap 7): the command can
    fetch the data before it starts the chapter (`bnbook.data.prepare`).
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.live = sys.stderr.isatty() or "ipykernel" in sys.modules
        self.silent = bool(os.environ.get("BNBOOK_RESULTS")) and not sys.stderr.isatty()
        self.started: tuple[float, int] | None = None
        self.shown_at = -1.0
        self.tenth = -1
        self.dirty = False

    def show(self, have: int, total: int | None) -> None:
        """`have` bytes of `total` are there; cheap enough to be called for every piece."""
        now = time.monotonic()
        if self.started is None:
            self.started = (now, have)
        if self.silent or (self.live and now - self.shown_at < 0.5):
            return
        tenth = 10 * have // total if total else 0
        if not self.live and tenth == self.tenth:
            return
        self.shown_at, self.tenth = now, tenth
        end = "" if self.live else "\n"
        start = "\r" if self.live else ""
        print(f"{start}{self.text(have, total, now):<78}", end=end, file=sys.stderr, flush=True)
        self.dirty = self.live

    def text(self, have: int, total: int | None, now: float) -> str:
        """For example `downloading cifar-10-python.tar.gz: 12.0 of 170.5 MB, 58 min left`."""
        size = f"{have / 1e6:.1f} MB" if total is None else f"{have / 1e6:.1f} of {total / 1e6:.1f} MB"
        begun, first = self.started
        if total is None or have <= first or now <= begun:
            return f"downloading {self.name}: {size}"
        left = (total - have) * (now - begun) / (have - first)
        spoken = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min"
        return f"downloading {self.name}: {size}, {spoken} left"

    def close(self) -> None:
        """End the line."""
        if self.dirty:
            print(file=sys.stderr, flush=True)
            self.dirty = False
