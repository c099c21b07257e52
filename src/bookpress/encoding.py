"""Numbers as a results file has them: nested lists of JSON numbers, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bookpress.errors import BnbookError


def as_array(values: Any, name: str) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    elif isinstance(values, (list, tuple)):
        values = [v.detach().cpu().numpy() if hasattr(v, "detach") else v for v in values]
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BnbookError(f"result {name!r} is not an array of numbers with one row per seed") from None


def encode(array: np.ndarray, digits: int) -> Any:
    """Nested lists of JSON numbers; what JSON lacks becomes the strings "nan", "inf", "-inf"."""
    if array.ndim:
        return [encode(row, digits) for row in array]
    number = float(array)
    if not math.isfinite(number):
        return str(number)
    return int(number) if number.is_integer() and abs(number) < 2**53 else float(f"{number:.{digits}g}")


def decode(values: Any) -> np.ndarray:
    return np.asarray(
        values, dtype=np.float64
    )  # NumPy reads "nan", "inf" and "-inf" as the numbers they name
