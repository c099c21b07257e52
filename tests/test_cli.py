"""The command line's own manners: one line for what went wrong, and an exit code that does not lie."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import VARIABLES, bnbook

from bnbook import cli
from bnbook.errors import BnbookError, reason


def test_a_reader_that_leaves_early_is_not_told_that_all_is_well(ran):
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = f"( sleep 2; {sys.executable} -m bnbook list; echo $? >&2 ) | true"
    done = subprocess.run(
        ["bash", "-c", command], env=clean | {"BNBOOK_ROOT": str(ran)}, capture_output=True, text=True
    )
    assert done.stderr == "141\n"


def test_a_terminal_without_the_characters_still_shows_every_line(ran):
    done = bnbook("claims", "--runs", root=ran, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert "not tested at this scale (smoke run): 0." in done.stdout


def test_a_number_keeps_its_sign_in_any_encoding(monkeypatch):
    sink = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", sink)
    monkeypatch.setattr(cli, "_list", lambda _: print("−0.5 ü"))
    assert cli.main(["list"]) is None
    sink.seek(0)
    assert sink.read() == "\\u22120.5 ü\n"


@pytest.mark.parametrize("place", ["BNBOOK_RUNS", "BNBOOK_BUILD"])
def test_a_place_that_cannot_be_written_is_one_line(ran, capsys, monkeypatch, place):
    (ran / "file").touch()
    monkeypatch.setenv(place, str(ran / "file"))
    words = ["run", "coin"] if place == "BNBOOK_RUNS" else ["build"]
    assert cli.main(words) == cli.USAGE
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and ("File exists" in said or "Not a directory" in said)


def test_a_full_disk_is_one_line(ran):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m bnbook list > /dev/full"],
        env=os.environ | {"BNBOOK_ROOT": str(ran)}, capture_output=True, text=True,
    )  # fmt: skip
    assert "bnbook: No space left on device" in done.stderr and "Traceback" not in done.stderr
    assert done.returncode


def test_the_reason_of_many_errors_is_that_of_the_first():
    import shutil

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


def test_the_doctor_outside_a_book(tmp_path, monkeypatch):
    """With the package alone, as from its wheel."""
    from bnbook.pipeline import doctor

    def none():
        raise BnbookError("no book found")

    monkeypatch.setattr(doctor.paths, "repository_root", none)
    monkeypatch.delenv("BNBOOK_DATA", raising=False)
    monkeypatch.setenv("BNBOOK_CACHE", str(tmp_path))
    ((name, words, good),) = doctor._book()
    assert (name, good) == ("book", True) and words.startswith("none here: measure")
    assert doctor._disk()[0][2]
    rows = {name: words for name, words, _ in doctor._data()}
    assert rows["mnist"] == doctor.NOT_HERE and "downloaded" in rows["data"]
    (tmp_path / "decoded").mkdir()
    (tmp_path / "decoded" / "mnist.bin").touch()
    assert {name: words for name, words, _ in doctor._data()}["mnist"] == "downloaded before, in the cache"


def test_a_torchvision_of_another_build_is_told(tmp_path, monkeypatch):
    from bnbook.pipeline import doctor

    assert doctor._operators() == []
    (tmp_path / "_C.so").write_text("of another build")
    found = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})
    monkeypatch.setattr(doctor, "find_spec", lambda _: found)
    ((name, words, good),) = doctor._operators()
    assert name == "torchvision" and not good and words.startswith("does not fit torch (")


CHAPTER, CONTENTS = "book/part/coin.md", "_toc.yml"
BROKEN = [
    (CHAPTER, "title: A coin", "title: [", "part/coin: its front matter, line 14 is not YAML"),
    (CHAPTER, ":tags: [hide-input]", ":tags: [hide-input", "part/coin: no MyST notebook"),
    (CHAPTER, "use_style()", "use_style(", "part/coin: code cell 1 behind the parameters, line 6"),
    (CHAPTER, "Is it fair?", "Ist sie gerecht? \udcfc", "part/coin: its file is not UTF-8"),
    (CONTENTS, "root:", "root: [", "_toc.yml, line 3 is not YAML"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), BROKEN)
def test_a_broken_file_of_the_book_is_one_line(tiny, capsys, file, old, new, message):
    text = (tiny / file).read_text()
    assert old in text
    (tiny / file).write_bytes(text.replace(old, new).encode("utf-8", "surrogateescape"))
    assert cli.main(["run", "coin"]) == cli.USAGE
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith(f"bnbook: {message}")


def test_evidence_that_was_named_and_is_not_there(tiny, capsys, monkeypatch):
    monkeypatch.setenv("BNBOOK_EXECUTED", str(tiny / "elsewhere"))
    assert cli.main(["check"]) == cli.USAGE
    assert "elsewhere: no such folder; expected the evidence" in capsys.readouterr().err


def test_cores_that_are_no_number(tiny, capsys, monkeypatch):
    monkeypatch.setenv("BNBOOK_CORES", "abc")
    assert cli.main(["run", "coin"]) == cli.USAGE
    assert capsys.readouterr().err == "bnbook: BNBOOK_CORES=abc; expected a number of cores, at least 1\n"
