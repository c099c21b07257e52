"""The manifest names every committed file by its hash, and what is made from it is up to date."""

from __future__ import annotations

import hashlib
import json

import yaml

from bnbook import paths
from bnbook.pipeline.chapters import chapters
from bnbook.pipeline.gate import manifest


def test_every_committed_file_stands_in_it_once():
    found = manifest.manifest(chapters.discover())
    listed = {name: sha for run in found["runs"] for name, sha in run["files"].items()} | found["trainings"]
    executed = paths.executed_folder()
    there = {path.relative_to(executed).as_posix(): path for path in executed.rglob("*") if path.is_file()}
    assert set(there) == set(listed)
    for name in sorted(there)[::7]:
        assert hashlib.sha256(there[name].read_bytes()).hexdigest() == listed[name]
    for run in found["runs"]:
        ((source, sha),) = run["source"].items()
        assert hashlib.sha256((paths.repository_root() / source).read_bytes()).hexdigest() == sha


def test_what_is_made_from_it_is_up_to_date():
    known = chapters.discover()
    for name, text in manifest.derived(manifest.manifest(known), known).items():
        held = (paths.repository_root() / name).read_text(encoding="utf-8")
        assert held == text, f"{name} is out of date: bnbook check --manifest FILE writes it anew"


def test_codecheck_lists_files_that_are_there():
    root = paths.repository_root()
    content = yaml.safe_load((root / manifest.CODECHECK).read_text(encoding="utf-8"))
    files = [row["file"] for row in content["manifest"]]
    assert files and len(set(files)) == len(files) and all((root / name).is_file() for name in files)
    assert content["paper"]["authors"] and all(row["comment"] for row in content["manifest"])
    json.dumps(content)
