"""Where a data set is looked for, the folder BNBOOK_DATA and nothing else or a download, and how it is read:
by torchvision."""

from __future__ import annotations

import os
import socket
import tarfile
import tempfile
import urllib.error
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from filelock import FileLock

from bnbook.data.cache import cache_folder
from bnbook.data.identity import SPLITS, Arrays, known_sets
from bnbook.errors import BnbookError

#: A family name and the sets that may stand for it, best first.
FAMILIES = {"mnist-auto": ("mnist",), "cifar10-auto": ("cifar10", "cifar10-jpeg75")}
LAYOUTS = {
    "mnist": "MNIST/raw with the four IDX files (plain or .gz), or mnist/{train,test}/DIGIT/*.png",
    "cifar10": "cifar-10-batches-py or cifar-10-python.tar.gz",
    "cifar10-jpeg75": "cifar10-jpeg75/{train,test}/CLASS/*.jpg",
}
STEMS = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
SUFFIXES = (".png", ".jpg", ".jpeg")
SILENCE = 60.0  # seconds without a byte after which a download is given up
REMEDY = "copy or download it again"
BROKEN = (EOFError, ValueError, AssertionError, RuntimeError, zlib.error, tarfile.TarError, KeyError)


@dataclass(frozen=True)
class Source:
    """The files of one set: `read` decodes them, in any order; the decoded cache hangs on `files`."""

    where: str
    files: Callable[[], list[Path]]
    read: Callable[[], Arrays]

    def fingerprint(self) -> str:
        """Names, sizes and times of the files; of a download only what it is."""
        stats = [(path, path.stat()) for path in self.files()]
        lines = [f"{path.parent.name}/{path.name} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats]
        return "\n".join(lines) or self.where


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
        return candidates[0], Source("download", list, lambda: download(candidates[0]).read())
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


def find_in(folder: Path, name: str) -> Source | None:
    """The source of the set `name` under `folder`, if there is one (whole or not: reading it tells)."""
    if (
        name == "cifar10"
    ):  # its own hash is not known, so only files that torchvision's MD5 sums cover will do
        for path in (folder / "cifar-10-batches-py", folder / "cifar-10-python.tar.gz"):
            if path.exists():
                files = lambda: sorted(path.iterdir()) if path.is_dir() else [path]
                return Source(str(path), files, lambda: read_batches(path))
        return None
    raw, root = folder / "MNIST" / "raw", folder / name
    if name == "mnist" and any(path for stem in STEMS for path in raw.glob(f"{stem}*")):
        return Source(str(raw), lambda: idx_files(raw), lambda: read_idx(raw))
    if any((root / split).is_dir() for split in SPLITS):
        files = lambda: [Path(path) for split in SPLITS for path, _ in images_in(root, split)]
        return Source(str(root), files, lambda: read_folders(root))
    return None


def download(name: str) -> Source:
    """The official files in the cache, fetched by torchvision where they are missing and checked by its MD5
    sums; BnbookError where they cannot be had, or nothing arrives for SILENCE seconds."""
    from torchvision import datasets

    folder = cache_folder() / "downloads"
    kind = datasets.MNIST if name == "mnist" else datasets.CIFAR10
    before = socket.getdefaulttimeout()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{name}.lock"):  # two processes do not fetch one file at once
            socket.setdefaulttimeout(SILENCE)
            kind(str(folder), download=True)
    except (urllib.error.URLError, OSError, RuntimeError) as error:
        raise BnbookError(
            f"cannot download {name} ({' '.join(str(error).split())[:300] or type(error).__name__}); "
            f"expected {kind.__name__}'s files; run again, or set BNBOOK_DATA to a folder with the set"
        ) from None
    finally:
        socket.setdefaulttimeout(before)
    return find_in(folder, name)


# ---- MNIST's own format --------------------------------------------------------------------------


def idx_files(raw: Path) -> list[Path]:
    """The four IDX files, plain (as torchvision takes them) or gzipped."""
    found = []
    for stem in STEMS:
        path = next((path for path in (raw / stem, raw / f"{stem}.gz") if path.is_file()), None)
        if path is None:
            raise BnbookError(f"{raw} has no {stem} (nor {stem}.gz); expected all four IDX files; {REMEDY}")
        found.append(path)
    return found


def read_idx(raw: Path) -> Arrays:
    from torchvision.datasets import mnist, utils

    arrays = []
    with tempfile.TemporaryDirectory() as unpacked:
        for path, stem in zip(idx_files(raw), STEMS):
            read = mnist.read_image_file if "images" in stem else mnist.read_label_file
            with named_where_broken(path):
                plain = utils.extract_archive(path, unpacked) if path.suffix == ".gz" else path
                if not utils.check_md5(plain, known_sets()["mnist"]["md5"][stem]):
                    raise ValueError("another MD5 sum than MNIST's")
                arrays.append(read(plain).numpy())
    train_images, train_labels, test_images, test_labels = arrays
    return Arrays(train_images[:, None], train_labels, test_images[:, None], test_labels)


# ---- the exact CIFAR-10 --------------------------------------------------------------------------


def read_batches(path: Path) -> Arrays:
    """The six batches, in their folder or still in the archive."""
    from torchvision.datasets import CIFAR10, utils

    if not path.is_dir():
        with tempfile.TemporaryDirectory() as unpacked, named_where_broken(path):
            if not utils.check_md5(path, CIFAR10.tgz_md5):
                raise ValueError("another MD5 sum than CIFAR-10's")
            utils.extract_archive(path, unpacked)
            return read_batches(Path(unpacked) / CIFAR10.base_folder)
    for name, md5 in (*CIFAR10.train_list, *CIFAR10.test_list):  # before unpickling, which may run any code
        if not (path / name).is_file():
            raise BnbookError(f"{path} has no {name}; expected the six batches of CIFAR-10; {REMEDY}")
        with named_where_broken(path / name):
            if not utils.check_md5(path / name, md5):
                raise ValueError("another MD5 sum than CIFAR-10's")
    splits = [CIFAR10(str(path.parent), train=train) for train in (True, False)]
    arrays = [(each.data.transpose(0, 3, 1, 2), np.array(each.targets, dtype=np.int64)) for each in splits]
    return Arrays(*(np.ascontiguousarray(part) for split in arrays for part in split))


# ---- images by class -----------------------------------------------------------------------------


def images_in(root: Path, split: str) -> list[tuple[str, int]]:
    """Every image with its label, sorted by class and file name."""
    classes = known_sets()[root.name]["classes"]
    if missing := [name for name in classes if not (root / split / name).is_dir()]:
        raise BnbookError(
            f"{root} has no folder {split}/{missing[0]}; "
            f"expected the classes {', '.join(classes)} in train and in test; {REMEDY}"
        )

    def is_image(file: str) -> bool:
        return file.lower().endswith(SUFFIXES) and not file.startswith(".")

    found = []
    for name in sorted(classes):
        for place, inner, files in os.walk(
            root / split / name
        ):  # follows no link further in, which may lead back
            inner.sort()
            images = (os.path.join(place, file) for file in sorted(files) if is_image(file))
            found += [(image, classes.index(name)) for image in images]
    return found


def read_folders(root: Path) -> Arrays:
    channels, height, width = known_sets()[root.name]["shape"]

    def pixels(path: str) -> np.ndarray:
        from PIL import Image

        with named_where_broken(Path(path), "image"), Image.open(path, formats=("PNG", "JPEG")) as image:
            found = np.asarray(image.convert("L" if channels == 1 else "RGB"))
        if found.shape[:2] != (height, width):
            raise BnbookError(
                f"{path} is {found.shape[1]} x {found.shape[0]} pixels; expected {width} x {height}; {REMEDY}"
            )
        return found.reshape(height, width, channels).transpose(2, 0, 1)

    arrays = []
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:  # decoding a JPEG releases the interpreter
        for split in SPLITS:
            listed = images_in(root, split)
            images = np.empty((len(listed), channels, height, width), np.uint8)
            for place, image in enumerate(pool.map(pixels, [path for path, _ in listed])):
                images[place] = image
            arrays += [images, np.array([label for _, label in listed], dtype=np.int64)]
    return Arrays(*arrays)


@contextmanager
def named_where_broken(path: Path, kind: str = "file") -> Iterator[None]:
    """A library's own complaint about a file as one line that names it."""
    try:
        yield
    except BnbookError:
        raise
    except (*BROKEN, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's, not the content's
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BnbookError(
            f"{path} is truncated or altered ({reason}); expected a whole {kind}; {REMEDY}"
        ) from None
