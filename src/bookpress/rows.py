"""Recorded results as a table: one row a number."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bookpress.errors import BnbookError

if TYPE_CHECKING:
    from bookpress.results import Results

COLUMNS = ("name", "seed", "place", "value", "unit")


def rows(results: Results) -> Iterator[dict[str, Any]]:
    """name, seed, place (the index behind the seed's, as "2,5"), value, unit."""
    for name, entry in results.entries.items():
        for (seed, *place), value in np.ndenumerate(results[name]):
            where = ",".join(map(str, place))
            yield dict(zip(COLUMNS, (name, entry["seeds"][seed], where, value, entry["unit"]), strict=True))


def as_csv(results: Results) -> str:
    """The rows, a line each."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(results))
    return buffer.getvalue()


def frame(results: Results) -> Any:
    """The rows as a pandas frame; BnbookError where pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise BnbookError("pandas is not installed; install it, or use `bookpress.rows.as_csv`") from None
    return pandas.DataFrame(rows(results), columns=list(COLUMNS))
