"""The results file: recorded once, on disk at once, every number comes back as it went in."""

from __future__ import annotations

import copy
import json
import time

import numpy as np
import pytest
import torch
from conftest import ROOT

from bnbook.errors import BnbookError
from bookpress import results


@pytest.fixture(autouse=True)
def fresh_session(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "_session", results.Results())
    monkeypatch.setattr(results, "_first_seed", 0)
    monkeypatch.setenv("BNBOOK_RESULTS", str(tmp_path / "x.json"))
    return tmp_path / "x.json"


def test_values_come_back_with_nine_digits_and_seeds_are_numbered_from_the_first(fresh_session):
    values = np.array([[1.5, np.nan], [np.inf, -np.inf], [1e-300, 2.0]])
    numbers = np.array([1 / 3, 1e-16 / 3, 2.0**60 / 3])
    results.record("a.b", values, unit="bits", seeds=[4, 5, 6])
    results.record("c", [torch.tensor(0.25), torch.tensor(1.0)])
    results.record("none", np.zeros((2, 0)))  # of each seed nothing
    results.number_seeds_from(100)
    results.record("d", numbers)
    again = results.read(fresh_session)
    np.testing.assert_array_equal(again["a.b"], values)
    np.testing.assert_allclose(again["d"], numbers, rtol=1e-8)
    assert (again["d"] != numbers).all(), "and no more"
    assert again["c"].tolist() == [0.25, 1.0] and again.unit("a.b") == "bits"
    assert [entry["seeds"] for entry in again.entries.values()] == [
        [4, 5, 6],
        [0, 1],
        [0, 1],
        [100, 101, 102],
    ]
    assert "NaN" not in fresh_session.read_text() and json.loads(fresh_session.read_text())["schema"] == 1


def test_a_nested_table_is_named_by_its_keys(fresh_session):
    error = {("deep", "batch"): [1, 2], "shallow": {3: [4, 5], "none": {"end": [6, 7]}}}
    results.record_table({"error": error, "a.b": [8, 9]}, unit="bits", note="said of all", digits=3)
    found = {name: values.tolist() for name, values in results.read(fresh_session).items()}
    expected = {"error.deep.batch": [1, 2], "error.shallow.3": [4, 5], "error.shallow.none.end": [6, 7]}
    assert found == expected | {"a.b": [8, 9]}
    assert {(e["unit"], e["note"]) for e in results.current().entries.values()} == {("bits", "said of all")}
    with pytest.raises(BnbookError, match="malformed"):
        results.record_table({"a": {0.1: [1]}, "": {"b": [1]}})


def test_many_records_are_all_on_disk_after_each_and_do_not_slow_down(fresh_session):
    begun = time.process_time()
    for number in range(300):
        results.record(f"a{number}", np.full((2, 200), number / 7), note='"quoted"')
    assert time.process_time() - begun < 5, "it writes what is recorded before again and again"
    results.record_device("cpu", 1)
    written = json.loads(fresh_session.read_text())
    assert written == results.as_content(results.current()) and len(written["results"]) == 300


REFUSED = [  # name, values, seeds, what is said
    *(("a", values, None, "result 'a' ") for values in (1.0, [], "x", [[1], [1, 2]])),
    *((name, [1], None, "malformed") for name in ("A", "1a", "a b", "a..b", "")),
    ("known", [2], None, "recorded already"),
    ("b", [1, 2], [0], "2 values but 1 seeds"),
    ("b", [1, 2], [0, 0], "has a seed twice"),
]


@pytest.mark.parametrize(("name", "values", "seeds", "words"), REFUSED, ids=str)
def test_what_is_no_result_is_refused(name, values, seeds, words):
    results.record("known", [1])
    with pytest.raises(BnbookError, match=words):
        results.record(name, values, seeds=seeds)


def test_interactively_a_cell_may_run_twice(monkeypatch):
    monkeypatch.delenv("BNBOOK_RESULTS")
    results.record("a", [1])
    results.record("a", [2])
    assert results.current()["a"].tolist() == [2]


DEEP = "[" * 5_000 + "]" * 5_000
BROKEN = [
    *("{", "[]", '"abc"', "null", '{"schema": 1, "results": []}', '{"schema": 1, "results": {}, "provenance": null}'),
    '{"schema": 1, "results": {"a": {"values": [[1], 2], "seeds": [0, 1], "unit": ""}}}',
    '{"schema": 1, "results": {"a": {"values": 3, "seeds": [0], "unit": ""}}}',
    f'{{"schema": 1, "results": {{}}, "data": {DEEP}}}',
]  # fmt: skip


