"""One hash for a data set, whatever form its copy has."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import tiny_data

from bnbook import data
from bnbook.data import standins
from bnbook.data.identity import Arrays, describe, differing_groups, known_sets
from bnbook.errors import BnbookError

ARRAYS = tiny_data.make_arrays((3, 4, 5), seed=0)


def slow_hash(arrays: Arrays, classes: int) -> str:
    """The definition in `describe`, said plainly."""
    joined = ""
    for split, images, labels in (("train", *arrays[:2]), ("test", *arrays[2:])):
        for label in range(classes):
            digests = []
            for image in images[labels == label]:
                head = f"{split}/{label}/{'x'.join(map(str, image.shape))}:".encode()
                digests.append(hashlib.sha256(head + image.tobytes()).digest())
            joined += hashlib.sha256(b"".join(sorted(digests))).hexdigest()
    return hashlib.sha256(joined.encode()).hexdigest()


def shuffled(arrays: Arrays, seed: int) -> Arrays:
    random = np.random.default_rng(seed)
    train, test = random.permutation(len(arrays.train_labels)), random.permutation(len(arrays.test_labels))
    return Arrays(arrays[0][train], arrays[1][train], arrays[2][test], arrays[3][test])


def test_storage_order_changes_neither_hash_nor_canonical_order():
    first, second = describe(ARRAYS, 10), describe(shuffled(ARRAYS, 1), 10)
    assert first.sha256 == second.sha256 == slow_hash(ARRAYS, 10) and first.groups == second.groups
    for one, other in zip(first.arrays, second.arrays):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first.arrays.train_labels, np.sort(first.arrays.train_labels))
    pairs, found = (
        {(image.tobytes(), label) for image, label in zip(each.train_images, each.train_labels.tolist())}
        for each in (ARRAYS, first.arrays)
    )
    assert found == pairs and first.arrays.train_labels.dtype == np.int64


def _pixel() -> Arrays:
    images = ARRAYS.test_images.copy()
    images[3, 0, 0, 0] ^= 1
    return ARRAYS._replace(test_images=images)


def _swap() -> Arrays:
    labels = ARRAYS.train_labels.copy()
    i, j = np.flatnonzero(labels == 0)[0], np.flatnonzero(labels == 1)[0]
    labels[[i, j]] = labels[[j, i]]
    return ARRAYS._replace(train_labels=labels)


TWICE = [np.repeat(part[:15], 2, 0) for part in ARRAYS[:2]]
CHANGED = {
    "a pixel": _pixel(),
    "two labels": _swap(),
    "the splits": Arrays(*ARRAYS[2:], *ARRAYS[:2]),
    "each half of them twice": Arrays(*TWICE, *ARRAYS[2:]),
    "height and width": ARRAYS._replace(train_images=ARRAYS.train_images.reshape(-1, 3, 5, 4)),
}


@pytest.mark.parametrize("change", CHANGED)
def test_any_change_changes_the_hash(change):
    assert describe(CHANGED[change], 10).sha256 != describe(ARRAYS, 10).sha256


def test_changed_groups_are_named(monkeypatch):
    tiny_data.make_known(monkeypatch, "cifar10-jpeg75", ARRAYS)
    known = known_sets()["cifar10-jpeg75"]
    assert differing_groups(describe(ARRAYS, 10), known) == []
    label = int(ARRAYS.test_labels[3])
    assert differing_groups(describe(_pixel(), 10), known) == [f"test/{tiny_data.CLASSES[label]}"]
    assert differing_groups(describe(_swap(), 10), known) == ["train/airplane", "train/automobile"]


@pytest.mark.parametrize("name", data.STANDINS)
def test_standins_are_what_the_registry_says_and_no_evidence(name, monkeypatch, tmp_path):
    monkeypatch.setenv("BNBOOK_DATA", str(tmp_path / "nowhere"))  # they come with the book
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path / "cache"))
    identity = data.load(name).identity
    assert identity == data.known_identity(name) and not identity.exact
    assert not (tmp_path / "cache").exists()


def test_a_standin_that_is_changed_or_cannot_be_made_is_refused(monkeypatch):
    arrays = standins.digits()
    with monkeypatch.context() as patch:
        patch.setattr(standins, "digits", lambda: arrays._replace(train_images=arrays.train_images ^ 1))
        with pytest.raises(BnbookError, match="altered.*digits-standin"):
            data.load("digits-standin")
    standins.digits.cache_clear()
    monkeypatch.setattr(standins.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BnbookError, match="install it"):
        data.load("digits-standin")
