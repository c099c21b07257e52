"""The header of a results file: what a run was made from, and how."""

from __future__ import annotations

import datetime
import hashlib
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bnbook import atomic, claims, fingerprint, paths, results
from bnbook.claims import judging, locks
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import merge, verdicts
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.pipeline.gate import leaks
from bnbook.texts import read_text

PACKAGES = ("torch", "torchvision", "numpy", "scipy", "scikit-learn", "papermill", "jupytext", "matplotlib")


def made_from(chapter: Chapter, began: dict[str, str], package: Path) -> dict[str, Any]:
    """Fingerprint, claims, head of the locks and commit as they are before a run starts, which imports the
    package from the folder `package`."""
    listed, head = claims.chapter_claims(chapter.name), locks.read().head(chapter.name)
    return {"fingerprint": began, "claims": listed, "locks": head, **commit(package)}


def complete(work: Evidence, values: dict, default: bool, made: dict, seconds: float, peak_mib: int) -> None:
    """Scrub the notebook and complete the results file's header."""
    import nbformat

    from bnbook.pipeline.handout import handout  # which asks the gate

    notebook = nbformat.read(work.notebook_path, as_version=4)
    merge.scrub(notebook)
    leaks.scrub(notebook)
    nbformat.write(notebook, work.notebook_path)
    recorded = results.read(work.results_path) if work.results_path.is_file() else results.Results()
    run, chapter = recorded.header, work.chapter
    rows, device, store = run.get("data", []), run.get("device", {}), run.get("store", {})
    other = judging.other_settings(values, chapter.parameters(values["profile"]), rows)
    seeds = sorted({seed for entry in recorded.entries.values() for seed in entry["seeds"]})
    recorded.header = {
        "chapter": chapter.name,
        "profile": values["profile"],
        "parameters": values,
        "default_parameters": default,
        **({"other_settings": other} if other else {}),
        "fingerprint": made["fingerprint"] | {"data": fingerprint.data_digest(rows)},
        "claims": {claim.id: claim.test_hash for claim in made["claims"]},
        "locks": made["locks"],
        "judged": verdicts.as_recorded(made["claims"], recorded, values["profile"], chapter.exact),
        "files": {},
        "data": rows,
        "provenance": {
            "commit": made["commit"],
            "dirty": made["dirty"],
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "device": device.get("name", "cpu"),
            "threads": device.get("threads", 1),
            "seeds": seeds,
            "seconds": round(seconds, 1),
            "store": store,
            "peak_memory_mib": peak_mib,
            "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "versions": {name: version(name) for name in PACKAGES},
        },
    }
    atomic.write_json(work.results_path, results.as_content(recorded))
    with suppress(BnbookError, StopIteration):  # of a chapter that failed; why is said where it is judged
        handout.finish(Evidence(chapter, work.folder))
    recorded.header["files"] = work.files()
    recorded.header["content"] = content_digest(recorded)
    atomic.write_json(work.results_path, results.as_content(recorded))


def not_as_locked(header: Mapping[str, Any]) -> str:
    """Versions of a run that are not those of requirements.lock, in words; empty where all are."""
    lock = paths.repository_root() / "requirements.lock"
    text = read_text(lock, lock.name) if lock.is_file() else ""
    pins = re.findall(r"^([\w.-]+)==([^\s;+]+)", text, flags=re.M)
    versions = header.get("provenance", {}).get("versions", {})
    words = []
    for name, then in versions.items():
        locked = [pin for package, pin in pins if package == name]
        if locked and then.split("+")[0] not in locked:
            words.append(f"{name} {then} (locked: {', '.join(locked)})")
    return ", ".join(words)


def content_digest(recorded: results.Results) -> str:
    """SHA-256 of everything in a results file but this hash itself: a number edited by hand shows."""
    return fingerprint.digest({k: v for k, v in results.as_content(recorded).items() if k != "content"})


def commit(package: Path | None = None) -> dict[str, Any]:
    """The commit checked out, and whether what runs differs from it: the files of `package` (by default those
    of the checkout), the chapters and the lock. Asked of the files' content, not of git's own notes of it."""
    root = paths.repository_root()
    package = package or root / "src" / "bnbook"

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, encoding="utf-8")
        return done.stdout if done.returncode == 0 else ""

    if not shutil.which("git") or not (head := git("rev-parse", "HEAD").strip()):
        return {"commit": "unknown", "dirty": True}
    lines = f"book/{locks.NAME}"  # publishing adds to it, which is no other code; a lock is to be committed
    listed = git("ls-tree", "-r", "-z", "HEAD", "--", "src/bnbook", "book", "requirements.lock")
    held = {
        name: words.split()[2]
        for words, _, name in (row.partition("\t") for row in listed.split("\0"))
        if name
    }
    owned = any(name.startswith("src/") for name in held)  # a book may stand without the package's sources
    there = {f"src/bnbook/{path.relative_to(package).as_posix()}": path for path in _files(package) if owned}
    there |= {path.relative_to(root).as_posix(): path for path in _files(root / "book")}
    there |= {"requirements.lock": root / "requirements.lock"} if "requirements.lock" in held else {}
    changed = held.keys() != there.keys() or any(
        not _is_blob(path, held[name]) for name, path in there.items() if name != lines
    )
    return {"commit": head, "dirty": changed or locks.has_new_tests(git("show", f"HEAD:{lines}").strip())}


def _files(folder: Path) -> list[Path]:
    """What of a folder can measure or is a chapter's: no caches, nothing hidden."""
    found = (path for path in folder.rglob("*") if path.is_file())
    inner = ((path, path.relative_to(folder).parts) for path in found)
    return [
        path for path, parts in inner if "__pycache__" not in parts and not any(p[0] == "." for p in parts)
    ]


def _is_blob(path: Path, name: str) -> bool:
    """Whether a file is what git stores under this hash, in this system's line ends or in git's own."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    kind = hashlib.sha1 if len(name) == 40 else hashlib.sha256
    forms = (content, content.replace(b"\r\n", b"\n"))
    return any(kind(b"blob %d\0" % len(form) + form).hexdigest() == name for form in forms)
