"""The stand-ins of the smoke profile: the same bytes everywhere, real digits, learnable textures."""

from __future__ import annotations

import time

import numpy as np
import pytest

from bnbook import data
from bnbook.data import standins
from bnbook.errors import BnbookError


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
