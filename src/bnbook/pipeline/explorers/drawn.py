"""Numbers on their way to a picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from bnbook.errors import BnbookError
from bnbook.results import Results

DIGITS = 5  # of what is only drawn


def rounded(values: Any) -> Any:
    """Nested lists of numbers with as many digits as a picture shows."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return [rounded(v) for v in values] if isinstance(values, list) else float(f"{values:.{DIGITS}g}")


def recorded(results: Results, name: str) -> np.ndarray:
    """A recorded result; BnbookError where the chapter has none of that name."""
    if name not in results:
        chapter = results.header.get("chapter", "a chapter")
        raise BnbookError(f"{chapter} recorded no {name}, from which its explorer draws; record it again")
    return results[name]
