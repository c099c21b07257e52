"""The command line: one line for what went wrong, an exit code that does not lie, results to take away."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import ROOT, VARIABLES, bnbook
from locked_coin import edit

from bnbook.errors import BnbookError, reason
from bookpress import cli, exits, paths, results
from bookpress.pipeline import doctor

SHELL = [
    ("( sleep 2; bnbook list; echo $? >&2 ) | true", "141\n", True),  # a reader that leaves early
    ("bnbook list > /dev/full", "bnbook: No space left on device", False),
    *((f"bnbook list {closed}", "", True) for closed in (">&-", "2>&-", ">&- 2>&-")),
]


@pytest.mark.parametrize(("command", "said", "well"), SHELL)
def test_what_becomes_of_the_streams_is_told_in_one_line_or_is_no_error(ran, command, said, well):
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    words = ["bash", "-c", command.replace("bnbook", f"{sys.executable} -m bnbook")]
    done = subprocess.run(words, env=clean | {"BNBOOK_ROOT": str(ran)}, capture_output=True, text=True)
    assert (said in done.stderr and "Traceback" not in done.stderr) if said else done.stderr == ""
    assert (done.returncode == 0) == well


ASCII = [("claims --runs", "not tested at this scale (smoke run): 0."), ("measure --help", "\\u03b7")]


@pytest.mark.parametrize(("words", "shown"), ASCII)
def test_a_terminal_without_the_characters_still_shows_every_line(ran, words, shown):
    done = bnbook(*words.split(), root=ran, alone=True, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert shown in done.stdout


def test_a_number_keeps_its_sign_in_any_encoding(monkeypatch):
    sink = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", sink)
    monkeypatch.setattr(cli, "_list", lambda _: print("−0.5 ü"))
    assert cli.main(["list"]) is None
    sink.seek(0)
    assert sink.read() == "\\u22120.5 ü\n"


def test_a_place_that_cannot_be_written_is_one_line(ran, capsys, monkeypatch):
    monkeypatch.setenv("BNBOOK_BUILD", str(ran / "_toc.yml"))
    assert cli.main(["build"]) == exits.USAGE
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and ("File exists" in said or "Not a directory" in said)


def test_other_programs_are_read_as_utf8():
    """Not in the encoding of the machine, which on Windows is another."""
    for path in Path(cli.__file__).parents[1].rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {each.arg for each in getattr(node, "keywords", ()) if isinstance(node, ast.Call)}
            assert not names & {"text", "universal_newlines"}, f"{path}:{node.lineno}: say encoding= instead"


def test_line_ends_stay_where_git_would_turn_them(tmp_path):
    shutil.copy(ROOT / ".gitattributes", tmp_path)
    (tmp_path / "a.json").write_bytes(b"{\n}\n")
    git = [
        "git", "-C", str(tmp_path), "-c", "core.autocrlf=true", "-c", "user.name=A", "-c", "user.email=a@b",
    ]  # fmt: skip
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "A file"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    (tmp_path / "a.json").unlink()
    subprocess.run([*git, "checkout", "-q", "a.json"], check=True)
    assert (tmp_path / "a.json").read_bytes() == b"{\n}\n"


#: What is said, all in one line, of words that no command takes; in front of it what the environment says.
USAGE = [
    ("check --profile laptop", "give --runs, too"),
    ("claims --profile laptop", "give --runs, too"),
    ("build --profile laptop", "give --runs, too"),
    ("run coin --seeds 1 --set seeds=2", "both --seeds and --set seeds=… given"),
    ("run coin --name ", "--name ''; expected letters"),
    ("results coin --name ", "--name ''; expected letters"),
    ("results coin --name mine --profile laptop", "both --name and --profile given"),
    ("results coin --profile paper", "has no paper results"),
    ("results coin --name mine", "has no results here; run it, or give another --name"),
    ("claims --name mine", "no such run in runs/mine"),
    ("claims --name ../x", "--name '../x'; expected letters"),
    ("results nothing", "no chapter 'nothing'"),
    ("coursework book", "is there already"),
    ("measure nowhere.py:make --data digits-standin", "no file 'nowhere.py'"),
    ("run coin --set toses=3", "no parameter 'toses'; did you mean tosses? it has: names, profile, rate, seeds, tosses"),
    ("run coin --set tosses=many", "tosses is 'many'; expected int"),
    ("run coin --set profile=paper", "use --profile"),
    ("run coin --seeds 0", "expected at least 1"),
    ("run --all --jobs 0", "--jobs 0; expected at least 1"),
    ("run coin --seeds 1000000000", "seeds is 1000000000; expected int up to 100000: each is a run of its own"),
    ("run coins", "did you mean part/coin?"),
    ("list coins", "did you mean part/coin?"),
    ("run", "no chapter named"),
    ("run coin --all", "give one of them"),
    ("run coin --params none.yml", "no such file"),
    ("run coin --params .", "is a directory; expected a YAML file"),
    ("run coin --params /dev/zero", "has more than 64 KiB"),
    ("run coin --params big.yml", "has more than 64 KiB; expected some lines"),
    ("run coin --params twice.yml", "twice.yml, line 2: 'tosses' stands there and in line 1; keep one of them"),
    ("run coin --params octal.yml", "octal.yml, line 1: 010 is octal to YAML, which reads 8; write 10"),
    ("run coin --set names=[1", "names is '[1'; expected list[str]"),
    ("run coin --set rate=inf", "rate is 'inf'; expected float"),
    ("run coin --set tosses=0", "parameter tosses is 0; expected"),
    ("run coin --profile overnight", "no overnight profile; it has: smoke, laptop, paper"),
    ("publish coin --profile smoke", "never published"),
    ("lock coin --power --spread coin-fair=0", "--spread coin-fair=0; expected a number above 0"),
    ("lock coin --power --spread coin-fair", "--spread coin-fair; expected CLAIM=NUMBER"),
    ("lock coin --spread coin-fair=1", "--spread says something with --power alone"),
    ("lock coin --power --spread coin-unfair=1", "--spread coin-unfair: no claim of these chapters"),
    ("BNBOOK_EXECUTED=elsewhere check", "elsewhere: no such folder; expected the evidence"),
    ("BNBOOK_CORES=abc run coin", "BNBOOK_CORES=abc; expected a number of cores, at least 1"),
    ("BNBOOK_RUNS=big.yml run coin", "big.yml"),
]  # fmt: skip


def test_bad_usage_is_one_line_with_exit_code_2_and_does_nothing(tiny, monkeypatch, capsys):
    monkeypatch.chdir(tiny)
    for name, kind in dict(profile="str", seeds="int", tosses="int", rate="float", names="list[str]").items():
        edit(tiny / "book" / "part" / "coin.md", f"\n{name} = ", f"\n{name}: {kind} = ")
    (tiny / "big.yml").write_text("a: 1\n" * 20_000)
    (tiny / "twice.yml").write_text("tosses: 3\ntosses: 4\n")
    (tiny / "octal.yml").write_text("tosses: 010\n")
    before = sorted(tiny.rglob("*"))
    for words, message in USAGE:
        *variables, given = re.fullmatch(r"(?:(BNBOOK_\w+)=(\S+) )?(.*)", words).groups()
        with monkeypatch.context() as patch:
            if variables[0]:
                patch.setenv(*variables)
            assert cli.main(given.split(" ")) == exits.USAGE, words
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1, (words, said)
        there = sorted(path for path in tiny.rglob("*") if path.suffix != ".lock")
        assert variables[0] or there == before, words
    for words in (["claims", "--wrong", "coin"], ["list", "--wrong"]):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert "unrecognized arguments" in capsys.readouterr().err


def test_a_check_of_the_doctor_that_fails_is_a_row(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "psutil", None)
    lines, good = doctor.report()
    assert not good and any(line.startswith("ok   Python") for line in lines)
    for name in ("device", "memory"):
        (line,) = [line for line in lines if line.startswith(f"BAD  {name} ")]
        assert "cannot be told: ModuleNotFoundError: " in line


def test_the_notebooks_of_make_lab_end_in_one_line_too(tiny):
    (tiny / "_toc.yml").write_text("root: [")
    command = [sys.executable, "-m", "bookpress.pipeline.handout"]
    for folders, word in ([[str(tiny / "lab")], "_toc.yml"], [[], "one folder is needed"]):
        done = subprocess.run([*command, *folders], capture_output=True, encoding="utf-8")
        assert done.returncode == exits.USAGE and done.stderr.count("\n") == 1 and word in done.stderr


def test_the_reason_of_many_errors_is_that_of_the_first():
    assert reason(OSError(28, "No space left on device")) == "No space left on device"
    assert reason(shutil.Error([("a", "b", "[Errno 28] No space left")])) == "[Errno 28] No space left"
    assert reason(OSError()) == "OSError"


def test_no_home_and_no_name(ran, monkeypatch):
    """An unknown user id in a container: no HOME, no entry in the list of users."""

    def unknown(_):
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(RuntimeError):
        Path.home()
    assert cli.main(["check", "--runs"]) == 0


@pytest.mark.parametrize(("gibibytes", "good"), [(1.9, False), (2.1, True)])
def test_the_doctor_asks_for_memory(monkeypatch, gibibytes, good):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=gibibytes * 2**30))
    assert [row[2] for row in doctor._memory()] == [good]


def test_the_doctor_names_a_folder_of_data_that_is_not_there_once(tmp_path, monkeypatch):
    monkeypatch.setenv("BNBOOK_DATA", str(tmp_path / "none"))
    assert [row[::2] for row in doctor._data()] == [("data", False)]


def test_the_claims_of_a_run_with_a_name(ran, capsys):
    shutil.copytree(ran / "runs" / "smoke", ran / "runs" / "mine")
    said = []
    for words in (["--runs"], ["--name", "mine"]):
        assert cli.main(["claims", "coin", *words]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] and "not tested" in said[0]


def test_the_doctor_outside_a_book(tmp_path, monkeypatch):
    """With the package alone, as from its wheel."""

    def none():
        raise BnbookError("no book found")

    monkeypatch.setattr(doctor.paths, "repository_root", none)
    monkeypatch.delenv("BNBOOK_DATA", raising=False)
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path))
    ((name, words, good),) = doctor._book()
    assert (name, good) == ("book", True) and words.startswith("none here: measure")
    assert next(doctor._disk())[2]
    rows = {name: words for name, words, _ in doctor._data()}
    assert rows["mnist"] == doctor.NOT_HERE and "downloaded" in rows["data"]
    (tmp_path / "decoded").mkdir()
    (tmp_path / "decoded" / "mnist.npz").touch()
    assert {name: words for name, words, _ in doctor._data()}["mnist"] == "downloaded before, in the cache"


def test_somebody_elses_jupyter_book_is_not_taken_for_this_one(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "_config.yml").write_text("title: Another\n")
    inner = tmp_path / "inner"
    (inner / "book").mkdir(parents=True)
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    with pytest.raises(
        BnbookError, match="no book found: expected a folder with book/ and a _config.yml that names"
    ):
        paths.repository_root()
    (inner / "_config.yml").write_text("title: Ours\npackage: bnbook\n")
    assert paths._root("", str(inner / "book")) == inner


def test_the_doctor_reads_the_data_and_tries_the_folders(tiny, monkeypatch):
    raw = tiny / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name in "train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1".split():
        (raw / f"{name}-ubyte").write_bytes(b"\0" * 99)
    monkeypatch.setenv("BNBOOK_DATA", str(tiny / "data"))
    monkeypatch.setenv("BNBOOK_CACHE", str(tiny / "cache"))
    ((words, good),) = [row[1:] for row in doctor._data() if row[0] == "mnist"]
    assert not good and "is truncated or altered (another MD5 sum than MNIST's)" in words
    assert all(good for _, _, good in doctor._folders())
    (tiny / "file").touch()
    for place in ("/proc/none", f"{tiny}/file/runs"):  # where nobody can write, not even root
        monkeypatch.setenv("BNBOOK_RUNS", place)
        (words,) = [words for name, words, good in doctor._folders() if name == "runs" and not good]
        assert words.startswith(f"{place} cannot be written (") and words.endswith(
            "; set BNBOOK_RUNS to another"
        )


def test_a_torchvision_of_another_build_is_told(tmp_path, monkeypatch):
    assert list(doctor._operators()) == []
    (tmp_path / "_C.so").write_text("of another build")
    found = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})
    monkeypatch.setattr(doctor, "find_spec", lambda _: found)
    ((name, words, good),) = doctor._operators()
    assert name == "torchvision" and not good and words.startswith("does not fit torch (")


CHAPTER, CLAIMS, CONTENTS = "book/part/coin.md", "book/part/coin.claims.yml", "_toc.yml"
FRONT = "part/coin: `bnbook:` in its front matter (CONTRIBUTING.md has a template): "
BROKEN = [
    (CHAPTER, "title: A coin", "title: [", "part/coin: its front matter, line 14 is not YAML"),
    (CHAPTER, ":tags: [hide-input]", ":tags: [hide-input", "part/coin: no MyST notebook"),
    (CHAPTER, ":tags: [hide-input]", ":tags: hide-input", "part/coin: a cell has 'hide-input', expected array; tags are a"),
    (CHAPTER, ":tags: [hide-input]", ":tags: kept", "part/coin: a cell has 'kept', expected array; tags are a list: write"),
    (CHAPTER, "Is it fair?", ":::{note}\n```{code-cell}\n1\n```\n:::", "part/coin, line 24: a code cell inside a box of"),
    (CHAPTER, "---\njupytext", "\ufeff---\njupytext", "part/coin: its file begins with a byte order mark; save it as"),
    (CHAPTER, "use_style()", "use_style(", "part/coin: code cell 1 behind the parameters, line 6"),
    *((CHAPTER, "Is it fair?", f"Is it{sign}fair?", "part/coin: no MyST notebook") for sign in "\0\f"),
    (CHAPTER, "Is it fair?", "Ist sie gerecht? \udcfc", "part/coin: its file is not UTF-8"),
    (CONTENTS, "root:", "root: [", "_toc.yml, line 3 is not YAML"),
    (CHAPTER, "title: A coin", "title: 2024-99-99", "part/coin: its front matter is not YAML: month"),
    (CHAPTER, "title: A coin", f"title: {'[' * 2000}{']' * 2000}", "part/coin: its front matter is nested more"),
    (CHAPTER, "title: A coin", "title: [A]", FRONT + "title is ['A']; expected a line of text"),
    (CHAPTER, "data: none", "settings: {1: [a]}", FRONT + "settings.2.[key] is 1; expected a text"),
    (CHAPTER, "tosses = 100", "tosses = (", "part/coin: line 3 of its parameters cell: '(' was never closed"),
    (CHAPTER, "tosses = 100", "tosses = {[]: 1}", "part/coin: line 3 of its parameters cell is not `name"),
    (CLAIMS, "kind: level", "kind: [level]", "part/coin.claims.yml: claim coin-fair: test.kind"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "message"), BROKEN)
def test_a_broken_file_of_the_book_is_one_line(tiny, capsys, file, old, new, message):
    text = (tiny / file).read_text()
    assert old in text
    (tiny / file).write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))
    assert cli.main(["run", "coin"]) == exits.USAGE
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith(f"bnbook: {message}")


# ---- what commands take elsewhere ----


MINIMA = "theory/minima"


def test_results_as_lines_and_as_they_are(capsys):
    assert cli.main(["results", MINIMA, "--profile", "laptop"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    held = results.load(MINIMA, "laptop")
    assert len(rows) == sum(held[name].size for name in held)
    name = next(name for name in held if held[name].ndim == 1)
    values = [float(row["value"]) for row in rows if row["name"] == name]
    assert np.array_equal(values, held[name], equal_nan=True)
    assert cli.main(["results", MINIMA, "--profile", "laptop", "--names"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in listed] == [[n, str(len(held[n])), "seeds"] for n in held]
    assert cli.main(["results", MINIMA, "--profile", "laptop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chapter"] == MINIMA


def test_results_as_a_frame():
    pandas = pytest.importorskip("pandas")
    held = results.load(MINIMA, "laptop")
    frame = held.table()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == sum(held[name].size for name in held)


def test_measure_prints_a_table(tmp_path, capsys):
    (tmp_path / "nets.py").write_text(
        "from torch import nn\nmake = lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    words = f"measure {tmp_path}/nets.py:make --data digits-standin --batch 16 --no-eigenvalues"
    assert cli.main(words.split()) == 0
    assert "effective β" in capsys.readouterr().out
