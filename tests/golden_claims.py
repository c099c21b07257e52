"""What claims on made-up results come to, as golden lines: `python tests/golden_claims.py` writes them anew, and
`git diff` then shows what a change turned. Each line is [claim, results, profile, exact, row, table]."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import bnbook.results  # noqa: F401 (the press is told of the book)
from bnbook.errors import BnbookError
from bookpress.claims import Claim, judge, markdown_table, rung_table
from bookpress.results import Results
from bookpress.schema import valid

FILE = Path(__file__).with_suffix(".jsonl")
#: Of a row, what is not copied from the claim.
FOUND = ("verdict", "words", "effect", "interval", "n", "scope", "remark", "other_margins", "tests")


def came_to(claim: dict, given: dict, profile: str | None, exact: bool) -> list:
    """The row without what is the claim's own or said twice, and its lines of the tables; the words of an error."""
    one = valid(Claim, claim, "golden claims")
    arrays = (
        {name: np.array(values, dtype=float) for name, values in given.items()}
        if "entries" not in given
        else given
    )
    results = Results(given["header"], given["entries"]) if "entries" in given else arrays
    try:
        whole = judge(one, results, profile, exact=exact)
    except BnbookError as error:
        return [str(error), ""]
    tables = [markdown_table([whole]).split("\n", 2)[2], *([rung_table([whole])] if one.rungs else [])]
    row = {key: value for key, value in whole.items() if key in FOUND and value}
    for test in row.get("tests", []):
        del test["test"], test["says"], test["kept"]
    if row.get("tests") and all(row.get(key) == row["tests"][0][key] for key in ("effect", "interval")):
        row = {key: value for key, value in row.items() if key not in ("effect", "interval")}
    return [row, "\n".join(tables)]


def cases() -> list[list]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def as_line(case: list) -> str:
    return json.dumps(case, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    FILE.write_text(
        "".join(as_line([*case[:4], *came_to(*case[:4])]) + "\n" for case in cases()), encoding="utf-8"
    )
