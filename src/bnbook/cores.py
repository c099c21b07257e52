"""How many cores there are for this process."""

from __future__ import annotations

import os


def cores() -> int:
    """The cores that this process may use; BNBOOK_CORES says fewer, as for chapters that run side by side."""
    share = os.environ.get("BNBOOK_CORES", "")
    if share.isdecimal() and int(share):
        return int(share)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
