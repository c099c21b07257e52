"""Data sets by name: real ones from BNBOOK_DATA or a checked download, stand-ins for the smoke profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bnbook.data import cache, sources
from bnbook.data.dataset import Dataset, fixed_sample, normalise, on_device, pixel_statistics
from bnbook.data.identity import Arrays, DataIdentity, describe, differing_groups, known_identity, known_sets
from bnbook.errors import BnbookError

if TYPE_CHECKING:
    import torch

STANDINS = ("digits-standin", "textures-standin")
NAMES = ("mnist", "mnist-auto", "cifar10", "cifar10-jpeg75", "cifar10-auto", *STANDINS)
#: Who hears of a set that is loaded: the results file, if there is one, rests on it.
LISTENERS: list[Callable[[DataIdentity], None]] = []

__all__ = [
    "NAMES",
    "STANDINS",
    "Batches",
    "DataIdentity",
    "Dataset",
    "LISTENERS",
    "colours",
    "fixed_sample",
    "is_kept",
    "known_identity",
    "known_sets",
    "load",
    "normalise",
    "prepare",
    "whereabouts",
]


def load(name: str, *, device: str | torch.device = "cpu") -> Dataset:
    """The data set `name` on `device`; `.identity.name` tells what a family name (`cifar10-auto`) stood for.

    Raises BnbookError for an unknown name, a missing set, a truncated or altered file, a full disk; real data
    is never replaced by a stand-in. What was loaded is noted in the results (`LISTENERS`).
    """
    dataset = on_device(*_decoded(name), device)
    for hear in LISTENERS:
        hear(dataset.identity)
    return dataset


def prepare(name: str) -> DataIdentity:
    """Find, download, check and cache a set, so that a later `load` is quick and silent; needs no torch."""
    return _decoded(name)[0]


def whereabouts(name: str) -> str:
    """Where `load(name)` would take the set from, in words, without reading it; BnbookError if nowhere."""
    _check_name(name)
    if name in STANDINS:
        return "comes with bnbook"
    actual, source = sources.find(name)
    return f"{actual}: {source.where}"


def colours(name: str) -> int:
    """Colours of a pixel, C; BnbookError for an unknown name. Needs no file."""
    _check_name(name)
    return known_sets()[sources.FAMILIES.get(name, (name,))[0]]["shape"][0]


def is_kept(name: str) -> bool:
    """Whether the cache has the set, decoded and checked at an earlier time."""
    return cache.path_of(name).is_file()


def __getattr__(name: str) -> Any:
    if name == "Batches":  # needs torch, which takes seconds to import
        from bnbook.data.batches import Batches

        return Batches
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _check_name(name: str) -> None:
    if name not in NAMES:
        raise BnbookError(
            f"unknown data set {name!r}; expected one of {', '.join(NAMES)}; choose one of these"
        )


def _decoded(name: str) -> tuple[DataIdentity, dict[str, Any], Arrays]:
    _check_name(name)
    if name in STANDINS:
        from bnbook.data import standins

        make = getattr(standins, name.removesuffix("-standin"))
        return _check(name, make(), f"{name} as it is made here")
    actual, source = sources.find(name)
    try:
        fingerprint = source.fingerprint()
        kept = cache.fetch(actual, fingerprint)
        if kept is not None and known_identity(actual) in (None, kept[0]):
            return kept
        arrays = source.read()
    except OSError as error:
        raise BnbookError(
            f"cannot read {error.filename or source.where}: {error.strerror or error}; "
            "expected readable files; mend their permissions or copy them again"
        ) from None
    decoded = _check(actual, arrays, source.where)
    cache.store(actual, fingerprint, *decoded)
    return decoded


def _check(name: str, arrays: Arrays, where: str) -> tuple[DataIdentity, dict[str, Any], Arrays]:
    """A decoded set in canonical order and its identity; BnbookError where it is not what it is called."""
    known = known_sets()[name]
    found = tuple(len(labels) for labels in (arrays.train_labels, arrays.test_labels))
    expected = (known["train"], known["test"])
    if found != expected:
        raise BnbookError(
            f"{where} holds {found[0]} training and {found[1]} test images; {name} has {expected[0]} and "
            f"{expected[1]}; copy it again"
        )
    description = describe(arrays, len(known["classes"]))
    if known["sha256"] not in (None, description.sha256):
        raise BnbookError(_altered(name, where, description, known))
    shape = tuple(int(size) for size in arrays.train_images.shape[1:])
    identity = DataIdentity(name, *found, shape, description.sha256, known["exact"])
    return identity, pixel_statistics(arrays.train_images), description.arrays


def _altered(name: str, where: str, description: Any, known: dict[str, Any]) -> str:
    groups = differing_groups(description, known)
    shown = f" in {', '.join(groups[:3])}{f' and {len(groups) - 3} more classes' if len(groups) > 3 else ''}"
    message = f"{where} is altered{shown if groups else ''}: SHA-256 {description.sha256[:16]}…, expected "
    message += f"{known['sha256'][:16]}… for {name}; copy it again"
    if name.endswith("jpeg75"):
        message += _decoder_hint()
    return message


def _decoder_hint() -> str:
    """JPEG decoders differ by a grey level here and there; the known hash is of libjpeg-turbo's pixels."""
    from PIL import features

    if features.check_feature("libjpeg_turbo"):
        return ""
    return ", or install a Pillow built with libjpeg-turbo (this one has another JPEG decoder)"
