"""Carries a chapter's claims over from old cells to new ones that gave the same numbers, before fresh seeds are run.

python scripts/carry.py PART/CHAPTER OLD.json NEW.json

OLD and NEW are results files of two runs with the same parameters, at any profile, one after the other on one
processor: OLD by a checkout of the commit whose cells the published run has, NEW by this one. Where every number that
a claim reads is the same to the last digit, a `carried` line says so, and draws by both are judged together
(docs/locks.md). `bnbook publish` does the same where the new run has the published seeds; a run on fresh ones has none.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import bnbook.book  # noqa: F401 (the press is told of this book)
from bnbook.errors import BnbookError
from bookpress import results
from bookpress.claims import chapter_claims, locks
from bookpress.fingerprint import chapter_fingerprint
from bookpress.pipeline.chapters import select


def carry(name: str, old: Path, new: Path, profile: str = "laptop") -> list[str]:
    """The claims that are carried over to this checkout's cells; BnbookError where the runs prove nothing."""
    (chapter,) = select([name])
    before, after = results.read(old), results.read(new)
    known, own = locks.run_measure(results.load(name, profile).header), locks.read()
    now = locks.measure(chapter_fingerprint(chapter.code_cells, {}, []))
    settings = locks.plan(chapter.parameters(profile))["settings"]
    if settings != known[1]:
        raise BnbookError(f"{name} has other settings at {profile} than its published run; expected the same")
    if before.header["parameters"] != after.header["parameters"]:
        raise BnbookError(f"{old} and {new} have other parameters; expected two runs of one setting")
    for path, run, measure in ((old, before, known[0]), (new, after, now)):
        if locks.run_measure(run.header)[0] != measure:
            raise BnbookError(
                f"{path} measures by other code; expected a run as published, then one of this checkout"
            )
    same = [
        claim.id
        for claim in chapter_claims(name)
        if all(_alike(each, before, after) for each in claim.result_names())
        and any(known in each for each in _known(own.of_claim(claim.id), profile))
    ]
    seeds = sorted({seed for entry in after.entries.values() for seed in entry["seeds"]})
    where = f"at the {after.profile} profile on seeds {seeds[0]} to {seeds[-1]}"
    why = f"old and new cells, run one after the other {where}: every number the same to the last digit"
    about = {"event": "carried", "chapter": name, "profile": profile, "claims": same, "was": list(known)}
    if same:
        locks.append([about | {"now": [now, settings], "why": why}])
    return same


def _known(own: list[locks.Line], profile: str) -> list[set[tuple[str, str]]]:
    """What each lock of a claim knows to measure the same."""
    return [locks.same_numbers(line, own, profile) for line in own if line.tests]


def _alike(name: str, before: results.Results, after: results.Results) -> bool:
    return name in before and name in after and np.array_equal(before[name], after[name], equal_nan=True)


if __name__ == "__main__":
    try:
        carried = carry(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    except (IndexError, BnbookError) as error:
        sys.exit(str(error) if isinstance(error, BnbookError) else __doc__)
    print(f"carried: {', '.join(carried) or 'nothing'}")
