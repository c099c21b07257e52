"""What this machine has: Python, torch, device, memory, disk, data."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from bookpress import paths
from bookpress.book import book
from bookpress.errors import PressError, reason
from bookpress.pipeline import gate

WANTED = ("jupyter-book", "jupytext", "papermill", "torch", "torchvision", "numpy", "matplotlib")
NEEDED_GIB = 1
NOT_HERE = "not here; downloaded and checked when a chapter asks for it"

#: What a run or a build writes to, and the variable that names another place.
FOLDERS = {
    "runs": ("BNBOOK_RUNS", paths.runs_folder),
    "store": ("BNBOOK_STORE", paths.store_folder),
    "site": ("BNBOOK_BUILD", paths.build_folder),
    "cache": ("BNBOOK_CACHE", paths.cache_folder),
}

Row = tuple[str, str, bool]  # of what, in words, and whether the smoke profile has what it needs


def report() -> tuple[list[str], bool]:
    """The lines of `doctor`, and whether everything that the smoke profile needs is there."""
    rows = [
        row
        for check in (_python, _packages, _device, _memory, _book, _disk, _folders, _data)
        for row in _tried(check)
    ]
    lines = [f"{'ok ' if good else 'BAD'}  {name:<12} {words}" for name, words, good in rows]
    return lines, all(good for _, _, good in rows)


def _tried(check: Callable[[], Iterator[Row]]) -> list[Row]:
    """The rows of a check; where it fails, as for a package that is missing or broken, one that says so."""
    try:
        return list(check())
    except Exception as error:
        words = str(error).partition("\n")[0]
        return [(check.__name__.strip("_"), f"cannot be told: {type(error).__name__}: {words}", False)]


def _python() -> Iterator[Row]:
    good = (3, 11) <= sys.version_info[:2] <= (3, 13)
    yield "Python", f"{platform.python_version()} on {platform.system()} (3.11 to 3.13 expected)", good


def _packages() -> Iterator[Row]:
    for name in WANTED:
        try:
            yield name, version(name), True
        except PackageNotFoundError:
            yield name, "not installed; run make book, or pip install -r requirements.lock", False
    yield from _operators()


def _operators() -> Iterator[Row]:
    """torchvision's own operators, loaded without the rest of it: that takes seconds. They do not load where
    torch and torchvision come from different builds."""
    try:
        import torch

        folder = Path(find_spec("torchvision").origin).parent
        for library in [*folder.glob("_C.so"), *folder.glob("_C.pyd")]:
            torch.ops.load_library(str(library))
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        words = str(error).splitlines()[0]
        yield "torchvision", f"does not fit torch ({words}); install both from the same index", False


def _device() -> Iterator[Row]:
    import torch

    words = f"no GPU; CPU with {os.cpu_count()} cores, torch uses {torch.get_num_threads()} threads"
    if torch.cuda.is_available():
        gibibytes = torch.cuda.get_device_properties(0).total_memory / 2**30
        words = f"{torch.cuda.get_device_name(0)}, {gibibytes:.0f} GiB"
    yield "device", words, True
    yield "kernels", gate.kernels(), True


def _memory() -> Iterator[Row]:
    import psutil

    free = psutil.virtual_memory().available / 2**30
    yield "memory", f"{free:.1f} GiB free (smoke needs 4, laptop 8)", free >= 2


def _book() -> Iterator[Row]:
    """Without a book nothing is wrong: the instruments and downloaded notebooks need none."""
    try:
        words = str(paths.repository_root())
    except PressError:
        words = "none here: measure and downloaded notebooks work; the rest needs the book's repository"
    yield "book", words, True


def _disk() -> Iterator[Row]:
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    yield "disk", f"{free:.1f} GiB free here ({NEEDED_GIB} needed for runs and site)", free >= NEEDED_GIB


def _folders() -> Iterator[Row]:
    """Each takes a file, or the folder does that is to hold it."""
    for name, (variable, place) in FOLDERS.items():
        with suppress(PressError):  # no book, no runs
            folder = place()
            there = next(each for each in (folder, *folder.parents) if each.exists())  # no folder, perhaps
            try:
                with tempfile.TemporaryFile(dir=there) as file:
                    file.write(b"x")
                yield name, f"{folder} can be written", True
            except OSError as error:
                yield name, f"{folder} cannot be written ({reason(error)}); set {variable} to another", False


def _data() -> Iterator[Row]:
    """The sets that can be loaded, which are read; missing ones are no fault, the smoke profile has its own."""
    data, named, sets = book().data, os.environ.get("BNBOOK_DATA"), list(book().data_names)
    if named and not Path(named).expanduser().is_dir():
        yield "data", f"BNBOOK_DATA is {named}, which is no folder; expected the one with the data", False
        return
    words = "set" if named else "not set; sets are downloaded when a chapter asks"
    yield "data", f"BNBOOK_DATA is {words}", True
    for name in sets:
        try:
            words = data.whereabouts(name)
            if away := words.endswith(": download"):  # what is kept of one is tested whenever it is read
                words = "downloaded before, in the cache" if data.is_kept(name) else NOT_HERE
        except PressError as error:
            yield name, f"not found: {error}", not named or name != sets[0]  # the one to have
            continue
        try:
            if not away:
                data.prepare(name)
            yield name, words, True
        except PressError as error:
            yield name, str(error), False
