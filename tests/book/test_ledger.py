"""The data behind the board: one row a claim, whole, plain JSON, the same as what pages show."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from bookpress.cli import main
from bookpress.site import exports as ledger


def test_every_claim_has_a_row_with_the_verdict_that_pages_show(the_book, book_rows):
    assert [row["id"] for row in book_rows] == [claim.id for claim in the_book.claims]
    shown = {claim.id: the_book.judgement(claim) for claim in the_book.claims}
    for row in book_rows:
        if found := shown[row["id"]]:
            apart = {"rests_on": [], "tests": []}
            assert row | apart == found | apart
    assert sum(len(row["tests"]) for row in book_rows) > 400


def test_values_are_those_that_the_interval_is_of(book_rows):
    for row in book_rows:
        for test in row["tests"]:
            if test["values"] and test["test"]["kind"] in ("difference", "level", "equivalence", "rate"):
                assert np.mean(test["values"]) == pytest.approx(test["effect"]["number"], rel=1e-4, abs=1e-6)
                assert len(test["values"]) == test["n"]
            if test["p"] is not None:
                assert (test["p"] <= 0.05) is (test["holds"] is not None), row["id"]
                assert test["kept"] is not None and 0 <= test["side"] <= test["n"]


def test_json_and_csv_say_the_same(book_rows):
    read = json.loads(ledger.as_json(book_rows))
    assert read == {"schema": ledger.SCHEMA, "claims": book_rows}
    lines = list(csv.DictReader(io.StringIO(ledger.as_csv(book_rows))))
    tests = [(row, test) for row in book_rows for test in row["tests"]]
    assert [(line["id"], line["test_says"], line["words"]) for line in lines] == [
        (row["id"], test["says"], row["words"]) for row, test in tests
    ]
    first = next(line for line in lines if line["low"])
    assert float(first["low"]) <= float(first["effect"]) <= float(first["high"])


def test_one_chapter_as_data_from_the_command_line(book_rows, capsys):
    assert main(["claims", "theory/minima", "--json"]) == 0
    own = [row for row in book_rows if row["chapter"] == "theory/minima"]
    assert json.loads(capsys.readouterr().out)["claims"] == own
