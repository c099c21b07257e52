"""Where a data set is looked for: the folder BNBOOK_DATA and nothing else, or a checked download."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bnbook.data import batch_files, idx
from bnbook.data.folders import ClassFolders
from bnbook.data.identity import Arrays, known_sets
from bnbook.errors import BnbookError

#: A family name and the sets that may stand for it, best first.
FAMILIES = {"mnist-auto": ("mnist",), "cifar10-auto": ("cifar10", "cifar10-jpeg75")}
LAYOUTS = {
    "mnist": "MNIST/raw with the four IDX files (plain or .gz), or mnist/{train,test}/DIGIT/*.png",
    "cifar10": "cifar-10-batches-py or cifar-10-python.tar.gz",
    "cifar10-jpeg75": "cifar10-jpeg75/{train,test}/CLASS/*.jpg",
}


class Source(Protocol):
    """Files that hold one set."""

    where: str

    def fingerprint(self) -> str:
        """What the decoded cache is keyed by: names, sizes and times of the files."""

    def read(self) -> Arrays:
        """Decode the set, in any order; BnbookError naming the file that is truncated or altered."""


@dataclass(frozen=True)
class Download:
    """The official files, fetched when they are first needed; their MD5 sums are torchvision's."""

    name: str
    where: str = "download"

    def fingerprint(self) -> str:
        return f"download of {self.name}"

    def read(self) -> Arrays:
        from bnbook.data.download import (
            download_cifar10,
            download_mnist,
        )  # the network modules are slow to import

        if self.name == "mnist":
            return idx.IdxFiles(download_mnist(), known_sets()["mnist"]["md5"]).read()
        return batch_files.BatchFiles(download_cifar10()).read()


def data_folder() -> Path | None:
    """The folder that BNBOOK_DATA names, if it is set."""
    named = os.environ.get("BNBOOK_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise BnbookError(
            f"BNBOOK_DATA is {named}, which is no folder; expected one that holds the data sets; "
            "correct it, or unset it to download them"
        )
    return folder


def find(name: str) -> tuple[str, Source]:
    """The set that `name` stands for and its source; BnbookError where it is not. Never a stand-in."""
    folder = data_folder()
    candidates = FAMILIES.get(name, (name,))
    if folder is None:
        if candidates[0] == "cifar10-jpeg75":
            raise BnbookError(
                "cifar10-jpeg75 cannot be downloaded and BNBOOK_DATA is not set; "
                f"expected a folder with {LAYOUTS['cifar10-jpeg75']}; set BNBOOK_DATA to it, "
                "or use data=cifar10"
            )
        return candidates[0], Download(candidates[0])
    for candidate in candidates:
        source = find_in(folder, candidate)
        if source is not None:
            return candidate, source
    expected = ", or ".join(LAYOUTS[candidate] for candidate in candidates)
    if name == "cifar10" and find_in(folder, "cifar10-jpeg75") is not None:
        raise BnbookError(
            f"only cifar10-jpeg75 is in BNBOOK_DATA ({folder}), which is not bit for bit cifar10; "
            f"expected {expected}; add it, or use data=cifar10-jpeg75 or data=cifar10-auto, "
            "or unset BNBOOK_DATA to download cifar10"
        )
    away = "" if name == "cifar10-jpeg75" else ", or unset BNBOOK_DATA to download it"
    raise BnbookError(f"{name} is not in BNBOOK_DATA ({folder}); expected {expected}; put it there{away}")


def find_in(folder: Path, name: str) -> Source | None:
    """The source of the set `name` under `folder`, if there is one (whole or not: reading it tells)."""
    known = known_sets()[name]
    if (
        name == "cifar10"
    ):  # its own hash is not known, so only files that torchvision's MD5 sums cover will do
        for candidate in (folder / batch_files.FOLDER, folder / batch_files.ARCHIVE):
            if candidate.exists():
                return batch_files.BatchFiles(candidate)
        return None
    if name == "mnist":
        raw = folder / "MNIST" / "raw"
        if any(idx.path_of(raw, stem) for stem in idx.STEMS):
            return idx.IdxFiles(raw, known["md5"])
    root = folder / name
    if (root / "train").is_dir() or (root / "test").is_dir():
        return ClassFolders(root, tuple(known["classes"]), tuple(known["shape"]))
    return None
