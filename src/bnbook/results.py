"""What a chapter records, for its cells and readers' code: the press's (`bookpress.results`)."""

from bnbook import book  # noqa: F401 (the press is told of this book)
from bnbook.data import LISTENERS
from bookpress.results import (
    Results,
    current,
    load,
    number_seeds_from,
    record,
    record_data,
    record_device,
    record_table,
)

__all__ = ["Results", "current", "load", "number_seeds_from", "record", "record_device", "record_table"]

LISTENERS.append(record_data)  # a set that is loaded is one that the results rest on
