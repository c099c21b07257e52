"""`bnbook bundle DIR`: sources, wheels, data and a script in one folder."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from bnbook import atomic, data, paths
from bnbook.bundle import vouching
from bnbook.bundle.script import RUN
from bnbook.data import sources
from bnbook.data.cache import cache_folder
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.gate import header

LISTED = "wheels.txt"


def make(
    target: Path,
    chapters: Sequence[Chapter],
    profile: str,
    *,
    wheels: bool = True,
    without: Iterable[str] = (),
    index: str | None = None,
) -> Path:
    """Write the bundle; whole or not at all.

    source/: the commit that is checked out; wheels/: requirements.lock for this platform and Python, without
    the packages that the other machine has; data/: the sets that the chapters need at the profile; run.sh.
    BnbookError for a folder that is there already, uncommitted code, a wheel that cannot be had.
    """
    target = Path(target)
    if target.exists():
        raise BnbookError(f"{target} is there already; name a folder that is not")
    made = header.commit()
    if made["dirty"]:
        raise BnbookError("the code has uncommitted changes, or git is missing; commit them first")
    scratch = target.with_name(f".{target.name}.making")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        _sources(scratch / "source", made["commit"])
        (scratch / "wheels").mkdir()
        if wheels:
            _wheels(scratch / "wheels", set(without), index)
        _data(scratch / "data", chapters, profile)
        atomic.write_text(scratch / "run.sh", RUN)
        (scratch / "run.sh").chmod(0o755)
        scratch.rename(target)
    except OSError as error:
        raise BnbookError(
            f"cannot write {target}: {error.strerror or error}; nothing is left behind"
        ) from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _sources(folder: Path, commit: str) -> None:
    """The commit's files, and a note of what they were."""
    root = paths.repository_root()
    packed = subprocess.run(
        ["git", "-C", str(root), "archive", commit], capture_output=True, check=True
    ).stdout
    folder.mkdir()
    unpacking = subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=False)
    if unpacking.returncode:
        raise BnbookError("tar cannot unpack the sources; expected a working tar")
    vouching.write(folder, commit)


def _wheels(folder: Path, without: set[str], index: str | None) -> None:
    """The lock's packages for this platform; torch brings its GPU libraries, which the lock leaves out."""
    lock = (paths.repository_root() / "requirements.lock").read_text("utf-8").splitlines()
    pins = {_name(line): line for line in lock if line.strip() and not line.startswith("#")}
    if unknown := without - set(pins):
        raise BnbookError(f"requirements.lock has no {', '.join(sorted(unknown))}; nothing to leave out")
    kept = {name: pin for name, pin in pins.items() if name not in without}
    torch = [pin for name, pin in kept.items() if name in ("torch", "torchvision")]
    rest = [pin for name, pin in kept.items() if name not in ("torch", "torchvision")]
    _download(folder, torch, ["--index-url", index] if index else [])
    _download(folder, rest, ["--no-deps"])
    atomic.write_text(folder / LISTED, "\n".join(kept.values()) + "\n")


def _name(pin: str) -> str:
    return re.split(r"[=\[; ]", pin, maxsplit=1)[0]


def _download(folder: Path, pins: list[str], more: list[str]) -> None:
    wanted = folder / "wanted.txt"
    wanted.write_text("\n".join(pins) + "\n", encoding="utf-8")
    words = [sys.executable, "-m", "pip", "download", "-q", "--only-binary", ":all:", "-d", str(folder)]
    if pins and subprocess.run([*words, *more, "-r", str(wanted)]).returncode:
        raise BnbookError("pip cannot have the wheels (see above); expected a network here, once")
    wanted.unlink()


def _data(folder: Path, chapters: Sequence[Chapter], profile: str) -> None:
    """The files of the sets, in a layout that BNBOOK_DATA understands, as one tar: tens of thousands of small
    images travel badly."""
    folder.mkdir()
    named = {str(value) for chapter in chapters for value in _sets(chapter, profile)} - set(data.STANDINS)
    places: dict[str, Path] = {}
    for name in sorted(named):
        data.prepare(name)  # downloads what is missing
        _, source = sources.find(name)
        where = cache_folder() / "downloads" if source.where == "download" else sources.data_folder()
        own = Path(source.where) if source.where != "download" else _downloaded(where, name)
        places[own.relative_to(where).as_posix()] = own
    if places:
        with tarfile.open(
            folder / "data.tar", "w", dereference=True
        ) as tar:  # a link would lead nowhere there
            for inside, path in places.items():
                tar.add(path, inside)


def _downloaded(where: Path, name: str) -> Path:
    return where / ("MNIST/raw" if name.startswith("mnist") else "cifar-10-python.tar.gz")


def _sets(chapter: Chapter, profile: str) -> Iterable[str]:
    """The parameters that name a data set."""
    values = chapter.parameters(profile) if chapter.has(profile) else {}
    flat = [each for value in values.values() for each in (value if isinstance(value, list) else [value])]
    return [each for each in flat if isinstance(each, str) and each in data.NAMES]
