"""Running chapters: what fails is kept apart and said, what passed is replaced whole or not at all."""

from __future__ import annotations

import json

import nbformat
import pytest
import tiny_book
from conftest import bnbook

from bnbook.errors import BnbookError
from bnbook.pipeline import chapters, compare, evidence, execute

BREAKS = {
    "raise": ('raise ValueError("no luck")', "ValueError: no luck"),
    "exit": ("import sys; sys.exit(0)", "is pending, expected completed"),  # trap 3: papermill exits with 0
    "kill": ("import os; os.kill(os.getpid(), 9)", "the kernel died"),  # trap 3: pending cells and no error
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_run_that_breaks_is_kept_apart_with_its_cell(ran, how):
    code, words = BREAKS[how]
    path = ran / "book" / "part" / "coin.md"
    path.write_text(
        path.read_text().replace('record("draws"', f'{code}\nrecord("draws"') + "\n```{code-cell}\n1\n```\n"
    )
    good = {p: p.read_bytes() for p in (ran / "runs" / "smoke").rglob("*") if p.is_file()}
    done = bnbook("run", "coin", root=ran, code=1)
    assert words in done.stderr and "coin.failed.ipynb" in done.stderr
    failed = nbformat.read(ran / "runs" / "smoke" / "part" / "coin.failed.ipynb", as_version=4)
    assert any(code in cell.source for cell in failed.cells)
    assert {p: p.read_bytes() for p in good} == good, "the earlier good run is untouched"
    assert not list((ran / "runs").rglob("*.running"))


def one_line(done) -> bool:
    """One line of ours; a kernel that is ended early may add a remark of its message library."""
    ours = [line for line in done.stderr.splitlines() if line.startswith("bnbook:")]
    return len(ours) == 1 and "Traceback" not in done.stderr


def test_bad_input_found_by_a_chapter_is_one_line_and_exit_code_2(tiny):
    path = tiny / "book" / "part" / "coin.md"
    text = path.read_text()
    path.write_text(
        text.replace("use_style()", 'use_style()\nfrom bnbook.data import load\nload("pictures")')
    )
    done = bnbook("run", "coin", root=tiny, code=2)
    assert one_line(done) and "unknown data set 'pictures'; expected one of mnist" in done.stderr
    path.write_text(text.replace("names = [", 'data = "mnist"\nnames = ['))
    done = bnbook("run", "coin", root=tiny, code=2, BNBOOK_DATA=str(tiny / "nowhere"))
    assert one_line(done) and "BNBOOK_DATA" in done.stderr and "stand" not in done.stdout
    assert not list((tiny / "runs").rglob("*.ipynb"))


def test_a_run_records_what_it_rests_on(tiny_ran):
    content = json.loads((tiny_ran / "runs" / "laptop" / "part" / "coin.json").read_text())
    assert content["parameters"] == {
        "profile": "laptop",
        "seeds": 5,
        "tosses": 400,
        "rate": 0.5,
        "names": ["a"],
    }
    assert content["default_parameters"] is True and content["provenance"]["seeds"] == [0, 1, 2, 3, 4]
    assert content["provenance"]["peak_memory_mib"] > 10 and content["provenance"]["versions"]["torch"]
    assert set(content["files"]) == {"coin.ipynb", "coin.figures/shares.svg"}
    notebook = nbformat.read(tiny_ran / "runs" / "laptop" / "part" / "coin.ipynb", as_version=4)
    assert all(set(c.metadata) <= {"tags", "mystnb", "papermill"} for c in notebook.cells)
    assert str(tiny_ran) not in json.dumps(notebook), "trap 7: papermill's metadata carries local paths"


def test_bad_usage_exits_with_2_and_runs_nothing(tiny):
    cases = {
        (
            "run",
            "coin",
            "--set",
            "toses=3",
        ): "no parameter 'toses'; it has: names, profile, rate, seeds, tosses",
        ("run", "coin", "--set", "tosses=many"): "expected int like its default 100",
        ("run", "coin", "--set", "profile=paper"): "use --profile",
        ("run", "coin", "--seeds", "0"): "expected at least 1",
        ("run", "coins"): "did you mean part/coin?",
        ("run",): "no chapter named",
        ("run", "coin", "--all"): "give one of them",
        ("run", "coin", "--params", "none.yml"): "no such file",
        ("publish", "coin", "--profile", "smoke"): "never published",
    }
    from bnbook.cli import main

    for words, message in cases.items():
        with pytest.MonkeyPatch.context() as patch:
            lines: list[str] = []
            patch.setattr(
                "sys.stderr",
                type("Sink", (), {"write": lambda _, t: lines.append(t), "flush": lambda _: None})(),
            )
            assert main(list(words)) == 2, words
        assert message in "".join(lines) and "".join(lines).strip().count("\n") == 0, words
    assert not (tiny / "runs").exists()


def test_set_seeds_and_params_reach_the_chapter_and_are_no_default_run(tiny):
    (tiny / "p.yml").write_text("tosses: 1e1\nnames: [b, c]\n")
    bnbook("run", "coin", "--params", "p.yml", "--set", "rate=1e0", "--seeds", "4", root=tiny)
    content = json.loads((tiny / "runs" / "smoke" / "part" / "coin.json").read_text())
    assert content["parameters"] == {
        "profile": "smoke",
        "seeds": 4,
        "tosses": 10,
        "rate": 1.0,
        "names": ["b", "c"],
    }
    assert content["default_parameters"] is False
    assert content["results"]["heads"]["values"] == [1, 1, 1, 1]


def test_compare_judges_a_rerun_against_the_published_band(ran):
    chapter = chapters.select(["coin"])[0]
    run = evidence.fresh_run(chapter, "laptop")
    with pytest.raises(BnbookError, match="no published run"):
        compare.compare(run)
    bnbook("publish", "coin", root=ran)
    lines, agrees = compare.compare(evidence.fresh_run(chapter, "laptop"))
    assert agrees and "1 of 1 results in their bands" in lines[-1]
    done = bnbook("run", "coin", "--profile", "laptop", "--set", "rate=0.9", "--compare", root=ran, code=1)
    assert "heads: 0." in done.stdout and "DIFFERS" in done.stdout
    assert (
        "other rate: 0.9; book: 0.5" in done.stdout
        and "claim coin-fair: not reproduced; book: reproduced" in done.stdout
    )


def test_the_band_is_a_prediction_interval():
    low, high = compare.prediction_band([1.0, 2.0, 3.0], 3)
    assert low == pytest.approx(2 - 9.924843 * (2 / 3) ** 0.5) and high == pytest.approx(4 - low)
    low, high = compare.prediction_band([2.0], 3)
    assert 0 < high - low < 1e-5
    low, high = compare.prediction_band(
        [0.0] * 20, 20
    )  # by hand: P(0 of 20 and k of 20) = 2 C(20, k) / C(40, k)
    assert low == 0 and high == 6 / 20  # 0.020 at k = 6, 0.008 at k = 7
    assert compare.Row("x", float("inf"), float("inf"), float("nan"), float("nan")).agrees


def test_the_kernel_is_this_pythons_and_the_environment_is_put_back(tiny, monkeypatch):
    import os

    before = dict(os.environ)
    execute.run_chapter(chapters.select(["coin"])[0], "smoke", {})
    assert dict(os.environ) == before


def test_tiny_book_is_what_contributors_are_shown():
    assert "{code-cell}" in tiny_book.CHAPTER and "tags: [parameters" in tiny_book.CHAPTER


@pytest.mark.parametrize("misses", [1, 99])
def test_a_kernel_that_does_not_start_is_started_again(tmp_path, monkeypatch, misses):
    """Two kernels that start at once may have picked the same free port; the second then dies before it says
    a word."""
    import papermill

    starts = []

    def start(*_, **__):
        starts.append(1)
        if len(starts) <= misses:
            raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setattr(papermill, "execute_notebook", start)
    failure = execute._papermill(tmp_path / "a.ipynb", tmp_path / "b.ipynb", {})
    assert (
        (failure, len(starts)) == (None, 2)
        if misses == 1
        else ("did not start in 3" in failure and len(starts) == 3)
    )
