"""The results store: whole or absent, never another training's, named by all that the numbers rest on."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from bnbook import trainings
from bnbook.chapters.ingredients import IngredientArm
from bnbook.deep_linear import LinearArm
from bnbook.errors import BnbookError
from bnbook.small_networks import PhaseArm
from bnbook.training.arm import Arm
from bnbook.training.practice import Practice
from bnbook.training.probes import Probes
from bookpress import atomic, paths
from bookpress.runs import kinds, store

ARRAYS = {"loss": np.linspace(0, 1, 7), "step": np.arange(3), "diverged": np.float64(0)}
ABOUT = {"arm": {"norm": "batch", "data": "cifar10-auto", "hidden": (3, 2)}, "seed": 1}


pytestmark = pytest.mark.usefixtures("own_store")


def same(found) -> bool:
    return set(found) == {*ARRAYS, "seconds"} and all(
        np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS
    )


def test_what_is_written_is_read(own_store):
    assert store.read("key", ABOUT) is None
    store.write("key", ARRAYS, seconds=2.5, about=ABOUT)
    found = store.read("key", ABOUT)
    assert same(found) and found["seconds"] == 2.5
    (own_store / ".half.npz.part").write_bytes(b"PK")  # what a kill during a write leaves behind
    assert same(store.read("key", ABOUT))


def test_what_was_published_need_not_be_made_again(own_store, monkeypatch, tmp_path):
    monkeypatch.setenv("BNBOOK_EXECUTED", str(tmp_path / "executed"))
    store.write("key", ARRAYS, seconds=2.5, about=ABOUT)
    committed = paths.trainings_folder() / "key.npz"
    atomic.write_bytes(committed, (own_store / "key.npz").read_bytes())
    (own_store / "key.npz").write_bytes(b"PK")
    assert same(store.read("key", ABOUT)) and not (own_store / "key.npz").exists()
    assert store.read("key", ABOUT | {"seed": 2}) is None and committed.exists()
    committed.write_bytes(b"PK")
    assert store.read("key", ABOUT) is None and committed.exists()  # it is not the store's to remove


@pytest.mark.parametrize("names", [("loss", "step"), ("loss", "step", "diverged", "more")])
def test_a_training_with_an_array_too_few_or_too_many_is_trained_again(own_store, names):
    store.write("key", ARRAYS, seconds=2.5, about=ABOUT)
    with np.load(own_store / "key.npz") as file:
        whole = {name: file[name] for name in file.files}
    altered = {name: whole.get(name, np.zeros(1)) for name in (*names, "meta")}
    np.savez_compressed(own_store / "key.npz", **altered)
    assert store.read("key", ABOUT) is None and not (own_store / "key.npz").exists()


def test_every_flipped_bit_is_healed_or_harmless(own_store):
    store.write("key", ARRAYS, seconds=2.5, about=ABOUT)
    path = own_store / "key.npz"
    whole, healed = path.read_bytes(), 0
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        found = store.read("key", ABOUT)
        healed += found is None
        assert path.exists() == (found is not None)
        assert found is None or same(found)
    assert healed > len(whole) / 2
    for damaged in (b"", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(damaged)
        assert store.read("key", ABOUT) is None and not path.exists()


def test_another_training_under_the_name_is_said_and_not_taken(own_store, tmp_path):
    for other in ({"seed": 2}, {"arm": ABOUT["arm"] | {"norm": "none"}}):
        store.write("key", ARRAYS, seconds=1, about=ABOUT | other)
        assert store.read("key", ABOUT) is None and not list(own_store.iterdir())
    assert "holds another training" in (tmp_path / "said").read_text()
    store.write("key", ARRAYS, seconds=1, about=ABOUT | {"arm": ABOUT["arm"] | {"data": "cifar10-jpeg75"}})
    assert same(store.read("key", ABOUT))  # another name for the same data: the key holds its content


def test_a_file_that_cannot_be_read_now_stays(own_store, monkeypatch):
    store.write("key", ARRAYS, seconds=1, about=ABOUT)

    def refused(path):
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(type(own_store), "read_bytes", refused)
        with pytest.raises(BnbookError, match="Too many open files"):
            store.read("key", ABOUT)
    assert same(store.read("key", ABOUT))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left"),
        (OSError("4096 requested"), "4096 requested"),
    ],
)
def test_a_full_disk_is_said_with_its_reason(monkeypatch, error, reason):
    def full(path, content):
        raise error

    monkeypatch.setattr(atomic, "write_bytes", full)
    with pytest.raises(BnbookError, match=f"{reason}.*BNBOOK_STORE"):
        store.write("key", ARRAYS, seconds=1, about=ABOUT)


def test_without_a_book_the_store_is_in_the_cache(monkeypatch, tmp_path):
    for name in ("BNBOOK_STORE", "BNBOOK_RUNS", "BNBOOK_ROOT"):
        monkeypatch.delenv(name, raising=False)
    assert paths.store_folder() == paths.repository_root() / "runs" / "store"
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "site-packages" / "bnbook" / "paths.py"))
    monkeypatch.chdir(tmp_path)
    assert paths.store_folder() == tmp_path / "cache" / "store"
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))  # named, and wrong
    with pytest.raises(BnbookError, match="no book found"):
        paths.store_folder()


PROBED = Arm(steps=9, instruments=Probes(probe_steps=(0, 3), landscape=(0.5,)))
INGREDIENT = IngredientArm("batch", "a", 4, (8, 8), (), 16, steps=20, rates=(0.1, 0.2))
ARMS = [Arm(), PROBED, Arm(optimizer=Practice()), PhaseArm(), LinearArm(), INGREDIENT]
#: Another value of a setting that every arm has, or some of them.
OTHERS = {"learning_rate": 0.2, "steps": 8, "momentum": 0.5, "rates": (0.1, 0.3), "held": True}


def key(arm, seed=0, data="a", device="cuda"):
    return store.key(kinds.identity(arm, seed, kinds.edition(kinds.kind_of(arm), data), device))


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: type(arm.kind).__name__)
def test_the_key_names_all_that_the_numbers_rest_on(arm, monkeypatch):
    keys = [key(arm), key(arm, seed=1), key(arm, data="b")]
    keys += [key(replace(arm, **{name: value})) for name, value in OTHERS.items() if hasattr(arm, name)]
    keys += [] if isinstance(arm, LinearArm | IngredientArm) else [key(arm, device="cpu")]
    with monkeypatch.context() as patched:
        patched.setattr(torch, "__version__", "2.99")
        keys.append(key(arm))
    with monkeypatch.context() as patched:
        patched.setattr(kinds, "code_of", lambda *roots, **more: f"code of {roots} and {more}")
        keys.append(key(arm))
    with monkeypatch.context() as patched:
        patched.setattr(kinds, "THREADS", 2)
        keys.append(key(arm))
    assert len(set(keys)) == len(keys) and key(arm) == keys[0]
    assert key(type(arm.kind).from_settings(json.loads(json.dumps(arm.settings())))) == keys[0]
    if hasattr(arm, "data"):  # the content of the data counts, not the name
        assert key(replace(arm, data="another-name")) == keys[0]


def test_options_and_probes_count():
    arms = [Arm(), Arm(options=(("depth", 2),)), Arm(norm="batch"), Arm(width=0.5), Arm(augment=True)]
    probed = lambda **changes: replace(PROBED, instruments=replace(PROBED.instruments, **changes))
    arms += [PROBED, probed(landscape=(0.5, 1.0)), Arm(steps=9), probed(covariate_shift=True)]
    arms += [LinearArm(), LinearArm(target_std=0.5)]
    assert len({key(arm) for arm in arms}) == len(arms)
    assert key(probed(landscape=(1, 2))) == key(probed(landscape=(1.0, 2.0)))


def test_each_kind_of_arm_has_its_own_code():
    code = {kind: kinds.edition(kind, None)["code"] for kind in trainings.TRAINS}
    assert len(set(code.values())) == len(code)
    assert {type(arm.kind) for arm in ARMS} == {kinds.find(kind) for kind in trainings.TRAINS}
    with pytest.raises(BnbookError, match="nothing trains"):
        kinds.kind_of(object())
    with pytest.raises(
        BnbookError, match="norm is dict itself; expected the name that it is registered under"
    ):
        kinds.about(Arm(norm=dict), 0)


def test_one_gpu_of_several_is_as_good_as_another():
    found = [kinds.identity(Arm(), 0, {}, device)["device"] for device in ("cpu", "cuda", "cuda:1")]
    assert found == ["cpu", "cuda", "cuda"]
