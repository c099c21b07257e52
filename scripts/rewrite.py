"""Rewrites published notebooks that call things by names that are gone, so that papermill runs them again.

python scripts/rewrite.py [PART/CHAPTER …]

Moving and renaming make no run stale, but leave imports that fail in the notebooks of published runs. Where the gate
passes a run, its cells measure what the chapter's do: the notebook gets their sources and keeps its outputs.
`executed/rewritten.json` tells the gate which file the run itself wrote.
"""

from __future__ import annotations

import hashlib
import sys

import bnbook.book  # noqa: F401 (the press is told of this book)
from bookpress import atomic, paths
from bookpress.pipeline import gate, handout
from bookpress.pipeline.chapter_runs import Evidence, ran_cells, rewritten
from bookpress.pipeline.chapters import discover, is_parameters, select
from bookpress.pipeline.publishing import kept_runs


def is_old(run: Evidence) -> bool:
    """Whether the notebook's own cells read otherwise than the chapter's."""
    ran = [cell.source for cell in ran_cells(run.notebook) if not is_parameters(cell)]
    return ran != run.chapter.code_cells


def rewrite(run: Evidence) -> None:
    """Give the notebook the chapter's cells, and note which file it was; AssertionError where the gate refuses it."""
    assert not gate.problems(run), f"{run.name} does not pass the gate"
    before = rewritten()
    wrote, outputs = run.files()[run.notebook_path.name], [cell.outputs for cell in ran_cells(run.notebook)]
    handout.finish(run)
    now = Evidence(run.chapter, run.folder)
    assert [cell.outputs for cell in ran_cells(now.notebook)] == outputs
    kept = {each: before[each] for each in before if each in _there()}
    sha256 = hashlib.sha256(run.notebook_path.read_bytes()).hexdigest()
    atomic.write_json(paths.rewritten(), kept | {sha256: wrote})


def _there() -> set[str]:
    found = paths.executed_folder().rglob("*.ipynb")
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


if __name__ == "__main__":
    chosen = select(sys.argv[1:]) if sys.argv[1:] else discover()
    for name, run in kept_runs(chosen).items():
        if is_old(run):
            rewrite(run)
            print(f"rewrote {name}")
