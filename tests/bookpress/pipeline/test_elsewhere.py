"""Commands that take the book elsewhere, as a shell sees them."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from bookpress import cli, results

CHAPTER = "theory/minima"


def test_results_as_lines_and_as_they_are(capsys):
    assert cli.main(["results", CHAPTER, "--profile", "laptop"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    held = results.load(CHAPTER, "laptop")
    assert len(rows) == sum(held[name].size for name in held)
    name = next(name for name in held if held[name].ndim == 1)
    values = [float(row["value"]) for row in rows if row["name"] == name]
    assert np.array_equal(values, held[name], equal_nan=True)
    assert cli.main(["results", CHAPTER, "--profile", "laptop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chapter"] == CHAPTER


def test_results_as_a_frame():
    pandas = pytest.importorskip("pandas")
    held = results.load(CHAPTER, "laptop")
    frame = held.table()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == sum(held[name].size for name in held)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["results", CHAPTER, "--profile", "paper"], "has no paper results"),
        (["results", "theory/nothing"], "theory/nothing"),
        (["coursework", "DIR"], "is there already"),
        (["measure", "nowhere.py:make", "--data", "digits-standin"], "no file 'nowhere.py'"),
    ],
)
def test_bad_words_are_one_line_and_exit_code_2(tmp_path, capsys, words, said):
    assert cli.main([word.replace("DIR", str(tmp_path)) for word in words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_measure_prints_a_table(tmp_path, capsys):
    (tmp_path / "nets.py").write_text(
        "from torch import nn\nmake = lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    words = [
        "measure",
        f"{tmp_path}/nets.py:make",
        "--data",
        "digits-standin",
        "--batch",
        "16",
        "--no-eigenvalues",
    ]
    assert cli.main(words) == 0
    assert "effective β" in capsys.readouterr().out
