"""The data behind the board: one row a claim, whole, plain JSON, the same as what pages show."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re

import numpy as np
import pytest
import yaml

from bookpress import claims
from bookpress.cli import main
from bookpress.site import claim_pages, exports
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


# ---- The same in two public formats: whole folders in which every name leads somewhere ------------------------------


@pytest.fixture(scope="module")
def rows(the_book, book_rows):
    """Those of chapters that are published."""
    return [row for row in book_rows if the_book.evidence[row["chapter"]]]


@pytest.fixture(scope="module")
def exported(the_book, rows, tmp_path_factory):
    runs = [
        exports.Run(one, [row for row in rows if row["chapter"] == name])
        for name, one in the_book.evidence.items()
        if one
    ]
    root = tmp_path_factory.mktemp("exported")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exports, "_runs", lambda: (runs, rows))
        for kind in exports.FORMATS:
            assert exports.export(kind, root / kind) == len(rows)
    assert sorted(path.name for path in root.iterdir()) == sorted(exports.FORMATS)  # and nothing beside them
    return root


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_an_evaluable_artifact_names_every_claim_with_what_judges_it(exported, rows):
    folder = exported / "evaluable-artifact"
    manifest = read(folder / "manifest.yml")
    parts = {name: read(folder / file)[name] for name, file in manifest["paths"].items()}
    slugs = {one["slug"] for one in manifest["experiments"]}
    active = {one["slug"] for one in manifest["experiments"] if "disposition" not in one}
    assert len(slugs) == len(manifest["experiments"]) > len(active) >= len({row["chapter"] for row in rows})
    for one in manifest["experiments"]:
        assert (folder / one["directory"]).is_dir() and one["run"]["command"].startswith("bnbook run ")
        assert "disposition" not in one or one["disposition"]["superseded_by"] in active
        assert {use["dataset"] for use in one.get("uses_data", [])} <= {
            data["id"] for data in parts["datasets"]
        }
    results = {one["id"]: one for one in parts["results"]}
    assert [one["id"] for one in parts["claims"]] == [row["id"] for row in rows]
    for claim, row in zip(parts["claims"], rows, strict=True):
        (validator,) = claim["validators"]
        (result,) = validator["inputs"]
        assert claim["statement"] == row["says"] and set(claim["tested_by"]) <= active
        assert row["id"] in results[result]["validates"] and row["verdict"] in validator["success_criteria"]
    for one in results.values():
        recorded = json.loads((folder / one["evidence"]).read_text(encoding="utf-8"))["results"]
        assert one["produced_by"] in active and set(one["locators"]) <= set(recorded) and one["locators"]
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    listed = {
        line.split("  ")[1] for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    }
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert there == listed | {"SHA256SUMS"}


def ara_blocks(text, letter):
    """ID -> its fields, of the blocks `## X01: title` with lines `- **Key**: value`."""
    found = {}
    for block in re.split(r"^## ", text, flags=re.M)[1:]:
        name, title = block.split("\n")[0].split(": ", 1)
        assert re.fullmatch(rf"{letter}\d+", name) and title and name not in found
        found[name] = dict(re.findall(r"^- \*\*(.+?)\*\*: (.*)$", block, flags=re.M))
    return found


def test_an_ara_has_no_name_that_leads_nowhere(exported, rows):
    folder = exported / "ara"
    known = ara_blocks((folder / "logic/claims.md").read_text(encoding="utf-8"), "C")
    experiments = ara_blocks((folder / "logic/experiments.md").read_text(encoding="utf-8"), "E")
    assert len(known) == len(rows)
    for (name, claim), row in zip(known.items(), rows, strict=True):
        (proof,) = re.findall(r"E\d+", claim["Proof"])
        assert name in re.findall(r"C\d+", experiments[proof]["Verifies"])
        assert set(re.findall(r"C\d+", claim["Dependencies"])) <= set(known)
        assert claim["Tags"].split(", ")[0] == row["id"] and claim["Verdict"].startswith(row["verdict"][:4])
        holds = {
            "reproduced": "supported",
            "not reproduced": "refuted",
            "open": "hypothesis",
            "no": "refuted",
        }
        assert claim["Status"] == holds.get(row["verdict"], claim["Status"])
    for one in experiments.values():
        for file in one["Evidence"].split(", "):
            assert (folder / file).is_file()
    ids = []

    def walk(node, parents):
        ids.append(node["id"])
        need = {"question": "description", "experiment": "result"}[node["type"]]
        assert node[need] and node["title"] and node["support_level"] == "explicit" and node["source_refs"]
        assert set(node.get("evidence", [])) <= set(known)
        for child in node.get("children", []):
            walk(child, [*parents, node["id"]])

    for node in read(folder / "trace/exploration_tree.yaml")["tree"]:
        walk(node, [])
    assert len(ids) == len(set(ids))
    paper = (folder / "PAPER.md").read_text(encoding="utf-8")
    front = yaml.safe_load(paper.split("---\n")[1])
    assert front["ara_version"] == "1.0" and f"{len(rows)} claims" in paper
    for file in re.findall(r"\]\(([^)]+)\)", paper):
        assert (folder / file).is_file()


def test_a_status_follows_the_verdict_and_nothing_undecided_is_supported():
    assert not set(exports.SUPPORTED) & set(exports.REFUTED)
    assert not {"open", "mixed", "not tested at this scale", "not run"} & {
        *exports.SUPPORTED,
        *exports.REFUTED,
    }
