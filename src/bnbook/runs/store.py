"""The results store: every finished training once, one file each, named by all that its numbers rest on."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bnbook import atomic, paths
from bnbook.errors import BnbookError
from bnbook.pipeline.fingerprint import digest, package_fingerprint
from bnbook.training.arm import Arm

#: The code that makes the numbers of each kind of arm; every definition that it rests on counts too.
CODE = {"Arm": "bnbook.training.engine:train", "ProbedArm": "bnbook.training.probed:train_probed"}
_META = "meta"


def key(arm: Arm, seed: int, data_sha256: str, device: str, threads: int) -> str:
    """SHA-256 of arm, seed, data, code, torch version, device type and thread count.

    The data set counts by its content: the arm's name for it ("cifar10-auto") does not.
    """
    settings = {name: value for name, value in arm.settings().items() if name != "data"}
    return digest(
        {
            "arm": settings,
            "seed": seed,
            "data": data_sha256,
            "code": code_fingerprint(type(arm).__name__),
            "torch": torch.__version__,
            "device": device,
            "threads": threads,
        }
    )


@cache
def code_fingerprint(kind: str = "Arm") -> str:
    """Of the code that trains this kind of arm; once a process, as the code that runs is the code
    imported."""
    return package_fingerprint([CODE[kind]])


def read(name: str) -> dict[str, np.ndarray] | None:
    """The arrays stored under a key; None where there is no file or the file is not whole (it is then
    removed)."""
    path = _path(name)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {entry: file[entry] for entry in file.files}
        meta = json.loads(str(arrays.pop(_META)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        path.unlink(missing_ok=True)  # cut short or altered: zip's checksums tell; it is computed again
        return None
    return arrays | {"seconds": np.float64(meta["seconds"])}


def write(name: str, arrays: dict[str, np.ndarray], *, seconds: float, about: dict[str, Any]) -> None:
    """Store a finished training in one step, its time booked to the chapter that runs (BNBOOK_CHAPTER)."""
    meta = about | {
        "seconds": seconds,
        "chapter": os.environ.get("BNBOOK_CHAPTER", ""),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays, **{_META: np.array(json.dumps(meta, sort_keys=True))})
    try:
        atomic.write_bytes(_path(name), buffer.getvalue())
    except OSError as error:
        raise BnbookError(
            f"cannot write to the results store ({error.strerror}); expected room for "
            f"{buffer.tell() >> 10} KiB; "
            "free disk space or set BNBOOK_STORE to another folder"
        ) from None


def _path(name: str) -> Path:
    return paths.store_folder() / f"{name}.npz"
