"""One manifest of the committed results, and what is made from it: codecheck.yml, the citation's dates."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from bnbook import __version__, atomic, paths
from bnbook.fingerprint import digest
from bnbook.pipeline.chapters.chapters import Chapter
from bnbook.pipeline.chapters.evidence import Evidence, published
from bnbook.profiles import PUBLISHED
from bnbook.texts import parse_yaml, read_text

CODECHECK, CITATION = "codecheck.yml", "CITATION.cff"


def manifest(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Every published run: from which source, with which parameters, data and packages, and what it left;
    and the trainings that runs keep; everything by SHA-256."""
    root = paths.repository_root()
    lock = _sha(root / "requirements.lock")
    runs = [_row(evidence, root) for evidence in _published(chapters)]
    kept = {f"trainings/{path.name}": _sha(path) for path in sorted(paths.trainings_folder().glob("*.npz"))}
    return {"schema": 1, "version": __version__, "lock": lock, "runs": runs, "trainings": kept}


def write(chapters: Sequence[Chapter], target: Path | str) -> list[Path]:
    """Write the manifest, and bring codecheck.yml and CITATION.cff up to it."""
    found, root = manifest(chapters), paths.repository_root()
    atomic.write_text(Path(target), json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    for name, text in derived(found, chapters).items():
        atomic.write_text(root / name, text)
    return [Path(target), *(root / name for name in (CODECHECK, CITATION))]


def derived(found: dict[str, Any], chapters: Sequence[Chapter]) -> dict[str, str]:
    """File name -> what it must hold for this manifest."""
    citation = read_text(paths.repository_root() / CITATION, CITATION)
    latest = max((run["date"] for run in found["runs"]), default="")
    citation = re.sub(r"^(version|date-released):.*\n", "", citation, flags=re.M)
    citation = citation.rstrip("\n") + f"\nversion: {found['version']}\n"
    citation += f"date-released: {latest}\n" if latest else ""
    about, titles = parse_yaml(citation, CITATION), {chapter.name: chapter.title for chapter in chapters}
    files = [
        {"file": f"executed/{name}", "comment": f"{titles[run['chapter']]} ({run['profile']} profile)"}
        for run in found["runs"]
        for name in run["files"]
    ]
    content = {
        "version": "https://codecheck.org.uk/spec/config/1.0/",
        "paper": {"title": about["title"], "authors": [{"name": each["name"]} for each in about["authors"]]},
        "manifest": files,
        "codechecker": [],
        "summary": "bnbook run CHAPTER --profile PROFILE repeats a chapter; bnbook check compares the rest.",
    }
    head = "# Made by `bnbook check --manifest FILE` from executed/; do not edit.\n"
    return {
        CODECHECK: head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120),
        CITATION: citation,
    }


def _published(chapters: Sequence[Chapter]) -> Iterator[Evidence]:
    held = (published(chapter, profile) for chapter in chapters for profile in PUBLISHED)
    return (evidence for evidence in held if evidence.exists)


def _row(evidence: Evidence, root: Path) -> dict[str, Any]:
    header, executed = evidence.results.header, paths.executed_folder()
    figures = [path for path in sorted(evidence.figures_folder.glob("*")) if path.is_file()]
    files = [evidence.results_path, evidence.notebook_path, *figures]
    source = paths.book_folder() / f"{evidence.chapter.name}.md"
    return {
        "chapter": evidence.chapter.name,
        "profile": evidence.profile,
        "source": {source.relative_to(root).as_posix(): _sha(source)},
        "code": {part: header["fingerprint"][part] for part in ("code", "package")},
        "parameters": digest(header["parameters"]),
        "data": {row["name"]: row["sha256"] for row in header["data"]},
        "commit": header["provenance"]["commit"],
        "date": header["provenance"]["date"],
        "versions": header["provenance"]["versions"],
        "files": {path.relative_to(executed).as_posix(): _sha(path) for path in files},
    }


def _sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
