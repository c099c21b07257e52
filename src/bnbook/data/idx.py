"""MNIST's own format: four IDX files, plain or gzipped, as torchvision lays them out."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bnbook.data.identity import Arrays
from bnbook.errors import BnbookError

STEMS = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
REMEDY = "copy or download it again"


def path_of(folder: Path, stem: str) -> Path | None:
    """The file `stem` or `stem.gz`; the plain one first, as torchvision does."""
    for path in (folder / stem, folder / f"{stem}.gz"):
        if path.is_file():
            return path
    return None


@dataclass(frozen=True)
class IdxFiles:
    """Four IDX files in one folder; `md5` holds the sum that the content of each must have."""

    folder: Path
    md5: dict[str, str]

    @property
    def where(self) -> str:
        return str(self.folder)

    def paths(self) -> list[Path]:
        found = []
        for stem in STEMS:
            path = path_of(self.folder, stem)
            if path is None:
                raise BnbookError(
                    f"{self.folder} has no {stem} (nor {stem}.gz); expected all four IDX files; {REMEDY}"
                )
            found.append(path)
        return found

    def fingerprint(self) -> str:
        stats = [(path.name, path.stat()) for path in self.paths()]
        return "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats)

    def read(self) -> Arrays:
        train_images, train_labels, test_images, test_labels = (
            read_idx(path, self.md5.get(stem)) for stem, path in zip(STEMS, self.paths())
        )
        return Arrays(
            train_images[:, None],
            train_labels.astype(np.int64),
            test_images[:, None],
            test_labels.astype(np.int64),
        )


def read_idx(path: Path, md5: str | None = None) -> np.ndarray:
    """The uint8 array in one IDX file: bytes 0, 0, 8, number of axes; each size in four bytes; the values."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BnbookError(
            f"{path} is truncated or altered ({error}); expected a whole gzip file; {REMEDY}"
        ) from None
    axes = content[3] if len(content) > 3 else 0
    start = 4 + 4 * axes
    if content[:3] != b"\x00\x00\x08" or axes not in (1, 3) or len(content) < start:
        raise BnbookError(f"{path} is truncated or altered; expected an IDX file of bytes; {REMEDY}")
    shape = [int(size) for size in np.frombuffer(content, ">u4", axes, 4)]
    expected = start + int(np.prod(shape, dtype=object))
    if len(content) != expected:
        raise BnbookError(f"{path} holds {len(content)} bytes; its header promises {expected}; {REMEDY}")
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 is not None and found != md5:
        raise BnbookError(f"{path} is altered: its content has the MD5 sum {found}; expected {md5}; {REMEDY}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
