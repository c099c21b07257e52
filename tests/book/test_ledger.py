"""The data behind the board: one row a claim, whole, plain JSON, the same as what pages show."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from bookpress import claims
from bookpress.cli import main
from bookpress.site import claim_pages
from bookpress.site import exports as ledger


def test_every_claim_has_a_row_with_the_verdict_that_pages_show(the_book, book_rows):
    assert [row["id"] for row in book_rows] == [claim.id for claim in the_book.claims]
    shown = {claim.id: the_book.judgement(claim) for claim in the_book.claims}
    for row in book_rows:
        if found := shown[row["id"]]:
            assert (row["verdict"], row["words"], row["n"]) == (found.verdict, found.words, found.n)
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


def test_a_claims_table_is_enough_to_find_its_effects(the_book):
    """Earlier draws count for one claim and not for another that reads the same result, and are averaged as a
    test says."""
    wrong, tried, of_fewer, two_ways = [], 0, set(), 0
    for claim in the_book.claims:
        run, judged = the_book.evidence[claim.chapter], the_book.judgement(claim)
        table = list(csv.DictReader(io.StringIO(claim_pages.per_seed(claim, run))))
        for outcome in judged.outcomes if judged and table else []:
            test, n = outcome.test, outcome.n
            other = f" ({'geometric ' * (test.kind == 'ratio')}mean of draws)"
            columns = [name + other * (name + other in table[0]) for name in test.result_names()]
            if (
                test.kind not in ("difference", "ratio", "level")
                or test.results
                or not {*columns} <= {*table[0]}
            ):
                continue
            rows = [[float(row[name]) for name in columns] for row in table if all(row[c] for c in columns)]
            values = np.array(rows)
            if test.nonfinite is not None:
                values[~np.isfinite(values)] = test.nonfinite
            a, *b = values.T
            number = test.b if isinstance(test.b, float) else 1.0
            with np.errstate(all="ignore"):
                found = {
                    "level": lambda: a.mean(),
                    "difference": lambda: (a - b[0]).mean(),
                    "ratio": lambda: np.exp(np.log(a / (b[0] if b else number)).mean()),
                }[test.kind]()
            same = found == pytest.approx(outcome.effect, rel=1e-5, abs=1e-8, nan_ok=True)
            wrong += [(claim.id, columns, len(rows), n, found, outcome.effect)] * (not same or len(rows) != n)
            tried += 1
            two_ways += sum("mean of draws" in name for name in columns)
            of_fewer |= {claim.id for name in test.result_names() if len(run.quoted(name)[0]) > n}
    assert wrong == [] and tried > 700 and two_ways and "larger-rate-usable" in of_fewer


def test_of_trials_the_unit_is_theirs_whatever_that_of_the_claim(book_rows):
    units = {test["test"]["kind"]: set() for row in book_rows for test in row["tests"]}
    for row in book_rows:
        for test in row["tests"]:
            units[test["test"]["kind"]].add(test["effect"]["unit"])
    assert units["inequality"] == {"of trials"} and "times a layer" in units["rate"]


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


def test_a_chapter_without_a_run_has_rows_without_numbers():
    claim = claims.load_claims()[0]
    row = claims.ledger_row(claim, None)
    assert (row["verdict"], row["tests"], row["interval"]) == ("not run", [], None)
    json.dumps(row, allow_nan=False)
