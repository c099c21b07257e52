"""What the fingerprints of evidence from before `bookpress.stamp` are called now: writes executed/stamps.json.

    python scripts/stamps.py [COMMIT …]

Until 28 November 2026 a run was stamped in another way (`bookpress.fingerprint`, which the history keeps). The code of
a COMMIT, by default of the last that had it and of the runs that no line names yet, is stamped both ways; what the
old one gives there stands in runs or locks, and gets the name that the present one gives to the same code. Nothing
is written for a run whose code no commit has; what is written already stays.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import bnbook.book  # noqa: F401 (the press is told of this book)
from bookpress import atomic, paths, stamp
from bookpress.claims import locks

FORMER = "src/bookpress/fingerprint"
#: In a checkout of a commit: its chapters' cells and what its own press stamps them, and its kinds of training.
THEN = """
import json, bnbook.book
from bookpress.fingerprint import chapter_fingerprint, code_of
from bookpress.pipeline.chapters import discover
from bnbook.trainings import LOADS, TRAINS
rows = {c.name: [c.code_cells, chapter_fingerprint(c.code_cells, {}, [])] for c in discover()}
kinds = [[[kind, way, *last], code_of(kind, way, last=tuple(last))] for kind, way in TRAINS.items() for last in ([], [LOADS])]
print(json.dumps([rows, kinds]))
"""


def git(*words: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(paths.repository_root()), *words], check=True, capture_output=True
    ).stdout


def headers() -> list[dict]:
    """Of every run that is here, published or not, and of every draw."""
    places = [*paths.executed_folder().glob("*/*/*.json"), *paths.runs_folder().glob("*/*/*.json")]
    found = [json.loads(path.read_bytes()) for path in places]
    drawn = [
        json.loads(path.read_bytes())["draws"] for path in paths.executed_folder().glob("draws/*/*/*.json")
    ]
    return [*found, *(draw["header"] for draws in drawn for draw in draws)]


def both(commit: str) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """What each chapter of a commit is called by the old way -> its hashes by the present one; of its trainings what
    their code is called now -> then."""
    with tempfile.TemporaryDirectory() as folder:
        held = git("archive", commit, "src", "book", "_config.yml", "_toc.yml")
        with tarfile.open(fileobj=io.BytesIO(held)) as packed:
            packed.extractall(folder, filter="data")
        place = {"PYTHONPATH": f"{folder}/src", "BNBOOK_ROOT": folder, "PATH": ""}
        said = subprocess.run([sys.executable, "-c", THEN], env=place, check=True, capture_output=True).stdout
        rows, kinds = json.loads(said)
        code = stamp.Code(Path(folder) / "src")
        now = {stamp.measure(then): stamp.of_chapter(cells, {}, [], code) for cells, then in rows.values()}
        chapters = {name: {part: each[part] for part in ("code", "package")} for name, each in now.items()}
        return chapters, {stamp.code_of(names, code): then for names, then in kinds}


def main(commits: list[str]) -> None:
    path = paths.executed_folder() / stamp.FROM_BEFORE
    table = json.loads(path.read_bytes()) if path.is_file() else {}
    made = {stamp.measure(each["fingerprint"]): each["provenance"]["commit"] for each in headers()}
    wanted = {*made, *(line["measure"] for line in locks.read().lines if line.tests)}
    if not commits:
        gone = git("log", "-1", "--format=%H^", "--diff-filter=D", "--", FORMER).decode().split()
        commits = [*gone, *dict.fromkeys(commit for name, commit in made.items() if name not in table)]
    kept = {
        json.loads(str(file["meta"]))["code"] for file in map(_load, paths.trainings_folder().glob("*.npz"))
    }
    for commit in commits:
        try:
            git("cat-file", "-e", f"{commit}:{FORMER}/__init__.py")
        except subprocess.CalledProcessError:  # stamped by the present way, or not in this clone
            continue
        chapters, trainings = both(commit)
        table = {name: hashes for name, hashes in chapters.items() if name in wanted} | table
        print(
            f"{commit[:10]}: {len(chapters.keys() & wanted)} of {len(chapters)} chapters are named by runs or locks"
        )
        for now, then in trainings.items():
            if then in kept:
                print(f'    ALIASES of bnbook.trainings: "{now[:16]}": "{then}"')
    atomic.write_text(path, json.dumps(table, indent=0, sort_keys=True) + "\n")


def _load(path: Path):
    import numpy as np

    return np.load(path)


if __name__ == "__main__":
    main(sys.argv[1:])
