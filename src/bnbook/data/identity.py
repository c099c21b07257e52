"""Which data a number rests on: one SHA-256 for a set of images, the same for every faithful copy of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

SPLITS = ("train", "test")


@dataclass(frozen=True)
class DataIdentity:
    """A data set as a result names it: sizes m of both splits, image shape (C, H, W), hash (`describe`)."""

    name: str
    train: int
    test: int
    shape: tuple[int, int, int]
    sha256: str
    exact: bool  # the published set, bit for bit; False for a re-compressed copy and for stand-ins


class Arrays(NamedTuple):
    """A decoded set: images uint8 (m, C, H, W) and labels int64 (m,), both splits."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    def split(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        return self[:2] if name == "train" else self[2:]


@cache
def known_sets() -> dict[str, dict[str, Any]]:
    """What each set must be (`known.yml`): shape, sizes, classes, hashes."""
    import yaml

    text = resources.files("bnbook.data").joinpath("known.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def known_identity(name: str) -> DataIdentity | None:
    """The identity that every faithful copy has; None where the hash was never computed (cifar10)."""
    known = known_sets().get(name)
    if known is None or known["sha256"] is None:
        return None
    shape = tuple(known["shape"])
    return DataIdentity(name, known["train"], known["test"], shape, known["sha256"], known["exact"])


class Description(NamedTuple):
    """The hash of a set, the hashes of its (split, label) groups, and the set in canonical order."""

    sha256: str
    groups: dict[str, list[str]]  # split -> one hash a label
    arrays: Arrays


def describe(arrays: Arrays, classes: int) -> Description:
    """Hash a set whatever the order in which its images are stored, and put it in canonical order.

    image: d = SHA-256("split/label/CxHxW:" + pixels); group (split, label): SHA-256 of its sorted d, joined;
    set: SHA-256 of the groups in order. Canonical order: by d. So IDX files and a folder of PNG images that
    hold the same set agree in hash and in order, and a run with the same seed sees the same batches from
    either. The order is as good as a random one, so its first m images are a fixed random sample.
    """
    groups: dict[str, list[str]] = {}
    ordered: list[np.ndarray] = []
    for split in SPLITS:
        images, labels = arrays.split(split)
        shape = "x".join(str(size) for size in images.shape[1:])
        starts = [hashlib.sha256(f"{split}/{label}/{shape}:".encode()) for label in range(classes)]
        digests = []
        for image, label in zip(np.ascontiguousarray(images), labels.tolist()):
            digest = starts[label].copy()
            digest.update(image)
            digests.append(digest.digest())
        order = np.array(sorted(range(len(digests)), key=digests.__getitem__), dtype=np.int64)
        members: list[list[bytes]] = [[] for _ in range(classes)]
        for index in order.tolist():
            members[labels[index]].append(digests[index])
        groups[split] = [hashlib.sha256(b"".join(group)).hexdigest() for group in members]
        ordered += [images[order], labels[order]]
    joined = "".join(group for split in SPLITS for group in groups[split])
    return Description(hashlib.sha256(joined.encode()).hexdigest(), groups, Arrays(*ordered))


def differing_groups(description: Description, known: dict[str, Any]) -> list[str]:
    """The groups "split/class" whose hash is not the known one; empty where no group hashes are known."""
    if not known.get("groups"):
        return []
    return [
        f"{split}/{name}"
        for split in SPLITS
        for name, found, expected in zip(known["classes"], description.groups[split], known["groups"][split])
        if not found.startswith(expected)
    ]
