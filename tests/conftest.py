"""Fixtures that several test files share."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import tiny_book
from filelock import FileLock

import bnbook.results

ROOT = Path(__file__).resolve().parents[1]
VARIABLES = [f"BNBOOK_{each}" for each in "ROOT RUNS STORE EXECUTED RESULTS FIGURES".split()]

if "PYTEST_XDIST_WORKER" in os.environ:
    # Before torch is imported: the cores are shared, and a thread that waits for its turn shall not spin.
    os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


def set_kernels() -> None:
    """On AMD processors without AVX-512 oneDNN's kernels for AVX2 write beyond their buffers: the backward pass of
    a narrow residual network in channels-last then ends the process. Those for AVX do not."""
    known = Path("/proc/cpuinfo")
    text = known.read_text(encoding="utf-8") if known.is_file() else ""
    if "AuthenticAMD" in text and "avx512f" not in text:
        os.environ.setdefault("DNNL_MAX_CPU_ISA", "AVX")


set_kernels()  # before torch is imported
#: The tests act as a process that the press started for a chapter; any other only reads the store.
os.environ["BNBOOK_CHAPTER"] = "part/chapter"
#: The press is told of the book, and hears which data are loaded.
importlib.import_module("bnbook.results")

#: Files that begin before all others: the site is built in test_site while one process waits for it and one
#: works; then those that take minutes. What needs the site and is quick comes last.
FIRST = ("test_site", "test_browser", "test_pipeline_run", "test_handout", "test_runs_cluster")
FIRST += ("test_pipeline_side_by_side",)
LAST = ("test_ways", "test_explorers", "test_stamp_traced")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which the processes of `make test` take the files."""
    order = {name: place - len(FIRST) for place, name in enumerate(FIRST)} | dict.fromkeys(LAST, 1)
    items.sort(key=lambda item: order.get(item.path.stem, 0))


def found(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of the book that `bnbook` finds."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BNBOOK_ROOT", str(root))
    return root


