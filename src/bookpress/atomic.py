"""Files that are either whole or absent; and what takes long to compute, kept for the next command by what it was
computed from.

By hand: the standard library has the two steps (a temporary file beside the target, `os.replace`), no more.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bookpress import paths


def write_bytes(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step, so that a kill leaves the old file or the new one, never half
    of it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Strict JSON (no NaN), keys in the order given, one trailing newline."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


@contextmanager
def alone(lock: Path, taken: Exception) -> Iterator[None]:
    """No other process is in here with the same file; `taken` is raised where one is (the system ends the lock of a
    dead one)."""
    from filelock import FileLock, Timeout

    lock.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock, timeout=0):
            yield
    except Timeout:
        raise taken from None


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
        write_text(path, json.dumps({"label": label, "key": known, "value": value}))
    return value
