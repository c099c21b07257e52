"""What the explorers of the pages draw from: committed results, written as scripts that fill `PACKAGE.data`.

Scripts and not JSON, for a page that is opened from file:// may fetch nothing; and they may say NaN. Goalposts are
of every book; the book's own are in the module that it names (`Book.explorers_module`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bookpress import atomic
from bookpress.book import book
from bookpress.claims import Claim
from bookpress.claims.claim import Effect, Test
from bookpress.claims.draws import columns, counted, unit_of
from bookpress.claims.judging import NOT_TESTED
from bookpress.claims.words import spelled
from bookpress.errors import PressError
from bookpress.pipeline.prose import Pages
from bookpress.results import Results

DIGITS = 5  # of what is only drawn


def rounded(values: Any) -> Any:
    """Nested lists of numbers with as many digits as a picture shows."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    return [rounded(v) for v in values] if isinstance(values, list) else float(f"{values:.{DIGITS}g}")


def recorded(results: Results, name: str) -> np.ndarray:
    """A recorded result; PressError where the chapter has none of that name."""
    if name not in results:
        chapter = results.header.get("chapter", "a chapter")
        raise PressError(f"{chapter} recorded no {name}, from which its explorer draws; record it again")
    return results[name]


# ---- Move the goalposts: every judged claim with the values per seed that its tests read, paired -------------------

#: Of kinds whose effect is none of what was recorded.
OWN_UNITS = {"sign": "of the seeds", "agreement": "%", "inequality": "violations"}


def goalposts(pages: Pages) -> list[dict[str, Any]]:
    """A row for each claim that counts: its words, and its tests with their bound and their columns."""
    rows = []
    for claim in pages.claims:
        row, evidence = pages.rows[claim.id], pages.evidence.get(claim.chapter)
        if evidence and row["verdict"] != NOT_TESTED:
            rows.append(_row(claim, row, counted(claim, evidence.results)))
    return rows


def _row(claim: Claim, row: dict[str, Any], results: Results) -> dict[str, Any]:
    tests = [("part" if claim.parts else "whole", *each) for each in claim.own_tests]
    if claim.parts:  # rungs that were reached
        tests = [each for each in tests if set(each[2].result_names()) <= set(results)]
    elif claim.corrected:
        says = claim.correction or claim.condition or "corrected"
        tests = [("whole", "as printed", *tests[0][2:]), ("corrected", says, *tests[1][2:])]
    shared = ("id", "chapter", "kind", "combine", "verdict", "words")
    return {key: row[key] for key in shared} | {
        "says": spelled(claim.says),
        "condition": bool(claim.condition),
        "exploratory": bool(row["exploratory"]),
        "tests": [
            _test(role, spelled(says), test, shown, results, claim.id) for role, says, test, shown in tests
        ],
    }


def _test(
    role: str, says: str, test: Test, shown: Effect | None, results: Results, claim: str
) -> dict[str, Any]:
    seeds, rows = columns(test, results, claim)
    if test.kind == "sign":  # what is counted: in which seeds the first is the larger one
        rows = (rows[:1] > rows[1:]).astype(float)
    bounds = (test.threshold, test.margin, test.tolerance, 0.5 if test.kind == "sign" else 0)
    own = OWN_UNITS.get(test.kind) or (shown.unit if shown else "")
    return {
        "role": role,
        "says": says,
        "kind": test.kind,
        "side": "greater" if test.kind in ("ordering", "sign") else test.side,
        "centre": test.expected or 0.0,
        "bound": next(bound for bound in bounds if bound is not None),
        "resolution": test.resolution,
        "cells": test.cells,
        "unit": (own or unit_of(results, test.result_names()[0])) if test.kind != "ratio" else "",
        "seeds": seeds,
        "columns": rows.tolist(),
    }


# ---- All of them -------------------------------------------------------------------------------------------------

#: Where the pages' scripts look for the data, under a folder of pages.
FOLDER = Path("_static/explorers/data")


def write(folder: Path, pages: Pages) -> None:
    """Write NAME.js of every explorer; one whose chapter has no run, or too small a one, gets null, and its
    page the still picture."""
    found: dict[str, Any] = {"goalposts": goalposts(pages) or None}
    found |= {name: collect(pages) for name, collect in book().explorers.items()}
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    for name, content in found.items():
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        atomic.write_text(folder / FOLDER / f"{name}.js", f"{book().package}.data.{name} = {text};\n")
