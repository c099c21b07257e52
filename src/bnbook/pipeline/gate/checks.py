"""What a run must hold: cells that ran, figures with words, every result that is read, the data it names."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection

from bnbook import claims, data
from bnbook.claims import kinds
from bnbook.claims.judging import NOT_TESTED
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import merge, verdicts
from bnbook.pipeline.chapters.evidence import Evidence
from bnbook.pipeline.pictures.pictures import PHONE
from bnbook.pipeline.prose import tokens

LONGEST_HASH = re.compile(r"[0-9a-f]{16,}")


def cells(evidence: Evidence) -> list[str]:
    """Every code cell ran to its end, none raised, no picture without alternative text, no progress
    frames."""
    found = []
    code = merge.ran_cells(evidence.notebook)
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
    expected = sum(cell.cell_type == "code" for cell in evidence.chapter.notebook.cells)
    if len(code) != expected:
        found.append(f"{len(code)} code cells ran, the chapter has {expected}")
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
    drawn = {path.name.replace(PHONE, ".svg") for path in evidence.figures_folder.glob("*")}
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
        spared = named - tokens.result_names(chapter.text, or_else=False)
    except BnbookError as malformed_table:
        return [str(malformed_table)]
    own = {name for owner, name in named if owner in (None, chapter.name)}
    wanted = own - {name for _, name in spared if _has_sibling(name, evidence.results)}
    # A smoke run stands for the laptop run: it must record whatever that one is judged by.
    profile = "laptop" if evidence.profile == "smoke" else evidence.profile
    for claim in claims.chapter_claims(chapter.name):
        if claim.counts_as_evidence(profile, chapter.exact):
            wanted.update(claim.required_names())
        if not (evidence.figures_folder / f"{claim.figure}.svg").is_file():
            found.append(f"claim {claim.id} points to figure {claim.figure!r}, which the run did not draw")
    missing = sorted(wanted - set(evidence.results))
    found += [f"result {name!r} is missing; the text or a claim needs it" for name in missing]
    return found + [f"{token} is not a token that pages know" for token in tokens.malformed(chapter.text)]


def _has_sibling(name: str, recorded: Collection[str]) -> bool:
    """Whether a recorded name differs in one of several parts: `hours.w1_8` for `hours.w1_4`."""
    parts = name.split(".")
    alike = (each.split(".") for each in recorded)
    return len(parts) > 1 and any(
        len(each) == len(parts) and sum(map(operator.ne, each, parts)) == 1 for each in alike
    )


def seeds(evidence: Evidence) -> list[str]:
    """Every result has one row for each seed that it names, and names each once."""
    return [
        f"result {name!r} has {len(entry['values'])} rows for {len(set(entry['seeds']))} seeds"
        for name, entry in evidence.results.entries.items()
        if not len(entry["values"]) == len(entry["seeds"]) == len(set(entry["seeds"]))
    ]


def judgeable(evidence: Evidence) -> list[str]:
    """The claims can be judged by what was recorded."""
    try:
        verdicts.chapter_verdicts(evidence)
    except BnbookError as error:
        return [str(error)]
    return []


def within_reach(evidence: Evidence) -> list[str]:
    """With the seeds that a profile gives a test it could have held; a smoke run judges nothing, and a rerun with
    fewer seeds leaves such a claim open."""
    if evidence.profile == "smoke" or not evidence.results.header.get("default_parameters"):
        return []
    results, own = evidence.results, claims.chapter_claims(evidence.chapter.name)
    own = [claim for claim in own if not claim.out_of_reach and set(claim.result_names()) <= set(results)]
    try:
        judged = [claims.judge(claim, results, evidence.profile) for claim in own]
    except BnbookError:  # what is recorded does not fit the test: another check says so
        return []
    return [
        f"claim {found.claim.id}: with {outcome.n} seeds its test cannot hold; expected at least "
        f"{kinds.least_seeds(outcome.test)}, or `out_of_reach: true` beside it"
        for found in judged
        if found.verdict != NOT_TESTED
        for outcome in found.outcomes
        if not kinds.can_hold(outcome.test, outcome.n)
    ]


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


def _alt_problems(what: str, alt: str) -> list[str]:
    if len(alt) < 20 or LONGEST_HASH.search(alt):
        return [f"{what} lacks an alternative text; expected a sentence that says what is seen"]
    return []