@pytest.fixture
def tiny(tmp_path, monkeypatch) -> Path:
    """The root of a fresh one-chapter book, and the one that `bnbook` finds."""
    tiny_book.write(tmp_path, ROOT / "_config.yml")
    return found(tmp_path, monkeypatch)


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book without a chapter."""
    (tmp_path / "book").mkdir()
    (tmp_path / "_config.yml").write_text("package: bnbook\n")
    monkeypatch.setenv("BNBOOK_ROOT", str(tmp_path))
    return tmp_path


@pytest.fixture
def own_store(tmp_path, monkeypatch) -> Path:
    """The folder of a results store of one's own; what trainings say of themselves goes to `said` beside it."""
    from bookpress import results

    monkeypatch.setenv("BNBOOK_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("BNBOOK_PROGRESS", str(tmp_path / "said"))
    for name in ("BNBOOK_RESULTS", "BNBOOK_SCHEDULER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(results, "_session", results.Results())
    return tmp_path / "store"


@pytest.fixture(scope="session")
def the_book():
    """The real book's claims and of each chapter the committed run that the gate passes."""
    from bookpress import claims
    from bookpress.pipeline import chapters, gate, prose

    runs = {chapter.name: gate.passed_run(chapter) for chapter in chapters.discover()}
    return prose.Pages(runs, claims.load_claims())


@pytest.fixture(scope="session")
def book_rows(the_book):
    """A row for each of the real book's claims."""
    return list(the_book.rows.values())


@pytest.fixture(scope="module")
def browser():
    import browsing

    with browsing.chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def site(request) -> Path:
    """The built site, or that which BNBOOK_SITE names."""
    named = os.environ.get("BNBOOK_SITE")
    return Path(named).resolve() if named else request.getfixturevalue("built_site") / "html"


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A temporary folder that the first of the test processes makes which needs it."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, done, failed = (base / f"{name}{ending}" for ending in ("", ".done", ".failed"))
    with FileLock(base / f"{name}.lock"):
        assert not failed.exists(), f"{name} could not be made: {failed.read_text(encoding='utf-8')}"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                make(folder)
            except BaseException as error:  # minutes, which the next test need not spend on the same
                failed.write_text(str(error), encoding="utf-8")
                raise
            done.touch()
    return folder


@pytest.fixture(scope="session")
def tiny_ran(tmp_path_factory) -> Path:
    """A one-chapter book whose chapter ran at smoke and at laptop; copy it before changing it."""
    return made_once(tmp_path_factory, "ran", run_tiny)


def run_tiny(root: Path) -> None:
    tiny_book.write(root, ROOT / "_config.yml")
    git = ["git", "-C", str(root), "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    bnbook("lock", root=root)
    for words in (["init", "-q"], ["add", "book", "_config.yml", "_toc.yml"], ["commit", "-qm", "A coin"]):
        subprocess.run([*git, *words], check=True)
    for profile in ("smoke", "laptop"):
        bnbook("run", "coin", "--profile", profile, root=root)


@pytest.fixture
def ran(tiny_ran, tmp_path, monkeypatch) -> Path:
    """A private copy of `tiny_ran`, and the book that `bnbook` finds."""
    shutil.copytree(tiny_ran, tmp_path / "book")
    return found(tmp_path / "book", monkeypatch)


def bnbook(
    *words: str, root: Path, code: int = 0, alone: bool = False, **environment: str
) -> subprocess.CompletedProcess:
    """Run the command as a user does who stands in the book's folder, and check its exit code.

    In this process, which has what a command takes three seconds to import; `alone` in one of its own.
    """
    command = [sys.executable, "-m", "bnbook", *words]
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    clean |= {"BNBOOK_ROOT": str(root), **environment}
    if alone:
        done = subprocess.run(command, capture_output=True, text=True, env=clean, cwd=root, timeout=1800)
    else:
        done = subprocess.CompletedProcess(command, *here(words, root, clean))
    assert done.returncode == code, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def here(words: tuple[str, ...], root: Path, environment: dict[str, str]) -> tuple[int, str, str]:
    """The command's exit code and what it says."""
    from bnbook.cli import main

    said = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said[0]), redirect_stderr(said[1]):
        patch.chdir(root)
        for name in set(os.environ) - set(environment):
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            code = main(list(words))
        except SystemExit as ended:
            code = ended.code
    return code or 0, *(each.buffer.getvalue().decode("utf-8") for each in said)


@pytest.fixture(scope="session")
def built_site(tmp_path_factory) -> Path:
    """The site folder of the real book, every chapter run at the smoke profile."""
    return made_once(tmp_path_factory, "site", build_site)


def build_site(site: Path) -> None:
    """The runs, with their trainings, are those of the last time where nothing has changed since and the gate
    still passes them."""
    kept = ROOT / "runs" / "tests"
    runs = kept / checkout()
    places = {"BNBOOK_RUNS": str(runs), "BNBOOK_STORE": str(runs / "store")}
    try:
        assert runs.is_dir()
        bnbook("check", "--runs", "--profile", "smoke", root=ROOT, **places)
    except AssertionError:
        shutil.rmtree(kept, ignore_errors=True)
        traces = runs / "traces"  # which functions of the package each chapter ran: see tracing/
        traces.mkdir(parents=True)
        path = os.pathsep.join(filter(None, [str(ROOT / "tests/tracing"), os.environ.get("PYTHONPATH")]))
        traced = places | {"BNBOOK_TRACES": str(traces), "PYTHONPATH": path}
        bnbook("run", "--all", "--profile", "smoke", root=ROOT, alone=True, **traced)
    building = places | {"BNBOOK_BUILD": str(site)}
    bnbook("build", "--runs", "--profile", "smoke", root=ROOT, alone=True, **building)
    (site / "runs").symlink_to(runs)


def checkout() -> str:
    """A hash of everything that a run of the book rests on: package, book, lock, what is installed."""
    files = [ROOT / "_config.yml", ROOT / "_toc.yml", ROOT / "requirements.lock"]
    files += [path for folder in ("src", "book", "tests/tracing") for path in (ROOT / folder).rglob("*")]
    digest = hashlib.sha256(f"{sys.version} {ROOT}".encode())  # traces hold the paths of files
    for path in sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts):
        digest.update(f"{path.relative_to(ROOT)} {path.stat().st_size}\n".encode() + path.read_bytes())
    installed = (f"{found.name} {found.version}\n" for found in importlib.metadata.distributions())
    digest.update("".join(sorted(installed)).encode())
    return digest.hexdigest()[:16]
