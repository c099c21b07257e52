"""The gate: what a run must be before its numbers may be shown."""

from __future__ import annotations

import re
from collections.abc import Callable

from bnbook.errors import BnbookError
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.pipeline.gate import checks, leaks
from bnbook.pipeline.gate.header import content_digest

MEBIBYTE = 2**20


def problems(evidence: Evidence, *, fresh: bool = False) -> list[str]:
    """Everything that forbids showing this run, one line each; empty for a run that passed.

    `fresh`: the run has just ended, so its hashes are its own and only its content is judged.
    """
    try:
        evidence.read()
    except BnbookError as error:
        return [str(error)]
    wanted: list[Callable[[Evidence], list[str]]] = [
        checks.cells,
        checks.figures,
        checks.required_results,
        checks.seeds,
        leaks.local_paths,
        checks.data_identity,
        checks.within_reach,
    ]
    wanted += [checks.judgeable] if fresh else [in_its_place, unaltered, freshness, size]
    if evidence.is_published:
        wanted.append(default_parameters)
    return [line for check in wanted for line in check(evidence)]


def default_parameters(evidence: Evidence) -> list[str]:
    """A published run has the parameters that the chapter gives its profile."""
    own = evidence.results.header.get("default_parameters")
    return [] if own else ["made with other parameters than the profile's"]


def in_its_place(evidence: Evidence) -> list[str]:
    """A run lies in the folder of its own profile and under the name of its own chapter."""
    header = evidence.results.header
    found = []
    if header.get("chapter") != evidence.chapter.name:
        found.append(
            f"the results are those of chapter {header.get('chapter')}, expected {evidence.chapter.name}"
        )
    if header.get("profile") != evidence.folder.name:
        found.append(f"a {header.get('profile')} run lies among the {evidence.folder.name} runs")
    return found


def unaltered(evidence: Evidence) -> list[str]:
    """Notebook, figures and results are those that the run wrote."""
    then, now = evidence.results.header.get("files", {}), evidence.files()
    changed = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    if evidence.results.header.get("content") != content_digest(evidence.results):
        changed.append(evidence.results_path.name)
    return [f"{name} is not the file that the run wrote" for name in changed]


def freshness(evidence: Evidence) -> list[str]:
    """The fingerprint fits the checkout."""
    words = {
        "code": "the chapter's code cells changed",
        "package": "the bnbook code that it imports changed",
        "parameters": f"the {evidence.profile} parameters changed",
        "data": "the data rows in the results file changed",
    }
    commit = evidence.results.header.get("provenance", {}).get("commit", "")[:10]
    diff = {"package": f" (git diff {commit} -- src/bnbook)"} if re.fullmatch("[0-9a-f]{10}", commit) else {}
    return [
        f"stale: {words[part]} since the run{diff.get(part, '')}; run it again" for part in evidence.stale()
    ]


def size(evidence: Evidence) -> list[str]:
    megabytes = evidence.notebook_path.stat().st_size / MEBIBYTE
    return [f"the notebook has {megabytes:.1f} MiB; at most 2 are allowed"] if megabytes > 2 else []
