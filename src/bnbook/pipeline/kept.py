"""Trainings that are published with a chapter: who runs it again has them without the hours."""

from __future__ import annotations

from pathlib import Path

from bnbook import atomic, paths, results
from bnbook.errors import BnbookError
from bnbook.pipeline.evidence import Evidence
from bnbook.profiles import PUBLISHED
from bnbook.runs import store


def take_over(run: Evidence) -> None:
    """Copy the trainings that a run keeps into executed/trainings/, each named by all that it rests on.

    BnbookError for one that the store has no longer, or that is not what its name says.
    """
    for name in _named(run.results):
        target = paths.trainings_folder() / f"{name}.npz"
        if target.is_file():
            continue
        path = store.path_of(name)
        wrong = store.problem(name, path.read_bytes()) if path.is_file() else "not in the results store"
        if wrong:
            raise BnbookError(f"training {name[:12]} of {run.chapter.name} is {wrong}; run the chapter again")
        atomic.write_bytes(target, path.read_bytes())


def tidy() -> None:
    """Remove what no published run keeps any more."""
    for path in _files() - {paths.trainings_folder() / f"{name}.npz" for name in _wanted()}:
        path.unlink()


def problems() -> list[str]:
    """Trainings that are missing, that no published run keeps, or that are not what their names say."""
    wanted, there = _wanted(), {path.stem: path for path in _files()}
    found = [
        f"trainings/{name}.npz is missing; publish its chapter again" for name in sorted(wanted - set(there))
    ]
    for name, path in sorted(there.items()):
        if name not in wanted:
            found.append(f"trainings/{path.name} belongs to no published run; remove it")
        elif wrong := store.problem(name, path.read_bytes()):
            found.append(f"trainings/{path.name} is {wrong}; publish its chapter again")
    return found


def _files() -> set[Path]:
    return set(paths.trainings_folder().glob("*.npz"))


def _wanted() -> set[str]:
    """Names of the trainings that the published runs keep."""
    folders = [paths.executed_folder() / profile for profile in PUBLISHED]
    return {
        name for folder in folders for path in folder.glob("*/*.json") for name in _named(results.read(path))
    }


def _named(recorded: results.Results) -> list[str]:
    return recorded.header.get("provenance", {}).get("store", {}).get("kept", [])
