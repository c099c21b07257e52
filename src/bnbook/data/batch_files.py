"""The exact CIFAR-10: torchvision's `cifar-10-batches-py`, unpacked or still in its archive."""

from __future__ import annotations

import hashlib
import pickle
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bnbook.data.identity import Arrays
from bnbook.errors import BnbookError

FOLDER = "cifar-10-batches-py"
ARCHIVE = "cifar-10-python.tar.gz"
REMEDY = "copy or download it again"


@dataclass(frozen=True)
class BatchFiles:
    """The six pickled batches, in the folder or in the archive `path`."""

    path: Path

    @property
    def where(self) -> str:
        return str(self.path)

    def fingerprint(self) -> str:
        files = sorted(self.path.iterdir()) if self.path.is_dir() else [self.path]
        stats = [(file.name, file.stat()) for file in files]
        return "\n".join(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats)

    def read(self) -> Arrays:
        from torchvision.datasets import CIFAR10

        content = self._from_folder() if self.path.is_dir() else self._from_archive()
        splits = []
        for listed in (CIFAR10.train_list, CIFAR10.test_list):
            batches = [self._unpack(content, name, md5) for name, md5 in listed]
            splits.append(np.concatenate([images for images, _ in batches]))
            splits.append(np.concatenate([labels for _, labels in batches]))
        return Arrays(*splits)

    def _from_folder(self) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in self.path.iterdir() if file.is_file()}

    def _from_archive(self) -> dict[str, bytes]:
        try:
            with tarfile.open(self.path, "r:gz") as archive:
                return {
                    Path(member.name).name: archive.extractfile(member).read()
                    for member in archive
                    if member.isfile()
                }
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise BnbookError(
                f"{self.path} is truncated or altered ({error}); expected {ARCHIVE}; {REMEDY}"
            ) from None

    def _unpack(self, content: dict[str, bytes], name: str, md5: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in content:
            raise BnbookError(f"{self.path} has no {name}; expected the six batches of CIFAR-10; {REMEDY}")
        found = hashlib.md5(content[name], usedforsecurity=False).hexdigest()
        if found != md5:  # checked before unpickling: an unknown pickle may run any code
            raise BnbookError(
                f"{self.path / name} is truncated or altered: {len(content[name])} bytes with the MD5 sum "
                f"{found}; expected {md5}; {REMEDY}"
            )
        batch = pickle.loads(content[name], encoding="latin1")
        return batch["data"].reshape(-1, 3, 32, 32), np.array(batch["labels"], dtype=np.int64)
