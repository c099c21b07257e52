"""How many cores there are for this process."""

from __future__ import annotations

import os

from bookpress.errors import PressError


def cores() -> int:
    """The cores that this process may use; BNBOOK_CORES says fewer, as for chapters that run side by side."""
    share = os.environ.get("BNBOOK_CORES", "")
    if share and not (share.isdecimal() and int(share)):
        raise PressError(f"BNBOOK_CORES={share}; expected a number of cores, at least 1")
    if share:
        return int(share)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
