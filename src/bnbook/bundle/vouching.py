"""What the sources of a bundle are, where there is no git to say it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from bnbook import atomic

NOTE = "bundled-source.json"
#: What a run's commit vouches for.
VOUCHED = ("src", "book", "requirements.lock")


def write(root: Path, commit: str) -> None:
    atomic.write_json(root / NOTE, {"commit": commit, "files": _files(root)})


def read(root: Path) -> dict[str, Any] | None:
    """The bundled commit, and whether a file differs since; None where `root` did not come in a bundle."""
    path = root / NOTE
    if not path.is_file():
        return None
    note = json.loads(path.read_text("utf-8"))
    return {"commit": note["commit"], "dirty": _files(root) != note["files"]}


def _files(root: Path) -> dict[str, str]:
    """SHA-256 of each file that measures or says what is measured, by its path."""
    found = [path for part in VOUCHED for path in [root / part, *sorted((root / part).rglob("*"))]]
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if path.is_file() and "__pycache__" not in path.parts
    }
