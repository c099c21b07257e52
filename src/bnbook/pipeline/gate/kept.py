"""Trainings that are published with a chapter: who runs it again has them without the hours."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from bnbook import atomic, paths, results
from bnbook.data import STANDINS
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter, discover
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.profiles import PUBLISHED
from bnbook.runs import kinds, store


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


def take_finished(chapter: Chapter) -> list[str]:
    """Copy what is finished of a run that is not, and say which: who goes on with it elsewhere makes only the
    rest. No verdict rests on them before the whole run is published.

    BnbookError where the store has none of this chapter, made with today's code and on real data.
    """
    there, taken = {path.stem for path in _files()}, []
    for path in sorted(paths.store_folder().glob("*.npz")):
        found = store.kept(path.stem)
        if found and path.stem not in there and not _strange(found[1], {chapter.name}):
            atomic.write_bytes(paths.trainings_folder() / path.name, path.read_bytes())
            taken.append(path.stem)
    if not taken:
        raise BnbookError(
            f"the results store has no finished training of {chapter.name} that executed/trainings/ lacks, "
            f"made with this code and on real data; run it first: bnbook run {chapter.name} --profile PROFILE"
        )
    return taken


def tidy(run: Evidence) -> None:
    """After the publication of `run`: remove what no published run keeps any more and no run that is under
    way waits for; nothing while a published run cannot be read. A chapter whose run keeps none has used those
    that waited for it."""
    if unread():
        return
    over = set() if _named(run.results) else {run.chapter.name}
    waits = {name for name, chapter in _waiting().items() if chapter not in over}
    for path in _files() - {paths.trainings_folder() / f"{name}.npz" for name in _wanted() | waits}:
        path.unlink()


def waiting() -> list[str]:
    """How many trainings of which chapter wait for the rest of their run, one line each; none while a
    published run cannot be read."""
    if unread():
        return []
    counts = Counter(_waiting().values())
    return [
        f"{count} training{'s' * (count > 1)} of {name} wait{'s' * (count == 1)} for the rest of the run: "
        "no published run keeps them yet"
        for name, count in sorted(counts.items())
    ]


def problems() -> list[str]:
    """Trainings that are missing, that neither a published run keeps nor one under way waits for, or that are
    not what their names say; nothing but the published runs that cannot be read, while there are any."""
    if found := unread():
        return [f"which of them are kept cannot be told: {line}" for line in found]
    wanted, there, chapters = _wanted(), {path.stem: path for path in _files()}, _names()
    found = [
        f"trainings/{name}.npz is missing; publish its chapter again" for name in sorted(wanted - set(there))
    ]
    for name, path in sorted(there.items()):
        wrong = store.problem(name, path.read_bytes())
        wrong = f"is {wrong}" if wrong else ""
        if name not in wanted and (wrong := wrong or _strange(store.kept(name)[1], chapters)):
            found.append(f"trainings/{path.name} belongs to no published run and {wrong}; remove it")
        elif wrong:
            found.append(f"trainings/{path.name} {wrong}; publish its chapter again")
    return found


def _waiting() -> dict[str, str]:
    """Trainings that no published run keeps but that one under way can use, and their chapters."""
    orphans = {path.stem for path in _files()} - _wanted()
    about = {name: found[1] for name in orphans if (found := store.kept(name))}
    chapters = _names() if about else set()
    return {name: each["chapter"] for name, each in about.items() if not _strange(each, chapters)}


def _strange(about: dict[str, Any], chapters: set[str]) -> str:
    """Why no run of these chapters can use a training; empty where one can."""
    if about.get("chapter") not in chapters:
        return "is of no chapter"
    if about.get("code") not in _codes():
        return "was made with other code"
    if any(isinstance(each, dict) and each.get("data") in STANDINS for each in about.values()):
        return "was made on a stand-in for data"
    return ""


def _names() -> set[str]:
    return {chapter.name for chapter in discover()}


@cache
def _codes() -> set[str]:
    """What today's code of every kind of training is called."""
    return {kinds.edition(kind, None)["code"] for kind in kinds.TRAINS}


def _files() -> set[Path]:
    return set(paths.trainings_folder().glob("*.npz"))


def unread() -> list[str]:
    """Why published results cannot be read, one line a file."""
    found = []
    for path in _published():
        try:
            results.read(path)
        except BnbookError as error:
            found.append(str(error))
    return found


def _wanted() -> set[str]:
    """Names of the trainings that the published runs keep."""
    return {name for path in _published() for name in _named(results.read(path))}


def _published() -> list[Path]:
    folders = [paths.executed_folder() / profile for profile in PUBLISHED]
    return [path for folder in folders for path in sorted(folder.glob("*/*.json"))]


def _named(recorded: results.Results) -> list[str]:
    return recorded.header.get("provenance", {}).get("store", {}).get("kept", [])
