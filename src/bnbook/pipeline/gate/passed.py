"""What pages and lists show of a chapter: the run that passes the gate, whose answers are kept by content."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import bnbook
from bnbook import atomic, paths
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence, fresh_run, published
from bnbook.pipeline.gate import gate
from bnbook.profiles import PUBLISHED


def passed_run(chapter: Chapter, profile: str | None = None) -> Evidence | None:
    """What every page and list shows of a chapter: the fresh run at `profile`, or with None the committed
    evidence at the highest profile that passes; None where there is nothing to show.

    Raises BnbookError for a fresh run that does not pass.
    """
    if profile is None:
        candidates = (published(chapter, each) for each in PUBLISHED)
        return next((each for each in candidates if each.exists and not _remembered(each)), None)
    run = fresh_run(chapter, profile)
    if not run.exists:
        return None
    if found := gate.problems(run):
        lines = "; ".join(found[:3])
        raise BnbookError(
            f"the {profile} run of {chapter.name} does not pass the gate: {lines}; run it again"
        )
    return run


def _remembered(evidence: Evidence) -> list[str]:
    """What the gate says of committed evidence, asked again only when something that it reads has changed."""
    memory = paths.runs_folder() / ".gate.json"
    name, key = f"{evidence.folder.name}/{evidence.chapter.name}", _key(evidence)
    try:
        known = dict(json.loads(memory.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        known = {}
    if isinstance(last := known.get(name), dict) and last.get("key") == key:
        return list(last["problems"])
    found = gate.problems(evidence)
    with suppress(OSError):  # else there is nowhere to remember it
        atomic.write_json(memory, known | {name: {"key": key, "problems": found}})
    return found


def _key(evidence: Evidence) -> str:
    """SHA-256 of all that the gate reads: run, chapter, claims, settings, package, the machine's paths."""
    beside = evidence.chapter.path.parent
    own = [*beside.glob(f"{evidence.chapter.path.stem}.*"), *beside.glob("_*")]
    run = [evidence.notebook_path, evidence.results_path, *evidence.figures_folder.rglob("*")]
    machine = (str(paths.repository_root()), os.path.expanduser("~"), sys.version)
    return _digest([*sorted(own), *sorted(run)], f"{_package()} {machine}")


@cache
def _package() -> str:
    folder = Path(bnbook.__file__).parent
    return _digest(sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".yml")), "")


def _digest(files: list[Path], more: str) -> str:
    found = hashlib.sha256(more.encode())
    for path in files:
        content = path.read_bytes() if path.is_file() else b""
        found.update(f"{path} {len(content)} ".encode() + content)
    return found.hexdigest()
