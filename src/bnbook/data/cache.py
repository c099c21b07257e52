"""Decoded sets, kept between runs: one file a set, whole or absent, checked by SHA-256 whenever it is read."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import time
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bnbook import atomic
from bnbook.data.identity import Arrays, DataIdentity
from bnbook.errors import BnbookError

SCHEMA = 1
ABANDONED = 3600.0  # seconds after which the temporary file of a killed process is swept away


def cache_folder() -> Path:
    """BNBOOK_CACHE, else the folder that the platform has for a user's caches."""
    named = os.environ.get("BNBOOK_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bnbook"


def disk_error(error: OSError, path: Path) -> BnbookError:
    """The one line for a disk that does not take a file, a full one above all."""
    return BnbookError(
        f"cannot write {path}: {error.strerror or error}; expected a writable folder with about 0.5 GB free; "
        "free some space, or set BNBOOK_CACHE to another folder"
    )


def store(name: str, fingerprint: str, identity: DataIdentity, statistics: dict[str, Any], arrays: Arrays) -> Path:
    """Keep a decoded set; nothing is left behind where it fails (BnbookError)."""
    path = _path(name)
    manifest = {
        "schema": SCHEMA,
        "fingerprint": _short(fingerprint),
        "identity": asdict(identity),
        "statistics": statistics,
        "content": _content(arrays),
    }
    buffer = io.BytesIO()
    np.savez(buffer, manifest=np.frombuffer(json.dumps(manifest).encode(), np.uint8), **arrays._asdict())
    try:
        _sweep(path)
        atomic.write_bytes(path, buffer.getbuffer())
    except OSError as error:
        raise disk_error(error, path) from None
    return path


def fetch(name: str, fingerprint: str) -> tuple[DataIdentity, dict[str, Any], Arrays] | None:
    """The decoded set, or None where there is none, it came from other files, or it is not whole."""
    try:
        with np.load(_path(name), allow_pickle=False) as file:
            manifest = json.loads(file["manifest"].tobytes())
            if manifest["schema"] != SCHEMA or manifest["fingerprint"] != _short(fingerprint):
                return None
            arrays = Arrays(*(file[field] for field in Arrays._fields))
        identity = DataIdentity(**{**manifest["identity"], "shape": tuple(manifest["identity"]["shape"])})
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return None
    if _content(arrays) != manifest["content"]:
        return None
    return identity, manifest["statistics"], arrays


def _path(name: str) -> Path:
    return cache_folder() / "decoded" / f"{name}.npz"


def _short(fingerprint: str) -> str:
    return hashlib.sha256(fingerprint.encode("utf-8", "surrogateescape")).hexdigest()


def _content(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


def _sweep(path: Path) -> None:
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        if time.time() - leftover.stat().st_mtime > ABANDONED:
            leftover.unlink(missing_ok=True)