def test_broken_files_are_one_clear_line(tmp_path):
    path = tmp_path / "executed" / "laptop" / "part" / "y.json"
    draws = results.draws_path(path)
    with pytest.raises(BnbookError, match="no results file"):
        results.read(path)
    for folder in (path.parent, draws.parent):
        folder.mkdir(parents=True)
    for content in BROKEN:
        path.write_text(content)
        with pytest.raises(BnbookError, match="not a whole results file"):
            results.read(path)
    path.write_text('{"schema": 99, "results": {}}')
    with pytest.raises(BnbookError, match="schema 99"):
        results.read(path)
    path.write_text('{"schema": 1, "results": {}}')
    draws.write_text(f'{{"draws": {DEEP}}}')
    with pytest.raises(BnbookError, match="no whole file of draws"):
        results.read(path)


WRONG = ("x", 3, 0.5, True, None, [], ["x"], {}, {"a": 1}, {"a": ["x"]})
PLACES = [*results.File.model_fields, *(f"provenance.{key}" for key in results.Provenance.model_fields)]


@pytest.mark.parametrize("key", PLACES)
def test_every_wrong_type_of_a_header_is_one_line_that_names_its_place(tmp_path, key):
    path, refused = tmp_path / "y.json", 0
    whole = json.loads((ROOT / "executed/laptop/practice/batch.json").read_text(encoding="utf-8"))
    for wrong in WRONG:
        content = copy.deepcopy(whole)
        place, name = (content["provenance"], key.split(".")[1]) if "." in key else (content, key)
        place[name] = wrong
        path.write_text(json.dumps(content))
        try:
            read = results.read(path)
        except BnbookError as error:
            refused += 1
            assert f"not a whole results file: {key}" in str(error) and "\n" not in str(error)
        else:
            assert read.header.get(key, wrong) == wrong, "a value of its type is kept as it is"
    assert refused >= 5


@pytest.mark.parametrize(
    "unit", ["[a](b)", "![a][b]", "{download}`a`", "$\\href{a}{b}$", "<b>", "a|b", "*a*", "&lt;"]
)
def test_a_unit_is_plain_words(fresh_session, unit):
    with pytest.raises(BnbookError, match="has the unit .*; expected plain words"):
        results.record("a", [1.0], unit=unit)
    results.record("a", [1.0], unit="standard deviations / s²")
    written = fresh_session.read_text().replace("standard deviations / s\\u00b2", json.dumps(unit)[1:-1])
    fresh_session.write_text(written)
    words = "not a whole results file: results.a.unit is .*; expected plain words"
    with pytest.raises(BnbookError, match=words):
        results.read(fresh_session)


def test_training_time_is_booked(fresh_session):
    for seconds, reused in ((2.0, False), (3.0, True), (4.0, True)):
        results.record_training(seconds, reused=reused)
    booked = {"ran": 1, "ran_seconds": 2.0, "reused": 2, "reused_seconds": 7.0}
    assert results.read(fresh_session).header["store"] == booked


def test_a_figure_leaves_its_points_in_the_results_and_is_drawn_from_these_and_the_parameters(
    fresh_session, monkeypatch
):
    from matplotlib.figure import Figure

    from bnbook import figures

    monkeypatch.setenv("BNBOOK_FIGURES", str(fresh_session.parent))
    exec("profile: str = 'smoke'\nsteps: int = '6'\nuse_style()", {"use_style": figures.use_style})
    drawn = {}

    def draw(found):
        drawn.update(figures.points_of(found, "one-or-many"), steps=figures.parameters_of(found).steps)
        return Figure()

    figures.figure("one-or-many", draw, points={"relu": [[1 / 3, 2.0], [3.0, 4.0]]})
    assert results.read(fresh_session)["curve.one_or_many.relu"].tolist() == [[0.3333, 2.0], [3.0, 4.0]]
    assert drawn["relu"].tolist() == [[0.3333, 2.0], [3.0, 4.0]] and drawn["steps"] == 6
    assert (fresh_session.parent / "one-or-many.svg").is_file()


def test_the_highest_published_profile_is_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(results.paths, "executed_folder", lambda: tmp_path)
    for number, profile in enumerate(("laptop", "overnight")):
        (tmp_path / profile / "part").mkdir(parents=True)
        entry = {"values": [number], "unit": "", "seeds": [0], "note": ""}
        content = {"schema": 1, "profile": profile, "results": {"a": entry}}
        (tmp_path / profile / "part" / "coin.json").write_text(json.dumps(content))
    assert results.load("part/coin").profile == "overnight"
    assert results.load("part/coin", "laptop")["a"].tolist() == [0]


def test_rows_say_seed_and_place(fresh_session):
    results.record("a", np.arange(8.0).reshape(2, 2, 2), unit="bits", seeds=[7, 9])
    found = list(results.rows(results.current()))
    assert found[3] == {"name": "a", "seed": 7, "place": "1,1", "value": 3.0, "unit": "bits"}
    assert found[4]["seed"] == 9 and found[4]["place"] == "0,0"
