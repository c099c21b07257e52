"""The results store: every finished training once, one file each, named by all that its numbers rest on.

By hand: caches of functions (joblib, diskcache) know arguments, not the code and data that numbers rest on,
and they unpickle.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bookpress import atomic, paths
from bookpress.errors import PressError, reason
from bookpress.runs.progress import note
from bookpress.stamp import digest

Arrays = dict[str, np.ndarray]
_META = "meta"
#: What the file says of a training besides that on which its numbers rest.
NOT_IDENTITY = ("seconds", "chapter", "finished", "arrays")


def key(identity: dict[str, Any]) -> str:
    """SHA-256 of arm, seed, data, code, torch's version, device type and thread count."""
    return digest(nameless(identity))


def nameless(identity: dict[str, Any]) -> dict[str, Any]:
    """Without the arm's name for its data set."""
    arms = ((part, arm) for part, arm in identity.items() if isinstance(arm, dict))
    return identity | {part: {name: arm[name] for name in arm if name != "data"} for part, arm in arms}


def is_written() -> bool:
    """Whether this process may add to the store: only one that the press started for a chapter. A session of its
    user's may have patched what a training rests on, and no key would name that."""
    return bool(os.environ.get("BNBOOK_CHAPTER"))


def read(name: str, about: dict[str, Any]) -> Arrays | None:
    """The arrays stored under a key; None where there are none, or where arm or seed are not those of
    `about`.

    A file that is cut short, altered or another training's is removed, so that it is trained again; one that
    cannot be read now (too many open files, no permission) is a PressError and stays. What is not in the
    store may be among the committed trainings.
    """
    for path in (path_of(name), committed(name)):
        if path is None or (content := read_bytes(path)) is None:
            continue
        if (found := _unpack(content)) is None:
            _discard(path, "is damaged")
            continue
        arrays, meta = found
        holds, wanted = nameless(meta), nameless(json.loads(json.dumps(about)))
        if any(holds.get(part) != value for part, value in wanted.items()):
            _discard(path, "holds another training than its name says")
            continue
        return arrays | {"seconds": np.float64(meta["seconds"])}
    return None


def kept(name: str) -> tuple[Arrays, dict[str, Any]] | None:
    """The arrays of a training that a run names, and what the file says of it; None where neither the store
    nor the book has it whole and under its own name."""
    for path in (committed(name), path_of(name)):
        if path is not None and (content := read_bytes(path)) is not None and not problem(name, content):
            return _unpack(content)
    return None


def every() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name of each finished training, in the store and in the book, and what its file says of it; the arrays
    are not read."""
    folders = {place.parent for place in (path_of(""), committed("")) if place}
    for path in (path for folder in folders for path in sorted(folder.glob("*.npz"))):
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(str(file[_META]))
            int(about["seed"])
        except Exception:  # as in `_unpack`: what is damaged is trained again
            continue
        yield path.stem, about


def problem(name: str, content: bytes) -> str:
    """Why a file is not the training that its name promises; empty where it is."""
    if (found := _unpack(content)) is None:
        return "no whole training"
    rests_on = {part: value for part, value in found[1].items() if part not in NOT_IDENTITY}
    return "" if key(rests_on) == name else "not what its name says"


def write(name: str, arrays: Arrays, *, seconds: float, about: dict[str, Any]) -> None:
    """Store a finished training in one step, its time booked to the chapter that runs (BNBOOK_CHAPTER)."""
    meta = about | {
        "seconds": seconds,
        "chapter": os.environ.get("BNBOOK_CHAPTER", ""),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "arrays": sorted(arrays),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays, **{_META: np.array(json.dumps(meta, sort_keys=True))})
    write_bytes(path_of(name), buffer.getvalue())


def write_bytes(path: Path, content: bytes) -> None:
    """Whole or not at all; PressError where the disk does not take it."""
    try:
        atomic.write_bytes(path, content)
    except OSError as error:
        raise PressError(
            f"cannot write to the results store ({reason(error)}); expected room for "
            f"{(len(content) >> 10) + 1} KiB in {path.parent}; "
            "free disk space or set BNBOOK_STORE to another folder"
        ) from None


def path_of(name: str, suffix: str = ".npz") -> Path:
    return paths.store_folder() / f"{name}{suffix}"


def committed(name: str) -> Path | None:
    """Where the training lies if it was published; None where there is no book."""
    try:
        return paths.trainings_folder() / f"{name}.npz"
    except PressError:
        return None


def read_bytes(path: Path) -> bytes | None:
    """The file's content, None where it is not there."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PressError(
            f"cannot read {path.name} in the results store ({reason(error)}); expected a readable file; "
            "mend that and run again"
        ) from None


def _unpack(content: bytes) -> tuple[Arrays, dict[str, Any]] | None:
    """Arrays and what the file says of them; None where it is damaged."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:  # whose checksums tell
            arrays = {entry: file[entry] for entry in file.files}
        meta = json.loads(str(arrays.pop(_META)))
        float(meta["seconds"])
        whole = meta.get("arrays", sorted(arrays)) == sorted(arrays)  # older files do not name them
    except MemoryError:
        raise
    except Exception:  # zipfile, zlib and NumPy raise a dozen kinds of error at a flipped bit
        return None
    return (arrays, meta) if whole else None


def _discard(path: Path, why: str) -> None:
    if path.parent == paths.store_folder():  # what is committed is not ours to remove
        path.unlink(missing_ok=True)
    note(f"{path.name} in the results store {why}; it is trained again")
