"""What every command asks for and what takes long to compute, kept for the next one by what it was computed from."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from bookpress import atomic, paths


def kept(
    label: str, key: str, make: Callable[[], Any], fits: Callable[[Any], bool] = lambda value: True
) -> Any:
    """What `make` gives, in plain JSON types: from before where the key is the same and what was kept `fits`.

    One file a label and book, in the user's cache; what cannot be read or written there is made anew.
    """
    try:
        folder = paths.cache_folder() / "kept"
    except RuntimeError:  # an unknown user has no home and keeps nothing
        return make()
    path = folder / f"{hashlib.sha256(f'{paths.repository_root()} {label}'.encode()).hexdigest()[:32]}.json"
    known = hashlib.sha256(f"{sys.version} {key}".encode()).hexdigest()
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
        found = json.loads(path.read_bytes())
        if found["key"] == known and fits(found["value"]):
            return found["value"]
    value = make()
    with suppress(OSError, TypeError):  # such as a date in somebody's header, which JSON has not
        atomic.write_text(path, json.dumps({"label": label, "key": known, "value": value}))
    return value
