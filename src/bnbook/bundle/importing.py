"""`bnbook import ARCHIVE`: what a bundle gave, checked and taken over."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bnbook import atomic, paths
from bnbook.bundle import archive
from bnbook.errors import BnbookError
from bnbook.profiles import PROFILES


@dataclass(frozen=True)
class Taken:
    """What was taken over, and what was not, with the reason."""

    chapters: tuple[str, ...]
    trainings: int
    known: int  # trainings that the store had already
    refused: tuple[str, ...]


def take(archives: Iterable[Path]) -> Taken:
    """Check every archive, then take over the chapters that pass the gate and the trainings that are what
    they are called.

    Nothing is taken before every archive has been read whole. A chapter goes into runs/PROFILE as its own run
    would, from where `bnbook publish` takes it; one that the gate refuses (other code, parameters, data)
    stays out and is named. BnbookError for an archive that is not whole or that another lock made.
    """
    read = [(Path(each), *archive.read(Path(each))) for each in archives]
    lock = hashlib.sha256((paths.repository_root() / "requirements.lock").read_bytes()).hexdigest()
    for path, manifest, _ in read:
        if manifest["profile"] not in PROFILES:
            raise BnbookError(
                f"{path.name} is of the profile {manifest['profile']!r}; expected one of {PROFILES}"
            )
        if manifest["lock"] != lock:
            raise BnbookError(
                f"{path.name} was made with another requirements.lock than this book's; make the bundle anew "
                f"from this commit, or import into a checkout of {manifest['commit'][:10]}"
            )
    from bnbook.runs import store  # torch comes with it: not before the archives are known to be good

    taken, refused, trainings, known = [], [], 0, 0
    for path, manifest, content in read:
        for name, problems in _chapters(manifest["profile"], content):
            refused.append(f"{path.name}: {name}: {'; '.join(problems)}") if problems else taken.append(name)
        for name, each in content.items():
            if not name.startswith("store/"):
                continue
            if problem := store.problem(Path(name).stem, each):
                refused.append(f"{path.name}: {name}: {problem}")
            elif (target := store.path_of(Path(name).stem)).is_file():
                known += 1
            else:
                store.write_bytes(target, each)
                trainings += 1
    return Taken(tuple(taken), trainings, known, tuple(refused))


def _chapters(profile: str, content: dict[str, bytes]) -> Iterable[tuple[str, list[str]]]:
    """Each chapter in the archive, and what the gate says of it; moved where it says nothing."""
    from bnbook.pipeline.chapters import chapters
    from bnbook.pipeline.chapters.evidence import Evidence, fresh_run, move
    from bnbook.pipeline.gate import gate

    staging = paths.runs_folder() / ".importing" / profile
    shutil.rmtree(staging, ignore_errors=True)
    try:
        for name, each in content.items():
            if name.startswith("runs/"):
                atomic.write_bytes(staging / name.removeprefix("runs/"), each)
        for chapter in chapters.discover():
            run = Evidence(chapter, staging)
            if run.results_path.is_file():
                run.figures_folder.mkdir(exist_ok=True)
                problems = gate.problems(run) if run.exists else ["the notebook is missing"]
                if not problems:
                    move(run, fresh_run(chapter, profile))
                yield chapter.name, problems
    finally:
        shutil.rmtree(staging.parent, ignore_errors=True)
