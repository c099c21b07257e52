"""Decoded sets, kept between runs: one file a set, whole or absent, its SHA-256 checked at every read."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bnbook.data.identity import SPLITS, Arrays, DataIdentity
from bnbook.errors import BnbookError
from bookpress import atomic

SCHEMA = 1
LINE = 100_000  # no line of the file is longer; keeps us from reading a foreign file whole
ABANDONED = 3600.0  # seconds after which the temporary file of a killed process is swept away


def cache_folder() -> Path:
    """Decoded and downloaded sets, kept for all books of this user; BNBOOK_CACHE names another place."""
    import platformdirs

    named = os.environ.get("BNBOOK_CACHE")
    return Path(named).expanduser() if named else platformdirs.user_cache_path("bnbook", False, opinion=False)


def disk_error(error: OSError, path: Path) -> BnbookError:
    """The one line for a disk that does not take a file, a full one above all."""
    return BnbookError(
        f"cannot write {path}: {error.strerror or error}; expected a writable folder with about 0.5 GB free; "
        "free some space, or set BNBOOK_CACHE to another folder"
    )


def store(
    name: str, fingerprint: str, identity: DataIdentity, statistics: dict[str, Any], arrays: Arrays
) -> Path:
    """Keep a decoded set; nothing is left behind where it fails (BnbookError).

    The file: a line with the SHA-256 of all that follows; a line of JSON; both splits' images and labels.
    """
    path = path_of(name)
    manifest = {"schema": SCHEMA, "fingerprint": _short(fingerprint), "identity": asdict(identity)}
    parts = [json.dumps({**manifest, "statistics": statistics}).encode() + b"\n"]
    for split in SPLITS:
        images, labels = arrays.split(split)
        parts += [np.ascontiguousarray(images), labels.astype(np.uint8)]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    try:
        _sweep(path)
        atomic.write_bytes(path, b"".join([digest.hexdigest().encode() + b"\n", *parts]))
    except OSError as error:
        raise disk_error(error, path) from None
    return path


def fetch(name: str, fingerprint: str) -> tuple[DataIdentity, dict[str, Any], Arrays] | None:
    """The decoded set, or None where there is none, it came from other files, or it is not whole."""
    try:
        with open(path_of(name), "rb") as file:
            promised, line = file.readline(LINE).strip(), file.readline(LINE)
            manifest = json.loads(line)
            if manifest["schema"] != SCHEMA or manifest["fingerprint"] != _short(fingerprint):
                return None
            content = np.fromfile(file, np.uint8)
        identity = DataIdentity(**{**manifest["identity"], "shape": tuple(manifest["identity"]["shape"])})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    digest = hashlib.sha256(line)
    digest.update(content)
    if digest.hexdigest().encode() != promised:
        return None
    counts = (identity.train, identity.test)
    sizes = [count * size for count in counts for size in (math.prod(identity.shape), 1)]
    train_images, train_labels, test_images, test_labels = np.split(content, np.cumsum(sizes)[:-1])
    arrays = Arrays(
        train_images.reshape(-1, *identity.shape),
        train_labels.astype(np.int64),
        test_images.reshape(-1, *identity.shape),
        test_labels.astype(np.int64),
    )
    return identity, manifest["statistics"], arrays


def path_of(name: str) -> Path:
    return cache_folder() / "decoded" / f"{name}.bin"


def _short(fingerprint: str) -> str:
    return hashlib.sha256(fingerprint.encode("utf-8", "surrogateescape")).hexdigest()


def _sweep(path: Path) -> None:
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        if time.time() - leftover.stat().st_mtime > ABANDONED:
            leftover.unlink(missing_ok=True)
