"""Running chapters: what fails is kept apart and said, what passed is replaced whole or not at all."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import nbformat
import pytest
from conftest import bnbook
from filelock import FileLock
from locked_coin import claims_file, coin, edit

import bnbook as bnbook_package
from bookpress import stamp
from bookpress.cli import main
from bookpress.pipeline import chapter_runs, execution, gate
from bookpress.results import read

BREAKS = {
    'raise ValueError("no luck")': "ValueError: no luck",
    "import sys; sys.exit(0)": "is pending, expected completed",  # trap 3: papermill exits with 0
    "import os; os.kill(os.getpid(), 9)": "the kernel died",  # trap 3: pending cells and no error
}


def page(root: Path) -> Path:
    return root / "book" / "part" / "coin.md"


def add_cell(root: Path, code: str) -> None:
    page(root).write_text(page(root).read_text() + f"\n```{{code-cell}}\n{code}\n```\n")


@pytest.mark.parametrize("code", BREAKS)
def test_a_run_that_breaks_is_kept_apart_with_its_cell(ran, code):
    edit(page(ran), 'record("draws"', f'{code}\nrecord("draws"')
    add_cell(ran, "1")
    folder = ran / "runs" / "smoke"
    good = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    done = bnbook("run", "coin", root=ran, code=1)
    assert BREAKS[code] in done.stderr and "coin.failed.ipynb" in done.stderr
    failed = nbformat.read(folder / "part" / "coin.failed.ipynb", as_version=4)
    assert any(code in cell.source for cell in failed.cells)
    assert [*read(folder / "part" / "coin.failed.json")] == ["heads"], "somebody may have looked"
    assert {p: p.read_bytes() for p in good} == good, "the earlier good run is untouched"
    assert not list((ran / "runs").rglob("*.running"))


def test_papermills_word_is_not_taken_for_a_kernel_that_ended_early(tiny, monkeypatch):
    """It calls a cell "completed" whose kernel was killed, or whose time was over."""

    def execute(source, target, **_):
        notebook = nbformat.read(source, as_version=4)
        for cell in notebook.cells:
            cell.metadata["papermill"] = {"status": "completed", "exception": False}
        nbformat.write(notebook, target)

    monkeypatch.setattr("papermill.execute_notebook", execute)
    monkeypatch.setattr(gate, "problems", lambda *_, **__: [])
    chapter = coin()
    with pytest.raises(execution.ChapterFailed, match="the kernel ended before its last cell did"):
        execution.run_chapter(chapter, "smoke", {})
    failed = nbformat.read(tiny / "runs" / "smoke" / "part" / "coin.failed.ipynb", as_version=4)
    assert execution.ENDED not in [cell.id for cell in failed.cells]


def test_a_cluster_that_a_chapter_does_not_use_is_said(ran, monkeypatch):
    chapter = coin()
    monkeypatch.setattr(execution, "run_chapter", lambda *_, **__: chapter_runs.fresh_run(chapter, "laptop"))
    job = execution.Job("laptop", {chapter.name: {}})
    assert not any(wrong for wrong, _ in job.run(chapter).lines)
    monkeypatch.setenv("BNBOOK_SCHEDULER", "tcp://node1:8786")
    (words,) = [line for wrong, line in job.run(chapter).lines if wrong]
    assert words.startswith("note: part/coin trains nothing through the runner: it ran on this machine alone")


#: A change of the cells and what is given -> exit code and words: the disk's fault is no value's.
STOPPED = [
    ("use_style()", 'use_style()\nfrom bnbook.data import load\nload("pictures")', "", 2,
     "unknown data set 'pictures'; expected one of mnist"),
    ("names = [", 'data = "mnist"\nnames = [', "", 2, "BNBOOK_DATA"),
    ("shares = [", "1 / (tosses - 7)\nshares = [", "--set tosses=7", 2,
     "ZeroDivisionError: division by zero (cell 3, line 15); choose other values"),
    ('ax.plot(results["heads"])', 'results.values("heads")', "--set tosses=7", 2, "but 2 were given (cell 3, line 11);"),
    ("shares = [", 'open("nowhere")\nshares = [', "--set tosses=7", 1, "FAILED part/coin with tosses = 7 failed; its notebook is"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "given", "code", "words"), STOPPED)
def test_what_a_chapter_or_a_value_stops_is_one_line(tiny, old, new, given, code, words):
    edit(page(tiny), old, new)
    done = bnbook("run", "coin", *given.split(), root=tiny, code=code, BNBOOK_DATA=str(tiny / "nowhere"))
    assert words in done.stderr and "Traceback" not in done.stderr and "stand" not in done.stdout
    if code == 2:  # a kernel that is ended early may add a remark of its message library
        assert len([line for line in done.stderr.splitlines() if line.startswith("bnbook:")]) == 1
        assert not given or "part/coin with tosses = 7 failed; its notebook is" in done.stderr
    assert given or not list((tiny / "runs").rglob("*.ipynb"))


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/a b/.coin.running/code/bnbook/chapters/coin.py:12", " (src/bnbook/chapters/coin.py:12)"),
        ("~/b/.coin.running/code/bookpress/results.py:7", " (cell 3, line 9)"),
        ("/usr/lib/python3/json/decoder.py:3", " (cell 3, line 9)"),
    ],
)
def test_a_failure_names_the_line_of_the_chapter_or_its_package_that_led_to_it(file, said):
    calls = [
        "TypeError",
        "\x1b[36mCell\x1b[39m\x1b[32m In[3]\x1b[39m\x1b[32m, line 9\x1b[39m\n",
        f"File \x1b[32m{file}\x1b[39m, in f",
    ]
    assert execution.where(calls) == said and execution.where(["TypeError"]) == ""


def test_a_run_records_what_it_rests_on(tiny_ran):
    content = json.loads((tiny_ran / "runs" / "laptop" / "part" / "coin.json").read_text())
    wanted = {"profile": "laptop", "seeds": 5, "tosses": 400, "rate": 0.5, "names": ["a"]}
    assert content["parameters"] == wanted
    assert content["default_parameters"] is True and content["provenance"]["seeds"] == [0, 1, 2, 3, 4]
    assert content["provenance"]["peak_memory_mib"] > 10 and content["provenance"]["versions"]["torch"]
    assert set(content["files"]) == {"coin.ipynb"}, "a drawing is no evidence"
    notebook = nbformat.read(tiny_ran / "runs" / "laptop" / "part" / "coin.ipynb", as_version=4)
    assert all(
        set(c.metadata) <= {"tags", "mystnb", "papermill", "cellView", "jupyter"} for c in notebook.cells
    )
    assert str(tiny_ran) not in json.dumps(notebook), "trap 7: papermill's metadata carries local paths"


def test_set_seeds_and_params_reach_the_chapter_which_says_what_it_wrote_and_is_no_default_run(tiny):
    (tiny / "p.yml").write_text("tosses: 1e1\nnames: [b, c]\n")
    words = ("--params", "p.yml", "--set", "rate=1e0", "--seeds", "4")
    said = bnbook("run", "coin", *words, root=tiny).stdout
    assert "wrote " in said and "smoke/part/coin.ipynb, coin.json, coin.figures/" in said
    assert "verdicts: 1 not tested at this scale" in said
    content = json.loads((tiny / "runs" / "smoke" / "part" / "coin.json").read_text())
    wanted = {"profile": "smoke", "seeds": 4, "tosses": 10, "rate": 1.0, "names": ["b", "c"]}
    assert content["parameters"] == wanted
    assert content["default_parameters"] is False
    assert content["results"]["heads"]["values"] == [1, 1, 1, 1]


def test_a_rerun_with_fewer_seeds_than_a_test_needs_passes_and_judges_nothing_by_it(tiny, capsys):
    for old, new in (("seeds = 3", "seeds = 6"), ("seeds: 5", "seeds: 6"), ("tosses: 400", "tosses: 1")):
        edit(page(tiny), old, new)
    events = "side: less, threshold: 0.5, events: true"  # six of six tails are needed to show it
    edit(claims_file(tiny), "expected: 0.5, tolerance: 0.2", events)
    assert main(["run", "coin", "--profile", "laptop", "--seeds", "2"]) == 0
    said = capsys.readouterr().out
    assert "passed part/coin (laptop)" in said and "verdicts: 1 open" in said


def test_a_chapter_without_an_overnight_profile_is_skipped_by_all(tiny, capsys):
    assert main(["run", "--all", "--profile", "overnight"]) == 0
    assert capsys.readouterr().out == "skipped part/coin: no overnight profile\n"
    edit(page(tiny), "    paper:", "    overnight: {tosses: 900}\n    paper:")
    assert coin().parameters("overnight")["tosses"] == 900


def test_places_named_from_here_are_the_same_for_the_kernel(tiny, monkeypatch):
    """Its own folder is gone after the run, and trainings in it would be."""
    monkeypatch.setenv("HOME", str(tiny / "home"))
    monkeypatch.setenv("BNBOOK_STORE", "kept")
    monkeypatch.setenv("BNBOOK_RUNS", "~/runs")
    monkeypatch.chdir(tiny)
    add_cell(tiny, "import bookpress.paths\nbookpress.paths.store_folder().mkdir()")
    assert main(["run", "coin"]) == 0
    assert (tiny / "kept").is_dir() and (tiny / "home" / "runs" / "smoke" / "part" / "coin.json").is_file()


def test_a_chapter_runs_once_at_a_time_and_sweeps_what_killed_runs_left_but_not_live_ones(tiny):
    folder = tiny / "runs" / "smoke" / "part"
    for name in ("dead", "live"):
        (folder / f".{name}.running").mkdir(parents=True)
    with FileLock(folder / ".coin.lock"):
        done = bnbook("run", "coin", root=tiny, code=1)
    assert "part/coin is being run by another process" in done.stderr and "by --name" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("*.ipynb"))
    with FileLock(folder / ".live.lock"):
        execution.run_chapter(coin(), "smoke", {})
    assert [path.name for path in folder.glob(".*.running")] == [".live.running"]
    assert (folder / "coin.json").is_file()


def test_what_lies_in_the_folder_of_a_run_beside_this_one_may_come_and_go(tiny, monkeypatch):
    beside = tiny / "runs" / "smoke" / "part" / ".beside.running"
    (beside / "code").mkdir(parents=True)
    looked = []
    monkeypatch.setattr(
        os, "scandir", lambda path=".", scandir=os.scandir: looked.append(str(path)) or scandir(path)
    )
    with FileLock(beside.with_suffix(".lock")):
        execution.sweep(tiny / "runs")
    assert str(beside.parent) in looked and str(beside) not in looked and beside.is_dir()
    execution.sweep(tiny / "runs")
    assert not beside.exists()


#: Nor does anybody else reach it: its sockets lie in the run's own folder.
UNSPOILT = """from pathlib import Path
assert plt.rcParams["figure.edgecolor"] != "red"
assert len([each for each in Path().iterdir() if each.is_socket()]) == 5"""


def test_nothing_that_the_users_own_sessions_start_with_reaches_the_kernel(tiny, monkeypatch):
    home = tiny / "home"
    startup = home / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    spoil = "import numpy\nnumpy.arange = lambda n: [9] * n\n"
    (startup / "00.py").write_text(spoil)
    (home / "start.py").write_text(spoil)
    (home / "site").mkdir()
    (home / "site" / "sitecustomize.py").write_text(spoil)
    (home / "matplotlibrc").write_text("svg.hashsalt: other\nfigure.edgecolor: red\n")
    add_cell(tiny, UNSPOILT)
    monkeypatch.setenv("IPYTHONDIR", str(home / "ipython"))
    monkeypatch.setenv("PYTHONSTARTUP", str(home / "start.py"))
    monkeypatch.setenv("MATPLOTLIBRC", str(home / "matplotlibrc"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(home / "site"), os.environ.get("PYTHONPATH", "")]))
    before = dict(os.environ)
    done = execution.run_chapter(coin(), "smoke", {})
    assert done.results["draws"].tolist() == [0, 1, 2] and dict(os.environ) == before


def test_a_run_with_other_parameters_has_a_place_of_its_own_or_says_what_it_replaced(ran):
    before = (ran / "runs" / "smoke" / "part" / "coin.json").read_bytes()
    done = bnbook("run", "coin", "--name", "biased", "--set", "rate=0.9", root=ran)
    assert str(Path("runs", "biased", "part", "coin.ipynb")) in done.stdout
    assert (ran / "runs" / "smoke" / "part" / "coin.json").read_bytes() == before
    held = bnbook("results", "coin", "--name", "biased", "--json", root=ran)
    assert json.loads(held.stdout)["parameters"]["rate"] == 0.9
    done = bnbook("run", "coin", "--name", "biased", "--set", "rate=0.8", root=ran)
    assert "it replaced a run with rate = 0.9; --name NAME keeps both" in done.stdout
    for name in ("laptop", "store", "../out"):
        assert f"--name {name!r}" in bnbook("run", "coin", "--name", name, root=ran, code=2).stderr


EDITED = """import os, pathlib
path = pathlib.Path(os.environ["EDITED"]) / "normalizers" / "formulas.py"
path.write_text(path.read_text() + "\\nraise RuntimeError('an edit in the midst of a run')\\n")
import bnbook.normalizers.formulas as formulas
assert pathlib.Path(formulas.__file__) != path"""


def test_an_edit_while_a_chapter_runs_does_not_reach_it(tiny):
    copy = tiny / "src" / "bnbook"
    shutil.copytree(Path(bnbook_package.__file__).parents[1], copy.parent)
    add_cell(tiny, EDITED)
    bnbook("run", "coin", root=tiny, alone=True, PYTHONPATH=str(tiny / "src"), EDITED=str(copy))
    held = chapter_runs.fresh_run(coin(), "smoke").results.header["fingerprint"]
    assert held["package"] == stamp.of_chapter(coin().code_cells, {}, [])["package"]


def test_what_runs_is_what_the_commit_is_asked_for(tmp_path, monkeypatch):
    """Files that git does not know, and a package that is not the checkout's."""
    package = tmp_path / "src" / "bnbook"
    for name in ("src/bnbook/a.py", "book/x.md", "requirements.lock", "_config.yml", "notes"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("package: bnbook\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    assert gate.commit()["dirty"], "the package that runs lies elsewhere"
    monkeypatch.setattr(gate, "folders", lambda: {"bnbook": package})
    assert not gate.commit()["dirty"]
    counting = package / "b.py", tmp_path / "_config.yml", tmp_path / "book" / "x.md"
    for path in (*counting, tmp_path / "notes"):
        before = path.read_bytes() if path.exists() else None
        path.write_bytes(b"two")
        assert gate.commit()["dirty"] is (path in counting), path
        path.write_bytes(before) if before else path.unlink()
        assert not gate.commit()["dirty"]


@pytest.mark.parametrize("watched", [True, False])
def test_a_terminal_is_told_how_long_a_silent_chapter_runs(tmp_path, monkeypatch, watched):
    screen = io.StringIO()
    screen.isatty = lambda: watched
    monkeypatch.setattr(execution.sys, "stderr", screen)
    with execution._progress("part/coin", tmp_path / "progress"):
        time.sleep(0.8)
    said = screen.getvalue()
    assert ("part/coin: runs for 1 s" in said) if watched else said == ""
    assert said.endswith("\r\x1b[K") == watched  # taken away before the line that says how it went
