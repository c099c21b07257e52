"""Decoded sets, kept between runs: one file a set, whole or absent, its hash computed again at every read (half a second)."""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import zipfile
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bnbook.data.identity import Arrays, DataIdentity, describe, known_sets
from bnbook.errors import BnbookError
from bookpress import atomic

SCHEMA = 2
ABANDONED = 3600.0  # seconds after which the temporary file of a killed process is swept away


def cache_folder() -> Path:
    """Decoded and downloaded sets, kept for all books of this user; BNBOOK_CACHE names another place."""
    import platformdirs

    named = os.environ.get("BNBOOK_CACHE")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("bnbook", False, opinion=False)


def store(
    name: str, fingerprint: str, identity: DataIdentity, statistics: dict[str, Any], arrays: Arrays
) -> None:
    """Keep a decoded set; nothing is left behind where it fails (BnbookError)."""
    path, content = path_of(name), io.BytesIO()
    manifest = [SCHEMA, _short(fingerprint), asdict(identity), statistics]
    np.savez(content, manifest=json.dumps(manifest).encode(), **arrays._asdict())
    try:
        for leftover in path.parent.glob(f".{path.name}.*.part"):
            if time.time() - leftover.stat().st_mtime > ABANDONED:
                leftover.unlink(missing_ok=True)
        atomic.write_bytes(path, content.getbuffer())
    except OSError as error:
        raise BnbookError(
            f"cannot write {path}: {error.strerror or error}; expected a writable folder with about 0.5 GB free; "
            "free some space, or set BNBOOK_CACHE to another folder"
        ) from None


def fetch(name: str, fingerprint: str) -> tuple[DataIdentity, dict[str, Any], Arrays] | None:
    """The decoded set, or None where there is none, it came from other files, or it is not whole."""
    try:
        with np.load(path_of(name)) as kept:
            schema, source, identity, statistics = json.loads(kept["manifest"].item())
            if (schema, source) != (SCHEMA, _short(fingerprint)):
                return None
            arrays = Arrays(*(kept[part] for part in Arrays._fields))
        if describe(arrays, len(known_sets()[name]["classes"])).sha256 != identity["sha256"]:
            return None  # whole, and with other pixels
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None
    return DataIdentity(**identity | {"shape": tuple(identity["shape"])}), statistics, arrays


def path_of(name: str) -> Path:
    return cache_folder() / "decoded" / f"{name}.npz"


def _short(fingerprint: str) -> str:
    return hashlib.sha256(fingerprint.encode("utf-8", "surrogateescape")).hexdigest()
