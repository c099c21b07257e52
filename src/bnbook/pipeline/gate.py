"""The gate: what a run must be before its numbers may be shown."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable

from bnbook import claims, data, paths
from bnbook.errors import BnbookError
from bnbook.pipeline import merge, tokens, verdicts
from bnbook.pipeline.chapters import Chapter
from bnbook.pipeline.evidence import Evidence, fresh_run, published
from bnbook.pipeline.header import content_digest
from bnbook.profiles import PUBLISHED

MEBIBYTE = 2**20
LONGEST_HASH = re.compile(r"[0-9a-f]{16,}")
#: Absolute paths of somebody's machine; a results file or a page must not carry them.
PLACES = (
    "home|root|Users|tmp|private|var|work|workspace|mnt|media|opt|srv|data|scratch|nfs|gpfs|lustre|storage|"
    "project|projects|content|kaggle|run|proc|Volumes|usr/local|usr/lib|usr/share"
)
LOCAL_PATH = re.compile(
    rf"(?<![\w.:/)\]}}])/(?:{PLACES})/[\w.~-]"
    r"|\b[A-Za-z]:(?:\\{1,2}|/)(?:Users|Windows|Program Files|ProgramData|Temp|Documents and Settings)\b"
    r"|\bfile:///?\w"
)
#: Mail addresses; `a@b.T` and `a@b.to(…)` are products of matrices.
ADDRESS = re.compile(
    r"[\w.+-]+@(?:[\w-]+\.)+(?:com|org|net|edu|gov|info|io|ai|dev|example|local|[a-z]{2})\b(?!\w|\(|\[|\.\w)"
)


def problems(evidence: Evidence, *, fresh: bool = False) -> list[str]:
    """Everything that forbids showing this run, one line each; empty for a run that passed.

    `fresh`: the run has just ended, so its hashes are its own and only its content is judged.
    """
    try:
        evidence.read()
    except BnbookError as error:
        return [str(error)]
    checks: list[Callable[[Evidence], list[str]]] = [
        cells,
        figures,
        required_results,
        seeds,
        local_paths,
        data_identity,
    ]
    checks += [judgeable] if fresh else [in_its_place, unaltered, freshness, size]
    if evidence.is_published:
        checks.append(default_parameters)
    return [line for check in checks for line in check(evidence)]


def shown(chapter: Chapter, profile: str | None = None) -> Evidence | None:
    """What every page and list shows of a chapter: the fresh run at `profile`, or with None the committed
    evidence at the highest profile that passes; None where there is nothing to show.

    Raises BnbookError for a fresh run that does not pass.
    """
    if profile is None:
        candidates = (published(chapter, each) for each in PUBLISHED)
        return next((each for each in candidates if each.exists and not problems(each)), None)
    run = fresh_run(chapter, profile)
    if not run.exists:
        return None
    if found := problems(run):
        lines = "; ".join(found[:3])
        raise BnbookError(
            f"the {profile} run of {chapter.name} does not pass the gate: {lines}; run it again"
        )
    return run


def default_parameters(evidence: Evidence) -> list[str]:
    """A published run has the parameters that the chapter gives its profile."""
    own = evidence.results.header.get("default_parameters")
    return [] if own else ["made with other parameters than the profile's"]


def seeds(evidence: Evidence) -> list[str]:
    """Every result has one row for each seed that it names."""
    return [
        f"result {name!r} has {len(entry['values'])} rows for {len(entry['seeds'])} seeds"
        for name, entry in evidence.results.entries.items()
        if len(entry["values"]) != len(entry["seeds"])
    ]


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


def cells(evidence: Evidence) -> list[str]:
    """Every code cell ran to its end, none raised, no picture without alternative text, no progress
    frames."""
    found = []
    code = [cell for cell in evidence.notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        status = cell.metadata.get("papermill", {}).get("status")
        if cell.source.strip() and status != "completed":
            found.append(
                f"code cell {number} is {status or 'not run'}, expected completed: {cell.source[:60]!r}"
            )
        for output in cell.outputs:
            if output.output_type == "error":
                found.append(f"code cell {number} raised {output.ename}: {output.evalue}")
            if any(kind.startswith("image/") for kind in output.get("data", {})):
                alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
                found += _alt_problems(f"code cell {number} shows a picture", alt)
            if output.output_type == "stream" and "\r" in output.text:
                found.append(f"code cell {number} printed progress frames; progress belongs to the terminal")
    ran = [cell for cell in code if "injected-parameters" not in cell.metadata.get("tags", [])]
    expected = sum(cell.cell_type == "code" for cell in evidence.chapter.notebook.cells)
    if len(ran) != expected:
        found.append(f"{len(ran)} code cells ran, the chapter has {expected}")
    return found


def figures(evidence: Evidence) -> list[str]:
    """Every figure of the text was drawn and says in words what it shows; every figure drawn is in the
    text."""
    found, named = [], set()
    own = f"{evidence.chapter.path.stem}.figures/"
    for path, alt, _ in merge.referenced_figures(evidence.chapter.text):
        found += _alt_problems(f"figure {path}", alt)
        if path.startswith(own):
            named.add(path.removeprefix(own))
            if not (evidence.figures_folder / path.removeprefix(own)).is_file():
                found.append(f"figure {path} is in the text but the run did not draw it")
        else:
            found.append(f"figure {path} is not from {own}; expected a figure that this chapter's run draws")
    drawn = {path.name for path in evidence.figures_folder.glob("*")}
    found += [
        f"{name} among the figures is no file"
        for name in sorted(drawn)
        if not (evidence.figures_folder / name).is_file()
    ]
    found += [f"figure {name} was drawn but the text does not show it" for name in sorted(drawn - named)]
    return found


def required_results(evidence: Evidence) -> list[str]:
    """Everything that the claims and the prose read was recorded, and nothing is an empty or malformed
    token."""
    chapter, found = evidence.chapter, []
    if not evidence.results.header.get("default_parameters"):
        # other parameters may well leave out an arm that the text is about; nothing of it is published
        return []
    try:
        named = tokens.result_names(chapter.text)
    except BnbookError as malformed_table:
        return [str(malformed_table)]
    wanted = {name for owner, name in named if owner in (None, chapter.name)}
    # A smoke run stands for the laptop run: it must record whatever that one is judged by.
    profile = "laptop" if evidence.profile == "smoke" else evidence.profile
    for claim in claims.chapter_claims(chapter.name):
        if claim.counts_as_evidence(profile, chapter.exact):
            wanted.update(claim.result_names())
        if not (evidence.figures_folder / f"{claim.figure}.svg").is_file():
            found.append(f"claim {claim.id} points to figure {claim.figure!r}, which the run did not draw")
    missing = sorted(wanted - set(evidence.results))
    found += [f"result {name!r} is missing; the text or a claim needs it" for name in missing]
    return found + [f"{token} is not a token that pages know" for token in tokens.malformed(chapter.text)]


def judgeable(evidence: Evidence) -> list[str]:
    """The claims can be judged by what was recorded."""
    try:
        verdicts.chapter_verdicts(evidence)
    except BnbookError as error:
        return [str(error)]
    return []


def local_paths(evidence: Evidence) -> list[str]:
    """No path of the machine that ran it, in the notebook, the results or a figure."""
    places = (paths.repository_root(), os.path.expanduser("~"), sys.prefix, tempfile.gettempdir())
    here = {str(place) for place in places} - {"/", "~"}
    found = []
    for path in [
        evidence.notebook_path,
        evidence.results_path,
        *sorted(evidence.figures_folder.glob("*.svg")),
    ]:
        text = path.read_text(encoding="utf-8")
        leaks = [match[0] for match in LOCAL_PATH.finditer(text)]
        leaks += [place for place in here if json.dumps(place)[1:-1] in text]
        found += [f"{path.name} carries a local path ({leak}…)" for leak in leaks[:1]]
        found += [f"{path.name} carries an address ({match[0]})" for match in [ADDRESS.search(text)] if match]
    return found


def data_identity(evidence: Evidence) -> list[str]:
    """The data are those the chapter names, are what their hash says, and are no stand-ins above smoke."""
    header = evidence.results.header
    rows, families = header.get("data", []), evidence.chapter.data
    asked = str(header.get("parameters", {}).get("data", "-auto"))
    if rows and not asked.endswith("-auto") and asked not in [row.get("name") for row in rows]:
        return [
            f"the run asked for data {asked} and rests on {', '.join(str(row.get('name')) for row in rows)}"
        ]
    if families and not rows:
        return [f"the run names no data set; expected {' or '.join(families)} through bnbook.data.load"]
    found = []
    for row in rows:
        found += _identity_problems(row)
        stand_in = str(row.get("name", "")).endswith("-standin")
        if stand_in and evidence.profile != "smoke":
            found.append(f"data {row['name']} are stand-ins; the {evidence.profile} profile needs real data")
        if not stand_in and not any(str(row.get("name", "")).startswith(family) for family in families):
            found.append(
                f"data {row.get('name')} are not what the chapter declares ({', '.join(families) or 'none'})"
            )
    return found


def _identity_problems(row: dict) -> list[str]:
    """A data row against what the named set is known to be."""
    name = row.get("name")
    known = data.known_sets().get(name)
    if known is None:
        return [
            f"data {name!r} are no set that the book knows; expected one of {', '.join(data.known_sets())}"
        ]
    wrong = [part for part in ("train", "test", "shape", "exact") if row.get(part) != known[part]]
    wrong += ["sha256"] if known["sha256"] not in (None, row.get("sha256")) else []
    return [f"data {name}: {part} is {row.get(part)}, expected {known[part]}" for part in wrong]


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
    return [f"stale: {words[part]} since the run; run it again" for part in evidence.stale()]


def size(evidence: Evidence) -> list[str]:
    megabytes = evidence.notebook_path.stat().st_size / MEBIBYTE
    return [f"the notebook has {megabytes:.1f} MiB; at most 2 are allowed"] if megabytes > 2 else []


def _alt_problems(what: str, alt: str) -> list[str]:
    if len(alt) < 20 or LONGEST_HASH.search(alt):
        return [f"{what} lacks an alternative text; expected a sentence that says what is seen"]
    return []
