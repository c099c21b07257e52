"""The ledger as others read it: as JSON, as CSV, and for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bookpress import atomic, claims, texts
from bookpress.claims.judging import deciding
from bookpress.pipeline import chapter_runs, chapters
from bookpress.pipeline.gate import passed_run
from bookpress.pipeline.prose import Pages

# ---- `ledger.json`, every claim with all that was found, {"schema": 1, "claims": [row, …]} (`claims.ledger` says what a
# row holds); `ledger.csv`, a line a test; and the same for a terminal

SCHEMA = 1
#: Columns of the CSV file: of the claim, then of its test.
OF_CLAIM = "id chapter kind verdict words scope profile remark exploratory locked".split()
OF_TEST = "role says asks holds n side p sign_p kept".split()


def listing(
    names: list[str], profile: str | None = None, own: str | None = None, *, as_data: bool = False
) -> str:
    """The named chapters' claims for a terminal, or as JSON, from runs of `profile`, those in runs/`own`, or the committed
    ones."""
    known = [chapter for chapter in chapters.discover() if as_data or chapter.name in names]
    evidence = {each.name: passed_run(each, profile, own) for each in known}  # what is kept hangs on all
    pages = Pages(evidence, [claim for claim in claims.load_claims() if claim.chapter in evidence])
    rows = [row for row in pages.rows.values() if row["chapter"] in names] if as_data else []
    return as_json(rows) if as_data else as_text(pages, names)


def of_instrument(name: str) -> str:
    """The claims that rest on an instrument, for a terminal: id, chapter, and below it what it says."""
    resting = filter(claims.find_instrument(name).under, claims.load_claims())
    return "".join(f"{claim.id:<40} {claim.chapter}\n    {claim.says}\n" for claim in resting)


def as_json(rows: list[dict[str, Any]]) -> str:
    """A line for each claim."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return f'{{"schema": {SCHEMA}, "claims": [\n{lines}\n]}}\n'


def as_csv(rows: list[dict[str, Any]]) -> str:
    """A line for each test; `effect` and `interval` as numbers, then in words."""
    numbers = ("effect", "unit", "low", "high", "effect_words", "interval_words", "half", "twice")
    table = [[*OF_CLAIM, "source", "where", *(f"test_{name}" for name in OF_TEST), *numbers]]
    for row in rows:
        half, twice = row["other_margins"] or ("", "")
        of_claim = [row[name] for name in OF_CLAIM] + [row["source"]["key"], row["source"]["where"]]
        for test in row["tests"]:
            effect, interval = test["effect"], test["interval"] or dict.fromkeys(("low", "high", "words"))
            found = [effect["number"], effect["unit"], interval["low"], interval["high"]]
            found += [effect["words"], interval["words"], half, twice]
            table.append([*of_claim, *(test[name] for name in OF_TEST), *found])
    return texts.as_csv(table)


def as_text(pages: Pages, chapters: Iterable[str]) -> str:
    """Three lines for each claim of the chapters: its id, what it says, and what was found, of its parts in the one that
    decides."""
    lines = []
    for chapter in chapters:
        for claim in (claim for claim in pages.claims if claim.chapter == chapter):
            found = pages.judgement(claim)
            test = found and deciding(found)
            of = f"{test['says'].rstrip('.')}: " if test and test["role"] == "part" else ""
            words = f"{claims.marked(found)}: {of}{claims.format_effect(found)}" if found else "not run"
            lines += [claim.id, f"    {claim.says}", f"    {words}"]
        evidence = pages.evidence[chapter]
        for name in chapter_runs.withdrawn(evidence) if evidence else []:
            lines += [name, "    judged by the run and withdrawn since"]
    return "".join(f"{line}\n" for line in lines)


def write(folder: Path, pages: Pages) -> None:
    """Both files into the built site."""
    rows = list(pages.rows.values())
    atomic.write_text(folder / "ledger.json", as_json(rows))
    atomic.write_text(folder / "ledger.csv", as_csv(rows))
