"""Who hears of a data set that is loaded: the results file, if there is one."""

from __future__ import annotations

from collections.abc import Callable

from bnbook.data.identity import DataIdentity

LISTENERS: list[Callable[[DataIdentity], None]] = []


def record_data(identity: DataIdentity) -> None:
    """Tell all listeners that results from here on rest on this set."""
    for hear in LISTENERS:
        hear(identity)
