"""Loading by name: every layout, the cache behind it, and what is said when something is wrong."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import time
import urllib.error

import numpy as np
import pytest
import tiny_data
import torch
from PIL import Image

from bnbook import data
from bnbook.data import cache, dataset, sources
from bnbook.data.identity import known_sets
from bnbook.errors import BnbookError
from bookpress import atomic, results

DIGITS = tuple(str(digit) for digit in range(10))
MNIST = tiny_data.make_arrays((1, 28, 28), seed=1)
CIFAR = tiny_data.make_arrays((3, 32, 32), seed=2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """BNBOOK_DATA, empty; the tiny sets are what the names stand for."""
    tiny_data.make_known(monkeypatch, "mnist", MNIST, md5=tiny_data.md5_of(MNIST))
    tiny_data.make_known(monkeypatch, "cifar10", CIFAR, sha256=None, groups=None)
    tiny_data.make_known(monkeypatch, "cifar10-jpeg75", CIFAR)
    return tiny_data.isolate(monkeypatch, tmp_path)


def refused(name: str, tmp_path, *words: str) -> str:
    """load(name) fails with one line that holds all `words`, and leaves no decoded file behind."""
    with pytest.raises(BnbookError) as caught:
        data.load(name)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message
    assert tiny_data.cached_files(tmp_path) == []
    return message


def same(one: data.Dataset, other: data.Dataset) -> bool:
    fields = ("train_images", "train_labels", "test_images", "test_labels", "mean", "std")
    return one.identity == other.identity and all(
        torch.equal(getattr(one, f), getattr(other, f)) for f in fields
    )


def test_idx_plain_gzipped_and_png_folders_are_one_set(folder, tmp_path, monkeypatch):
    loaded = []
    tiny_data.write_idx(tmp_path / "plain", MNIST)
    tiny_data.write_idx(tmp_path / "zipped", MNIST, zipped=True)
    tiny_data.write_folders(tmp_path / "folders" / "mnist", MNIST, DIGITS)
    for place in ("plain", "zipped", "folders"):
        monkeypatch.setenv("BNBOOK_DATA", str(tmp_path / place))
        loaded.append(data.load("mnist"))
    assert same(loaded[0], loaded[1]) and same(loaded[0], loaded[2])
    first, near = loaded[0], pytest.approx
    assert set(known_sets()) | set(sources.FAMILIES) == set(data.NAMES)
    assert first.identity == data.known_identity("mnist") and first.identity.exact
    assert first.train_images.dtype == torch.uint8 and first.train_images.shape == (30, 1, 28, 28)
    assert first.train_labels.dtype == torch.int64 and first.classes == DIGITS
    pixels = MNIST.train_images / 255
    assert first.mean.item() == near(pixels.mean()) and first.std.item() == near(pixels.std())


@pytest.mark.parametrize("archive", [False, True])
def test_exact_cifar10_from_batches(folder, monkeypatch, archive):
    tiny_data.write_batches(folder, CIFAR, monkeypatch, archive)
    tiny_data.write_folders(folder / "cifar10-jpeg75", CIFAR, tiny_data.CLASSES)
    exact, either, jpeg = data.load("cifar10"), data.load("cifar10-auto"), data.load("cifar10-jpeg75")
    assert exact.identity.name == either.identity.name == "cifar10" and exact.identity.exact
    assert jpeg.identity.name == "cifar10-jpeg75" and not jpeg.identity.exact
    assert jpeg.identity.sha256 == exact.identity.sha256  # these two copies are made of the same pixels
    assert torch.equal(jpeg.test_images, exact.test_images) and jpeg.classes[9] == "truck"
    np.testing.assert_allclose(exact.mean, CIFAR.train_images.mean((0, 2, 3)) / 255, rtol=1e-6)
    np.testing.assert_allclose(exact.std, CIFAR.train_images.std((0, 2, 3)) / 255, rtol=1e-6)


def test_a_link_that_leads_back_ends(folder):
    root = tiny_data.write_folders(folder / "cifar10-jpeg75", CIFAR, tiny_data.CLASSES)
    plain = data.load("cifar10-jpeg75")
    for name in ("a", "b"):
        (root / "train" / tiny_data.CLASSES[0] / name).symlink_to("..", target_is_directory=True)
        (root / "train" / tiny_data.CLASSES[0] / f"{name}-own").symlink_to(".", target_is_directory=True)
    assert len(sources.images_in(root, "test")) == len(plain.test_labels)
    began = time.perf_counter()
    assert len(sources.images_in(root, "train")) == len(plain.train_labels)
    assert time.perf_counter() - began < 5


def test_an_exact_set_that_is_altered_or_missing_is_not_replaced_by_jpeg75_but_by_auto(
    folder, tmp_path, monkeypatch
):
    path = tiny_data.write_batches(folder, CIFAR, monkeypatch) / "data_batch_3"
    tiny_data.write_folders(folder / "cifar10-jpeg75", CIFAR, tiny_data.CLASSES)
    path.write_bytes(path.read_bytes()[:-100])
    refused("cifar10-auto", tmp_path, "data_batch_3", "truncated or altered", "MD5", "again")
    path.unlink()
    refused("cifar10-auto", tmp_path, "has no data_batch_3")
    shutil.rmtree(path.parent)
    path = tiny_data.write_batches(folder, CIFAR, monkeypatch, archive=True)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused("cifar10", tmp_path, "cifar-10-python.tar.gz", "truncated or altered", "again")
    path.unlink()
    refused("cifar10", tmp_path, "only cifar10-jpeg75", "cifar-10-batches-py", "data=cifar10-auto")
    loaded = data.load("cifar10-auto")
    assert loaded.identity.name == "cifar10-jpeg75" and loaded.train_images.is_contiguous()
    assert any(row["sha256"] == loaded.identity.sha256 for row in results.current().header["data"])


@pytest.mark.parametrize("name", ["mnist", "mnist-auto", "cifar10", "cifar10-jpeg75", "cifar10-auto"])
def test_a_set_or_a_folder_that_is_not_there(folder, tmp_path, monkeypatch, name):
    refused(name, tmp_path, "not in BNBOOK_DATA", str(folder), "expected", "put it there")
    monkeypatch.setenv("BNBOOK_DATA", str(tmp_path / "nowhere"))
    refused(name, tmp_path, "no folder", "nowhere", "unset it")
    monkeypatch.delenv("BNBOOK_DATA")
    refused("cifar10-jpeg75", tmp_path, "cannot be downloaded", "set BNBOOK_DATA", "data=cifar10")
    refused("imagenet", tmp_path, "unknown data set 'imagenet'", *data.NAMES)


HARM = {
    "cut": lambda whole: whole[:-1],
    "empty": lambda whole: b"",
    "altered inside": lambda whole: whole[: (n := len(whole) // 2)] + bytes([whole[n] ^ 1]) + whole[n + 1 :],
}


@pytest.mark.parametrize("zipped", [False, True])
def test_an_idx_file_that_is_harmed_closed_or_missing_is_named(folder, tmp_path, monkeypatch, zipped):
    raw = tiny_data.write_idx(folder, MNIST, zipped)
    path = raw / ("t10k-images-idx3-ubyte" + (".gz" if zipped else ""))
    whole = path.read_bytes()
    for harm in HARM.values():
        path.write_bytes(harm(whole))
        refused("mnist", tmp_path, path.name, "truncated or altered", "expected a whole file", "again")
    path.write_bytes(whole)

    def forbidden(path, md5) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patch:
        patch.setattr("torchvision.datasets.utils.check_md5", forbidden)
        refused(
            "mnist", tmp_path, "cannot read ", "train-images-idx3-ubyte: Permission denied", "permissions"
        )
    path.unlink()
    refused("mnist", tmp_path, "t10k-images-idx3-ubyte", "expected all four")


def test_harmed_folder_says_where(folder, tmp_path):
    root = tiny_data.write_folders(folder / "cifar10-jpeg75", CIFAR, tiny_data.CLASSES)
    cats = sorted((root / "train" / "cat").iterdir())
    whole = cats[0].read_bytes()
    Image.new("RGB", (8, 9)).save(cats[0])
    refused("cifar10-jpeg75", tmp_path, "is 8 x 9 pixels", "expected 32 x 32")
    (root / "train" / "dog" / "._0000.png").write_bytes(b"no image, and hidden")
    cats[0].write_bytes(whole[: len(whole) // 2])
    refused("cifar10-jpeg75", tmp_path, str(cats[0]), "truncated")
    cats[0].write_bytes(b"nonsense")
    refused("cifar10-jpeg75", tmp_path, str(cats[0]), "cannot identify", "expected a whole image")
    cats[0].write_bytes(cats[1].read_bytes())
    refused("cifar10-jpeg75", tmp_path, "altered in train/cat:", "SHA-256")
    cats[0].unlink()
    refused("cifar10-jpeg75", tmp_path, "29 training and 10 test", "30 and 10")
    for path in cats[1:]:
        path.unlink()
    (root / "train" / "cat").rmdir()
    refused("cifar10-jpeg75", tmp_path, "no folder train/cat", "airplane, automobile")


def test_cache_is_used_until_the_source_changes(folder, tmp_path, monkeypatch):
    raw = tiny_data.write_idx(folder, MNIST)
    with monkeypatch.context() as patch:
        patch.setattr(data, "LISTENERS", [lambda identity: pytest.fail("recorded")])
        assert data.prepare("mnist") == data.known_identity("mnist")
    assert tiny_data.cached_files(tmp_path) == ["mnist.npz"]
    first = data.load("mnist")
    for device in ("abacus", "cuda:77"):
        with pytest.raises(BnbookError, match=f"cannot put mnist on {device} .*try cpu"):
            data.load("mnist", device=device)
    with monkeypatch.context() as patch:
        patch.setattr(sources, "read_idx", lambda raw: pytest.fail("decoded again"))
        assert same(data.load("mnist"), first)
    os.utime(raw / "train-labels-idx1-ubyte", ns=(1, 1))
    decoded = []
    read = sources.read_idx
    monkeypatch.setattr(sources, "read_idx", lambda raw: decoded.append(1) or read(raw))
    assert same(data.load("mnist"), first) and decoded == [1]
    (raw / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(BnbookError, match="train-labels"):  # the cache is no source
        data.load("mnist")


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("name", ["mnist", "cifar10"])  # with a known hash and without
def test_harmed_cache_is_decoded_again(folder, tmp_path, monkeypatch, harm, name):
    tiny_data.write_idx(folder, MNIST)
    tiny_data.write_batches(folder, CIFAR, monkeypatch)
    first = data.load(name)
    path = tmp_path / "cache" / "decoded" / f"{name}.npz"
    whole = path.read_bytes()
    path.write_bytes(HARM[harm](whole))
    assert same(data.load(name), first) and path.read_bytes() == whole
    path.write_bytes(whole.replace(b'"exact": true', b'"exact": none'))
    assert same(data.load(name), first) and path.read_bytes() == whole
    with np.load(path) as kept:
        other = {part: kept[part] for part in kept.files}
    other["test_images"] = other["test_images"] ^ 1  # a whole file with other pixels
    np.savez(path, **other)
    assert same(data.load(name), first) and path.read_bytes() == whole


def test_full_disk_leaves_nothing_and_a_file_may_stand_where_the_cache_goes(folder, tmp_path, monkeypatch):
    tiny_data.write_idx(folder, MNIST)
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        patch.setattr(atomic.os, "replace", lambda *_: (_ for _ in ()).throw(full))
        refused("mnist", tmp_path, "No space left on device", "free some space", "BNBOOK_CACHE")
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("in the way")
    refused("mnist", tmp_path, "cannot write", "BNBOOK_CACHE")


def test_statistics_do_not_depend_on_the_piece():
    images = np.random.default_rng(0).integers(0, 256, (5003, 2, 3, 3), dtype=np.uint8)
    images[5000:] = 255
    found = dataset.pixel_statistics(images)
    np.testing.assert_allclose(found["mean"], (images / 255).mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(found["std"], (images / 255).std((0, 2, 3)), rtol=1e-12)


def test_only_what_a_killed_process_left_an_hour_ago_is_swept_away(folder, tmp_path):
    tiny_data.write_idx(folder, MNIST)
    decoded = tmp_path / "cache" / "decoded"
    decoded.mkdir(parents=True)
    now = time.time()
    for name, age in (("old", 3700), ("new", 3500)):
        (decoded / f".mnist.npz.{name}.part").write_bytes(b"")
        os.utime(decoded / f".mnist.npz.{name}.part", (now - age, now - age))
    data.load("mnist")
    assert cache.cache_folder() == tmp_path / "cache"
    assert tiny_data.cached_files(tmp_path) == [".mnist.npz.new.part", "mnist.npz"]


def served(monkeypatch, folder, arrays) -> list[str]:
    """The files of MNIST, for torchvision to download from a folder; what it asked for."""
    from torchvision.datasets import MNIST

    tiny_data.write_idx(folder, arrays, zipped=True)
    raw, asked = folder / "MNIST" / "raw", []

    def fetch(url: str, filename: str, chunk_size: int = 1) -> None:
        asked.append(url.rsplit("/", 1)[-1])
        shutil.copy(raw / asked[-1], filename)

    monkeypatch.setattr("torchvision.datasets.utils._urlretrieve", fetch)
    monkeypatch.setattr("torchvision.datasets.utils._get_redirect_url", lambda url, max_hops: url)
    files = [raw / f"{stem}.gz" for stem in sources.STEMS]
    monkeypatch.setattr(
        MNIST, "resources", [(f.name, hashlib.md5(f.read_bytes()).hexdigest()) for f in files]
    )
    return asked


def test_a_set_that_is_nowhere_is_downloaded_once_and_checked(folder, tmp_path, monkeypatch):
    asked = served(monkeypatch, tmp_path / "server", MNIST)
    monkeypatch.delenv("BNBOOK_DATA")
    first = data.load("mnist-auto")
    assert first.identity == data.known_identity("mnist") and len(asked) == 4
    (tmp_path / "cache" / "decoded" / "mnist.npz").unlink()
    assert same(data.load("mnist"), first) and len(asked) == 4


@pytest.mark.parametrize("fault", ["wrong content", "no server", "silence"])
def test_a_download_that_fails_is_one_line_and_leaves_nothing_decoded(folder, tmp_path, monkeypatch, fault):
    asked = served(monkeypatch, tmp_path / "server", MNIST)
    monkeypatch.delenv("BNBOOK_DATA")
    if fault == "wrong content":
        path = tmp_path / "server" / "MNIST" / "raw" / "t10k-labels-idx1-ubyte.gz"
        path.write_bytes(path.read_bytes()[:-1])
    else:

        def fail(*_: object) -> None:
            assert socket.getdefaulttimeout() == sources.SILENCE
            raise TimeoutError("timed out") if fault == "silence" else urllib.error.URLError("no route")

        monkeypatch.setattr("torchvision.datasets.utils._urlretrieve", fail)
    with pytest.raises(
        BnbookError, match="cannot download mnist .*; run again, or set BNBOOK_DATA"
    ) as caught:
        data.load("mnist")
    assert "\n" not in str(caught.value) and not (tmp_path / "cache" / "decoded").exists()
    assert socket.getdefaulttimeout() is None and bool(asked) == (fault == "wrong content")
