"""A bundle runs without a network and without git, and what it gives comes back only as it was made."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tiny_book

from bnbook.bundle import archive, importing, making, script, vouching
from bnbook.errors import BnbookError
from bnbook.pipeline.chapters import chapters
from bnbook.profiles import PROFILES
from bnbook.runs import kinds

ROOT = Path(__file__).resolve().parents[1]
TRAINED = tiny_book.CHAPTER.replace(
    "use_style()\n",
    """use_style()
from bnbook.runs import train_all
from bnbook.deep_linear import LinearArm
train_all([LinearArm(steps=3)], range(2), workers=1)
""",
)

LOOPBACK = """import fcntl, os, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh22x", b"lo", 0x41))
os.execvp(sys.argv[1], sys.argv[1:])
"""
#: A name space in which this machine can reach itself and nothing else.
ALONE = ["unshare", "-rn", sys.executable, "-c", LOOPBACK]


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "core.autocrlf=false"]
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A committed book of one chapter that trains, with the package's own sources."""
    root = tmp_path_factory.mktemp("book")
    tiny_book.write(root, ROOT / "_config.yml", chapter=TRAINED)
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "requirements.lock", root)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a book")
    return root


@pytest.fixture
def here(book, tmp_path, monkeypatch):
    monkeypatch.setenv("BNBOOK_ROOT", str(book))
    monkeypatch.setenv("BNBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "store"))
    return book


@pytest.fixture(scope="module")
def results(book, tmp_path_factory):
    """What run.sh leaves, its network switched off where that is allowed."""
    place = tmp_path_factory.mktemp("away")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNBOOK_ROOT", str(book))
        making.make(place / "bundle", chapters.discover(), "smoke", wheels=False)
    allowed = subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0
    bare = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [*(ALONE if allowed else []), "sh", str(place / "bundle" / "run.sh"), "smoke"],
        env=bare | {"BNBOOK_PYTHON": sys.executable, "BNBOOK_PART_MIB": "0.0001"},
        capture_output=True,
        text=True,
        cwd=place,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted((place / "bundle" / "results").glob("*.tar"))


def test_what_comes_back_is_taken_over(here, results):
    assert len(results) == 3  # parts: the chapter, and each of its two trainings
    taken = importing.take(results)
    assert taken.chapters == ("part/coin",) and taken.trainings == 2 and not taken.refused
    header = json.loads((Path(os.environ["BNBOOK_RUNS"]) / "smoke/part/coin.json").read_text())
    commit = subprocess.run(["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True)
    assert header["provenance"]["commit"] == commit.stdout.strip() and not header["provenance"]["dirty"]
    again = importing.take(results)
    assert (again.trainings, again.known) == (0, 2)


def test_other_code_is_refused(here, results, monkeypatch, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(here, other)
    path = other / "book/part/coin.md"
    path.write_text(path.read_text().replace("rate = 0.5", "rate = 0.6"))
    monkeypatch.setenv("BNBOOK_ROOT", str(other))
    taken = importing.take(results)
    assert not taken.chapters and "stale" in taken.refused[0]
    assert not (Path(os.environ["BNBOOK_RUNS"]) / "smoke").exists()


def rewritten(source: Path, target: Path, change) -> Path:
    """The archive with its members changed: change(name, content) -> content, or None to leave it out."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for member in old:
            content = change(member.name, old.extractfile(member).read())
            if content is not None:
                member.size = len(content)
                new.addfile(member, io.BytesIO(content))
    return target


@pytest.mark.parametrize("kind", ["altered", "missing", "cut", "escaping"])
def test_what_is_not_whole_is_refused(here, results, tmp_path, kind):
    bad = tmp_path / "bad.tar"
    if kind == "altered":
        rewritten(
            results[0],
            bad,
            lambda name, content: content + b" " if name.endswith(".json") and "/" in name else content,
        )
    elif kind == "missing":
        rewritten(results[0], bad, lambda name, content: None if name.endswith(".svg") else content)
    elif kind == "cut":
        bad.write_bytes(results[0].read_bytes()[:2000])
    else:
        with tarfile.open(bad, "w") as tar:
            tar.addfile(tarfile.TarInfo("../outside"), io.BytesIO())
    with pytest.raises(BnbookError, match=r"bad\.tar is not a whole archive"):
        importing.take([results[1], bad])
    assert not (tmp_path / "store").exists()  # nothing of the good one either


@pytest.mark.parametrize(
    "name", ["runs/{}", "store/a/../../b", "runs/c:/d", "runs\\\\e", "/f", "runs/", ".."]
)
def test_a_member_that_leads_elsewhere_is_refused(here, tmp_path, name):
    name, victim = name.format(tmp_path / "victim"), tmp_path / "victim"
    lock = hashlib.sha256((ROOT / "requirements.lock").read_bytes()).hexdigest()
    files = {name: hashlib.sha256(b"x").hexdigest()}
    manifest = dict(schema=1, profile="laptop", commit="c", lock=lock, files=files)
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        for each, content in {archive.MANIFEST: json.dumps(manifest).encode(), name: b"x"}.items():
            member = tarfile.TarInfo(each)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    with pytest.raises(BnbookError, match="expected plain files only"):
        importing.take([tmp_path / "bad.tar"])
    assert not victim.exists()


@pytest.mark.parametrize("missing", ["lock", "commit", "profile", "schema", "files"])
def test_a_manifest_that_lacks_something_is_one_line(here, results, tmp_path, missing):
    def less(name, held):
        if name != archive.MANIFEST:
            return held
        return json.dumps({key: each for key, each in json.loads(held).items() if key != missing}).encode()

    with pytest.raises(BnbookError, match="less.tar is not a whole archive"):
        importing.take([rewritten(results[0], tmp_path / "less.tar", less)])


def test_a_linked_data_set_is_bundled_as_what_it_is(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("images")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cifar-10-batches-py").symlink_to(tmp_path / "real")
    monkeypatch.setenv("BNBOOK_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(making, "_sets", lambda chapter, profile: ["cifar10"])
    monkeypatch.setattr(making.data, "prepare", lambda name: None)
    making._data(tmp_path / "bundle", [None], "laptop")
    with tarfile.open(tmp_path / "bundle" / "data.tar") as tar:
        assert tar.extractfile("cifar-10-batches-py/file").read() == b"images"


def test_another_version_is_named(here, results, tmp_path):
    def later(name, held):
        return json.dumps(json.loads(held) | {"schema": 2}).encode() if name == archive.MANIFEST else held

    bad = rewritten(results[0], tmp_path / "later.tar", later)
    with pytest.raises(BnbookError, match="form 2, this book reads form 1"):
        importing.take([bad])


def test_a_bad_archive_is_refused_before_torch_is_imported(tmp_path):
    words = "import sys; from bnbook import cli; print(cli.main(['import', '.']), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "2 False\n" and done.stderr.startswith("bnbook: . is not a whole archive")


@pytest.mark.parametrize(
    ("profile", "part", "said"),
    [
        ("smokey", "1", "smoke, laptop"),
        ("smoke", "much", "=much"),
        ("smoke", "0", "=0"),
        ("smoke", ".", "=."),
    ],
)
def test_the_script_refuses_bad_words_before_it_runs_anything(tmp_path, profile, part, said):
    (tmp_path / "run.sh").write_text(script.RUN)
    words = ["sh", str(tmp_path / "run.sh"), profile]
    bare = {"PATH": os.environ["PATH"], "BNBOOK_PYTHON": "false", "BNBOOK_PART_MIB": part}
    done = subprocess.run(words, env=bare, capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


FAKE = """#!/bin/sh
case "$*" in
    *archive*) echo packed >> "$0.said" ;;
    *) echo "$*" >> "$0.said"; exec sleep 20 ;;
esac
"""


@pytest.mark.skipif(sys.platform == "win32", reason="run.sh is for a shell")
def test_a_script_that_is_stopped_packs_what_is_there(tmp_path):
    """Within the half minute that a cluster leaves a job whose time is over."""
    (tmp_path / "source").mkdir()
    (tmp_path / "run.sh").write_text(script.RUN)
    (tmp_path / "python").write_text(FAKE)
    (tmp_path / "python").chmod(0o755)
    bare = {"PATH": os.environ["PATH"], "BNBOOK_PYTHON": str(tmp_path / "python")}
    said = tmp_path / "python.said"
    with subprocess.Popen(["sh", str(tmp_path / "run.sh"), "smoke"], env=bare) as running:
        while not said.exists() and running.poll() is None:
            time.sleep(0.02)
        running.terminate()
        assert running.wait(timeout=10) == 130
    assert said.read_text() == "-m bnbook run --all --profile smoke\npacked\n"


def test_the_script_knows_the_profiles():
    assert f"in {'|'.join(PROFILES)})" in script.RUN


def test_a_training_under_a_wrong_name_is_refused(here, results, tmp_path):
    def swap(name, content):
        if name == archive.MANIFEST:
            manifest = json.loads(content)
            manifest["files"] = {f"store/{'0' * 64}.npz": each for each in manifest["files"].values()}
            return json.dumps(manifest).encode()
        return content

    moved = rewritten(results[1], tmp_path / "moved.tar", swap)
    with tarfile.open(moved) as old, tarfile.open(tmp_path / "lie.tar", "w") as new:
        for member in old:
            content = old.extractfile(member).read()
            member.name = member.name if member.name == archive.MANIFEST else f"store/{'0' * 64}.npz"
            new.addfile(member, io.BytesIO(content))
    taken = importing.take([tmp_path / "lie.tar"])
    assert taken.trainings == 0 and "not what its name says" in taken.refused[0]


def test_a_changed_source_is_dirty(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    vouching.write(tmp_path, "c0ffee")
    assert vouching.read(tmp_path) == {"commit": "c0ffee", "dirty": False}
    (tmp_path / "src" / "a.py").write_text("x = 2\n")
    assert vouching.read(tmp_path)["dirty"]


def test_bad_bundles_leave_nothing(here, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(BnbookError, match="is there already"):
        making.make(tmp_path / "there", [], "smoke", wheels=False)
    with pytest.raises(BnbookError, match="has no nonsense"):
        making.make(tmp_path / "new", [], "smoke", without=["nonsense"])
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_key_is_found_again_from_the_file(results):
    _, content = archive.read(results[1])
    ((name, held),) = content.items()
    with np.load(io.BytesIO(held)) as file:
        meta = json.loads(str(file["meta"]))
    assert (
        kinds.key({k: v for k, v in meta.items() if k not in ("seconds", "chapter", "finished")})
        == Path(name).stem
    )


@pytest.mark.skipif(sys.platform == "win32", reason="run.sh is for a shell")
def test_packages_of_the_machines_own_environment_are_seen(tmp_path):
    """`--without torch`: it stands in a virtual environment there, beneath which run.sh makes its own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "own")], check=True)
    (site,) = (tmp_path / "own" / "lib").glob("python*/site-packages")
    (site / "large.py").write_text("large = 'there'\n")
    away = tmp_path / "away"
    for folder in ("wheels", "source/src/bnbook/bundle"):
        (away / folder).mkdir(parents=True)
    (away / "wheels" / "wheels.txt").touch()
    with zipfile.ZipFile(away / "wheels" / "small-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("small.py", "")
        wheel.writestr("small-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1\n")
        wheel.writestr(
            "small-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("small-1.dist-info/RECORD", "")
    package = away / "source" / "src" / "bnbook"
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text("import large, small\nprint('both are', large.large)\n")
    (package / "bundle" / "__init__.py").touch()
    (package / "bundle" / "archive.py").touch()
    (away / "run.sh").write_text(script.RUN)
    bare = {"PATH": os.environ["PATH"], "BNBOOK_PYTHON": str(tmp_path / "own" / "bin" / "python")}
    done = subprocess.run(["sh", str(away / "run.sh"), "smoke"], env=bare, capture_output=True, text=True)
    assert done.stdout == "both are there\n" and done.returncode == 0, done.stderr
