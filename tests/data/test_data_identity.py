"""One hash for a data set, whatever form its copy has."""

from __future__ import annotations

import hashlib
import re
import time

import numpy as np
import pytest
import tiny_data

from bnbook import data
from bnbook.data import standins
from bnbook.data.identity import Arrays, describe, differing_groups, known_identity, known_sets
from bnbook.errors import BnbookError

ARRAYS = tiny_data.make_arrays((3, 4, 5), seed=0)


def slow_hash(arrays: Arrays, classes: int) -> str:
    """The definition in `describe`, said plainly."""
    joined = ""
    for split, images, labels in (("train", *arrays[:2]), ("test", *arrays[2:])):
        for label in range(classes):
            digests = []
            for image, its_label in zip(images, labels):
                if its_label == label:
                    c, h, w = image.shape
                    digests.append(
                        hashlib.sha256(f"{split}/{label}/{c}x{h}x{w}:".encode() + image.tobytes()).digest()
                    )
            joined += hashlib.sha256(b"".join(sorted(digests))).hexdigest()
    return hashlib.sha256(joined.encode()).hexdigest()


def shuffled(arrays: Arrays, seed: int) -> Arrays:
    random = np.random.default_rng(seed)
    train, test = random.permutation(len(arrays.train_labels)), random.permutation(len(arrays.test_labels))
    return Arrays(arrays[0][train], arrays[1][train], arrays[2][test], arrays[3][test])


def test_hash_agrees_with_its_definition():
    assert describe(ARRAYS, 10).sha256 == slow_hash(ARRAYS, 10)


def test_storage_order_changes_neither_hash_nor_canonical_order():
    first, second = describe(ARRAYS, 10), describe(shuffled(ARRAYS, 1), 10)
    assert first.sha256 == second.sha256 and first.groups == second.groups
    for one, other in zip(first.arrays, second.arrays):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first.arrays.train_labels, np.sort(first.arrays.train_labels))


def test_canonical_order_keeps_each_image_with_its_label():
    ordered = describe(ARRAYS, 10).arrays
    pairs, found = (
        {(image.tobytes(), label) for image, label in zip(each.train_images, each.train_labels.tolist())}
        for each in (ARRAYS, ordered)
    )
    assert found == pairs and ordered.train_labels.dtype == np.int64


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


def test_registry_is_complete():
    assert list(known_sets()) == ["mnist", "cifar10", "cifar10-jpeg75", "digits-standin", "textures-standin"]
    for name, known in known_sets().items():
        assert len(known["classes"]) == 10 and all(isinstance(label, str) for label in known["classes"])
        assert name == "cifar10" or re.fullmatch("[0-9a-f]{64}", known["sha256"])
        assert known["exact"] is (name in ("mnist", "cifar10"))
        for groups in known.get("groups", {}).values():
            assert len(groups) == 10 and all(re.fullmatch("[0-9a-f]{8}", group) for group in groups)
    assert (known_sets()["mnist"]["train"], known_sets()["mnist"]["test"]) == (60_000, 10_000)
    assert known_sets()["mnist"]["md5"]["t10k-labels-idx1-ubyte"].startswith("27ae3e4e")  # as published
    assert known_identity("cifar10") is None and known_identity("mnist").shape == (1, 28, 28)


@pytest.mark.parametrize("name", data.STANDINS)
def test_standins_are_what_the_registry_says_and_no_evidence(name, monkeypatch, tmp_path):
    monkeypatch.setenv(
        "BNBOOK_DATA", str(tmp_path / "nowhere")
    )  # they come with the book, wherever the data lie
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path / "cache"))
    identity = data.load(name).identity
    assert identity == data.known_identity(name) and not identity.exact
    assert not (tmp_path / "cache").exists()


def test_changed_standin_is_refused(monkeypatch):
    arrays = standins.digits()
    images = arrays.train_images.copy()
    images[0, 0, 0, 0] += 1
    monkeypatch.setattr(standins, "digits", lambda: arrays._replace(train_images=images))
    with pytest.raises(BnbookError, match="altered.*digits-standin"):
        data.load("digits-standin")


def test_missing_scikit_learn(monkeypatch):
    standins.digits.cache_clear()
    monkeypatch.setattr(standins.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BnbookError, match="install it"):
        data.load("digits-standin")


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    digits, arrays = load_digits(), standins.digits()
    images = np.concatenate([arrays.train_images, arrays.test_images])[:, 0]
    np.testing.assert_array_equal(images, np.floor(digits.images * 255 / 16))
    np.testing.assert_array_equal(np.concatenate([arrays.train_labels, arrays.test_labels]), digits.target)
    assert (len(arrays.train_labels), len(arrays.test_labels)) == (1437, 360)


def slow_splitmix(index: int, stream: int) -> int:
    mask = 2**64 - 1
    state = (index + 1 + (stream << 40)) * 0x9E3779B97F4A7C15 & mask
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
    state = (state ^ state >> 27) * 0x94D049BB133111EB & mask
    return (state ^ state >> 31) >> 24


def test_texture_draws_agree_with_plain_integers():
    assert standins._draws(50, stream=2).tolist() == [slow_splitmix(index, 2) for index in range(50)]


def test_a_texture_agrees_with_its_formula():
    arrays, index = standins.textures(), 1237
    label = index % 10
    drawn = [slow_splitmix(16 * index + k, 1) % 2**16 for k in range(10)]
    across, down = (step + drawn[k] % 17 - 8 for k, step in enumerate(standins.DIRECTIONS[label % 5]))
    for c, y, x in [(0, 0, 0), (1, 31, 0), (2, 17, 30), (0, 5, 9)]:
        wave = abs((across * x + down * y + drawn[2] % 256) % 256 - 128) - 64
        colour = 2 * standins.COLOURS[label // 5][c] + drawn[7 + c] % 5 - 2
        noise = slow_splitmix(index * 1024 + 32 * y + x, 2) >> 12 * c
        noise = noise % 64 + noise // 64 % 64 - 63
        value = 88 + drawn[4 + c] % 80 + wave * colour * (6 + drawn[3] % 10) // 64 + noise
        assert arrays.train_images[index, c, y, x] == min(max(value, 0), 255)
    assert arrays.train_labels[index] == label


def test_textures_are_quick():
    standins.textures.cache_clear()
    begun = time.process_time()
    standins.textures()
    assert time.process_time() - begun < 1.0
