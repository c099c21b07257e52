"""Tiny copies of the real data sets in each layout that the loader reads, with their own identities."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bnbook.data import sources, standins
from bnbook.data.identity import Arrays, describe, known_sets

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def make_arrays(shape: tuple[int, int, int], seed: int, train: int = 30, test: int = 10) -> Arrays:
    """Random images, every class in both splits."""
    random = np.random.default_rng(seed)
    images = [random.integers(0, 256, (count, *shape), dtype=np.uint8) for count in (train, test)]
    labels = [random.permutation(np.arange(count) % 10).astype(np.int64) for count in (train, test)]
    return Arrays(images[0], labels[0], images[1], labels[1])


def make_known(monkeypatch: pytest.MonkeyPatch, name: str, arrays: Arrays, **changes: object) -> None:
    """Let `arrays` be what the set `name` is known to be."""
    described = describe(arrays, 10)
    known = known_sets()[name] | {
        "train": len(arrays.train_labels),
        "test": len(arrays.test_labels),
        "shape": list(arrays.train_images.shape[1:]),
        "sha256": described.sha256,
        "groups": {split: [group[:8] for group in groups] for split, groups in described.groups.items()},
    }
    monkeypatch.setitem(known_sets(), name, known | changes)


def idx_contents(arrays: Arrays) -> dict[str, bytes]:
    """The four IDX files as bytes."""
    parts = (arrays.train_images[:, 0], arrays.train_labels, arrays.test_images[:, 0], arrays.test_labels)
    contents = {}
    for stem, array in zip(sources.STEMS, parts):
        sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
        contents[stem] = b"\x00\x00\x08" + bytes([array.ndim]) + sizes + array.astype(np.uint8).tobytes()
    return contents


def write_idx(folder: Path, arrays: Arrays, zipped: bool = False) -> Path:
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for stem, content in idx_contents(arrays).items():
        written = gzip.compress(content) if zipped else content
        (raw / (f"{stem}.gz" if zipped else stem)).write_bytes(written)
    return raw


def md5_of(arrays: Arrays) -> dict[str, str]:
    return {stem: hashlib.md5(content).hexdigest() for stem, content in idx_contents(arrays).items()}


def write_folders(root: Path, arrays: Arrays, classes: tuple[str, ...], suffix: str = "png") -> Path:
    """ROOT/{train,test}/CLASS/NUMBER.png."""
    for split in ("train", "test"):
        for name in classes:
            (root / split / name).mkdir(parents=True)
        images, labels = arrays.split(split)
        for number, (image, label) in enumerate(zip(images, labels.tolist())):
            pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
            Image.fromarray(pixels).save(root / split / classes[label] / f"{number:04d}.{suffix}")
    return root


def write_batches(
    folder: Path, arrays: Arrays, monkeypatch: pytest.MonkeyPatch, archive: bool = False
) -> Path:
    """The six batches of CIFAR-10, with torchvision told their MD5 sums."""
    from torchvision.datasets import CIFAR10

    parts = [*zip(np.split(arrays.train_images, 5), np.split(arrays.train_labels, 5), strict=True)]
    parts.append((arrays.test_images, arrays.test_labels))
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    contents = {
        name: pickle.dumps({"data": images.reshape(-1, 3072), "labels": labels.tolist()})
        for name, (images, labels) in zip(names, parts, strict=True)
    }
    sums = [[name, hashlib.md5(content).hexdigest()] for name, content in contents.items()]
    monkeypatch.setattr(CIFAR10, "train_list", sums[:5])
    monkeypatch.setattr(CIFAR10, "test_list", sums[5:])
    contents["batches.meta"] = pickle.dumps({"label_names": list(CLASSES)})
    meta = CIFAR10.meta | {"md5": hashlib.md5(contents["batches.meta"]).hexdigest()}
    monkeypatch.setattr(CIFAR10, "meta", meta)
    folder.mkdir(parents=True, exist_ok=True)
    if archive:
        path = folder / "cifar-10-python.tar.gz"
        with tarfile.open(path, "w:gz") as file:
            for name, content in contents.items():
                info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
                info.size = len(content)
                file.addfile(info, io.BytesIO(content))
        monkeypatch.setattr(CIFAR10, "tgz_md5", hashlib.md5(path.read_bytes()).hexdigest())
        return path
    path = folder / "cifar-10-batches-py"
    path.mkdir()
    for name, content in contents.items():
        (path / name).write_bytes(content)
    return path


def isolate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty data folder and an empty cache; touching a stand-in or the network fails the test."""

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("fell back to a stand-in or to the network")

    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("BNBOOK_DATA", str(folder))
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BNBOOK_RESULTS", raising=False)
    for name in ("digits", "textures"):
        monkeypatch.setattr(standins, name, forbidden)
    monkeypatch.setattr("urllib.request.urlopen", forbidden)
    return folder


def cached_files(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())
