"""Running chapters: kernels, processes side by side, and what watches them."""

from __future__ import annotations

import datetime
import importlib
import multiprocessing
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from bookpress import atomic, claims, exits, paths, results, stamp
from bookpress.book import PRESS, book, folders
from bookpress.claims import locks
from bookpress.claims.judging import other_settings
from bookpress.cores import cores, end_with_parent, surroundings
from bookpress.errors import PressError, reason
from bookpress.pipeline import chapter_runs, compare, gate, handout, kernels, pictures
from bookpress.pipeline.chapter_runs import Evidence, fresh_run, move
from bookpress.pipeline.chapters import Chapter
from bookpress.profiles import BUDGETS
from bookpress.runs import pool

# ---- One notebook executed by papermill, in a kernel of this Python that finds the run's own copy of the package
# and nothing that its user's own sessions start with.

#: How one speaks to a kernel: where the system has them by sockets in the run's own folder, which are nobody else's
#: and need no free port.
TRANSPORT = "tcp" if os.name == "nt" else "ipc"
#: What stopped a run that changed values may have stopped: neither the kernel's end nor the disk's state.
BY_A_VALUE = re.compile(r"cell \d+: (?!\w+: \[Errno)")
#: Seconds within which a kernel must answer: on a machine busy with other things a minute is too short.
ANSWERS_WITHIN = 180
#: Letters of the folder for temporary files: with those of a socket in it they must stay below 108.
LONGEST_TEMPORARY = 60


def copy_packages(scratch: Path) -> Path:
    """The book's package and the press as they are now, in `scratch/code`: what the run imports and is hashed by.
    An edit during the run does not reach them."""
    code = scratch / "code"
    for name, folder in folders().items():
        shutil.copytree(folder, code / name, ignore=shutil.ignore_patterns("__pycache__"))
    traced = "import bnbook_tracing\n" if os.environ.get("BNBOOK_TRACES") else ""  # of the tests
    (code / "sitecustomize.py").write_text(traced, encoding="utf-8")
    (code / "usercustomize.py").touch()
    return code


def execute_notebook(source: Path, work: Evidence, values: dict[str, Any], called: str) -> str | None:
    """Execute `source`, beside which lie the copies of the packages; the first line of what went wrong, or None;
    PressError, which begins with what the run is `called`, where the chapter met input that the user can mend."""
    import papermill
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from traitlets.config import Config

    (source.parent / "own").mkdir(exist_ok=True)
    (source.parent / "matplotlibrc").touch()  # the first that Matplotlib looks for is the working folder's
    try:
        found = surroundings(_environment(source.parent, work), without=["PYTHONSTARTUP"])
        with found, _progress(work.chapter.name, source.parent / "progress"):
            papermill.execute_notebook(
                source,
                work.notebook_path,
                parameters=values,
                kernel_name="python3",
                progress_bar=False,
                start_timeout=ANSWERS_WITHIN,
                cwd=source.parent,
                extra_arguments=["--log-level=CRITICAL"],  # its own remarks do not belong in the terminal
                config=Config({"KernelManager": {"transport": TRANSPORT}}),
            )
    except papermill.PapermillExecutionError as error:
        if error.ename == PressError.__name__:
            raise PressError(f"{called}: {error.evalue}") from None
        said = f"cell {error.exec_count}: {error.ename}: {error.evalue}".rstrip(": ")
        return said + where(error.traceback)
    except CellExecutionError as error:
        return f"a cell failed: {error.ename}: {error.evalue}".rstrip(": ")
    except (DeadKernelError, CellTimeoutError) as error:
        return f"the kernel died: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    except RuntimeError as error:
        if "before replying" not in str(error) and "didn't respond" not in str(error):
            raise
        return f"the kernel did not start: {error}"
    finally:
        _end_kernels(source.parent)
    return None


#: What colours a kernel's words, and how it names a frame of the copied code or of a cell.
COLOUR = re.compile(r"\x1b\[[\d;]*m")
FRAME = re.compile(
    r"File .*?\.running[/\\]code[/\\](?P<file>\S+?:\d+)|Cell In\[(?P<cell>\d+)\], line (?P<line>\d+)"
)


def where(calls: Sequence[str]) -> str:
    """The last line of the chapter's cells or its package that a kernel's traceback leads through, in brackets."""
    frames = [found for call in calls if (found := FRAME.match(COLOUR.sub("", call)))]
    own = [
        each for each in frames if not (each["file"] or "").startswith(PRESS)
    ]  # who calls the press made the slip
    if not own:
        return ""
    last = own[-1]
    return f" (src/{last['file']})" if last["file"] else f" (cell {last['cell']}, line {last['line']})"


def _end_kernels(scratch: Path) -> None:
    """An interruption leaves a kernel to itself, which would tell of its folder that is gone."""
    import psutil

    here = psutil.Process()
    for child in here.children():
        with suppress(psutil.Error):
            # a kernel works there; until it has begun it is a copy of this process
            if Path(child.cwd()) == scratch.resolve() or child.cmdline() == here.cmdline():
                child.kill()
                child.wait()


def _environment(scratch: Path, work: Evidence) -> dict[str, str]:
    """What a kernel finds around it while it runs."""
    own_python, before = Path(sys.executable).parent, os.environ
    return {
        "BNBOOK_RESULTS": str(work.results_path),
        "BNBOOK_FIGURES": str(work.figures_folder),
        "BNBOOK_CHAPTER": work.chapter.name,
        "BNBOOK_PROGRESS": str(scratch / "progress"),
        "BNBOOK_ROOT": str(paths.repository_root()),
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": str(scratch / "own"),
        "IPYTHONDIR": str(scratch / "own" / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(scratch / "own" / "jupyter"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(scratch / "code"), before.get("PYTHONPATH")])),
        "PATH": os.pathsep.join(filter(None, [str(own_python), before.get("PATH")])),
    }


@contextmanager
def _progress(label: str, said: Path) -> Iterator[None]:
    """What the chapter's trainings say of themselves goes to the terminal: the newest line in place, in a log
    one each half minute. A terminal is told how long a chapter runs that has nothing to say."""
    said.touch()
    over, watched, started = threading.Event(), sys.stderr.isatty(), time.monotonic()

    def show() -> None:
        shown, own = "", False  # own: it is how long the chapter runs
        while not over.wait(0.5 if watched else 30):
            line = said.read_text(encoding="utf-8").rpartition("\n")[0].rpartition("\n")[2]
            own = not line and watched
            line = f"runs for {time.monotonic() - started:.0f} s" if own else line
            if line and line != shown:
                shown = line
                text = f"\r\x1b[K{label}: {line}" if watched else f"{label}: {line}\n"
                print(text, end="", file=sys.stderr, flush=True)
        if shown and watched:
            print("\r\x1b[K" if own else "\n", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# ---- Run one chapter with papermill in a scratch folder, then put notebook, results and figures in place -----------
# together.


#: What a run's last cell writes. Papermill calls a cell "completed" whose kernel was killed or ran out of time.
ENDED = "ended"


class ChapterFailed(Exception):
    """A chapter whose run stopped or did not pass the gate; the message is what to read.

    by_values: a cell raised, and parameters were not the profile's, so that other ones are the first thing to try.
    """

    by_values = False


def run_chapter(
    chapter: Chapter, profile: str, changes: dict[str, Any], *, name: str | None = None
) -> Evidence:
    """Execute `chapter` at `profile` with `changes` to its parameters; returns the evidence, in runs/PROFILE
    or runs/NAME.

    Raises ChapterFailed when a cell fails or the gate refuses; the failed notebook is kept as
    NAME.failed.ipynb, with its numbers as NAME.failed.json, and an earlier good run stays as it was. Raises
    PressError where the chapter met input that the user can mend.
    """
    import nbformat

    parameters = chapter.parameters(profile)
    values = parameters | changes
    other = _differing(values, parameters)
    called = f"{chapter.name} with {other}" if other else chapter.name
    target = fresh_run(chapter, profile, name)
    if "data" in values:  # now, where a download can show its progress and a fault is the user's to mend
        book().data.prepare(values["data"])

    place = target.notebook_path.parent
    running = ChapterFailed(
        f"{chapter.name} is being run by another process into {place}; wait for it, or run this one into a folder of "
        "its own by --name"
    )
    lock = atomic.alone(place / f".{target.notebook_path.stem}.lock", running)
    with lock, _scratch_folder(target) as scratch:
        # Taken now: an edit during a long run, of code or of a claim's threshold, must not pass as what ran.
        packages = copy_packages(scratch)
        code = stamp.Code(packages)
        drawn_with = pictures.made_with(chapter, [packages / name for name in folders()])
        made = gate.commit() | {"fingerprint": stamp.of_chapter(chapter.code_cells, values, [], code)}
        made |= {"claims": claims.chapter_claims(chapter.name), "locks": locks.read().head(chapter.name)}
        work = Evidence(chapter, scratch)
        work.figures_folder.mkdir(parents=True)
        page = chapter.notebook.copy()
        last = nbformat.v4.new_code_cell(f"open({str(scratch / ENDED)!r}, 'x').close()", id=ENDED)
        page["cells"] = [*page.cells, last]
        nbformat.write(page, scratch / "input.ipynb")
        started = time.time()
        failure = execute_notebook(scratch / "input.ipynb", work, values, called)
        _complete(work, values, values == parameters, made | {"seconds": round(time.time() - started, 1)})
        problems = [failure] if failure else gate.problems(work, fresh=True)
        if not problems and not (scratch / ENDED).exists():
            problems = ["the kernel ended before its last cell did; perhaps memory ran out"]
        for part in ("notebook_path", "results_path"):
            apart = getattr(target, part).with_suffix(f".failed{getattr(target, part).suffix}")
            apart.unlink(missing_ok=True)  # of the run before
            if problems:
                os.replace(getattr(work, part), apart)  # the numbers, too: somebody may have looked at them
        if problems:
            failed = target.notebook_path.with_suffix(".failed.ipynb")
            error = ChapterFailed("\n  ".join([f"{called} failed; its notebook is {failed}", *problems]))
            error.by_values = bool(other and failure and BY_A_VALUE.match(failure))
            raise error
        (work.figures_folder / pictures.MADE_WITH).write_text(drawn_with, encoding="utf-8")
        move(work, target)
    return target


def _complete(work: Evidence, values: dict[str, Any], default: bool, made: dict[str, Any]) -> None:
    """Scrub the notebook and complete the results file's header."""
    import nbformat

    notebook = nbformat.read(work.notebook_path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.get("id") != ENDED]
    gate.scrub(notebook)
    nbformat.write(notebook, work.notebook_path)
    recorded = results.read(work.results_path) if work.results_path.is_file() else results.Results()
    run, chapter, profile = recorded.header, work.chapter, values["profile"]
    rows, device = run.get("data", []), {"name": "cpu", "threads": 1} | run.get("device", {})
    other = other_settings(values, chapter.parameters(profile), rows)
    recorded.header = {
        "chapter": chapter.name,
        "profile": profile,
        "parameters": values,
        "default_parameters": default,
        **({"other_settings": other} if other else {}),
        "fingerprint": made["fingerprint"] | {"data": stamp.data_digest(rows)},
        "claims": {claim.id: claim.test_hash for claim in made["claims"]},
        "locks": made["locks"],
        "judged": chapter_runs.as_recorded(made["claims"], recorded, profile, chapter.exact),
        "files": {},
        "data": rows,
        "provenance": {
            "commit": made["commit"],
            "dirty": made["dirty"],
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "device": device["name"],
            "threads": device["threads"],
            "kernels": gate.kernels(),
            "seeds": sorted({seed for entry in recorded.entries.values() for seed in entry["seeds"]}),
            "seconds": made["seconds"],
            "store": run.get("store", {}),
            "peak_memory_mib": peak_mib(),
            "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "versions": {name: version(name) for name in gate.PACKAGES},
        },
    }
    atomic.write_json(work.results_path, results.as_content(recorded))
    with suppress(PressError, StopIteration):  # of a chapter that failed; why is said where it is judged
        handout.finish(Evidence(chapter, work.folder))
    recorded.header["files"] = work.files()
    recorded.header["content"] = gate.content_digest(recorded)
    atomic.write_json(work.results_path, results.as_content(recorded))


def sweep(folder: Path) -> None:
    """Remove what killed runs left: scratch folders whose lock nobody holds. Those of runs beside this one are not
    entered: what lies in them comes and goes."""
    for place, inner, _ in os.walk(folder):  # which passes over a folder that has gone meanwhile
        left = [Path(place, name) for name in inner if name.startswith(".") and name.endswith(".running")]
        inner[:] = [name for name in inner if Path(place, name) not in left]
        for scratch in left:
            lock = FileLock(scratch.with_suffix(".lock"), timeout=0)
            with suppress(Timeout), lock:
                shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _scratch_folder(target: Evidence):
    """A folder beside the target that is gone afterwards, however the run ends (after a kill: at the next
    run)."""
    scratch = target.notebook_path.parent / f".{target.notebook_path.stem}.running"
    shutil.rmtree(scratch, ignore_errors=True)
    sweep(target.folder)
    scratch.mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def peak_mib() -> int:
    """The most memory that one process of this run took, in MiB; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit // 2**20


# ---- Chapters one after the other or several at once, each in its own process; outcomes in the order given ---------


@dataclass
class ChapterOutcome:
    """How one chapter went: whether it passed (and, where asked, agrees with the book), and what to say."""

    passed: bool = True
    lines: list[tuple[bool, str]] = field(default_factory=list)  # (an error, text)
    slow: str = ""  # its name, where it took longer than the budget of the profile, whose parameters it had


@dataclass(frozen=True)
class Job:
    """What is done with each chapter."""

    profile: str
    changes: dict[str, dict[str, Any]]  # by the name of the chapter
    compare: bool = False
    name: str | None = None  # into runs/NAME
    details: bool = False  # of a comparison that is none

    def run(self, chapter: Chapter) -> ChapterOutcome:
        """Run it here; PressError where the chapter met input that the user can mend."""
        started = time.perf_counter()
        before = _parameters(chapter, self.profile, self.name)
        try:
            done = run_chapter(chapter, self.profile, self.changes[chapter.name], name=self.name)
        except ChapterFailed as error:
            if error.by_values and len(self.changes) == 1:  # several go on without it
                words = str(error).replace("\n ", ";")
                raise PressError(f"{words}; choose other values") from None
            return ChapterOutcome(False, [(True, f"FAILED {error}")])
        except OSError as error:  # a full disk, a folder that cannot be written
            return ChapterOutcome(False, [(True, f"FAILED {chapter.name}: {reason(error)}")])
        seconds = time.perf_counter() - started
        header, made = done.results.header, done.results.header["provenance"]
        slow = chapter.name * (header["default_parameters"] and made["seconds"] > BUDGETS[self.profile])
        lines = [(False, f"passed {chapter.name} ({self.profile}) in {seconds:.1f} s")]
        if pool.scheduler() and not made["store"]:
            words = f"{chapter.name} trains nothing through the runner: it ran on this machine alone, --scheduler or not"
            lines.append((True, f"note: {words}"))
        if len(self.changes) == 1:
            files = f"{done.notebook_path}, {done.results_path.name}, {done.figures_folder.name}/"
            counts = Counter(row["verdict"] for row in chapter_runs.chapter_verdicts(done)).most_common()
            words = " · ".join(f"{count} {word}" for word, count in counts)
            lines += [(False, f"wrote {files}"), (False, f"verdicts: {words or 'no claim'}")]
            if other := _differing(before, header["parameters"]):
                lines.append((False, f"it replaced a run with {other}; --name NAME keeps both"))
        if not self.compare:
            return ChapterOutcome(True, lines, slow)
        compared, found = compare.compare(done, self.details)
        return ChapterOutcome(found in compare.PASSING, lines + [(False, line) for line in compared], slow)


def run(chapters: Sequence[Chapter], job: Job, jobs: int | None = None) -> Iterator[ChapterOutcome]:
    """The outcome of each chapter, in order; at most `jobs` at once: by default one a core, at the paper
    profile one, which fills the accelerator. PressError and Ctrl-C end what runs."""
    jobs = max(1, min(jobs or (1 if job.profile == "paper" else cores()), len(chapters)))
    if len(chapters) == 1:
        yield job.run(chapters[0])
        return
    ends, share = threading.Event(), max(1, cores() // jobs)
    with _context(share) as context, ThreadPoolExecutor(jobs) as threads:
        pending = [threads.submit(_apart, each, job, share, ends, context) for each in chapters]
        try:
            for future in pending:
                while not future.done():  # one whose input has to be mended ends all, whichever it is
                    wait([each for each in pending if not each.done()], return_when=FIRST_COMPLETED)
                    for each in pending:
                        if each.done() and each.exception():
                            each.result()
                yield future.result()
        except BaseException:
            ends.set()
            threads.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():  # each stops its kernel and tidies up
                child.terminate()
            raise


#: What kernels import besides the book, and what executes them.
LIBRARIES = [
    "torch._dynamo",
    "scipy.stats",
    "matplotlib.pyplot",
    "ipykernel.kernelapp",
    "papermill",
    "jupytext",
]


@contextmanager
def _context(share: int) -> Iterator[Any]:
    """Processes that begin with what a chapter's takes seconds to import, where the system can fork them: from a
    server that has imported it once, at a socket whose name must be short."""
    if sys.platform != "linux" or len(tempfile.gettempdir()) > LONGEST_TEMPORARY:
        yield multiprocessing.get_context("spawn")
        return
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LIBRARIES, __name__, f"{book().package}.book"])
    heard = None
    with tempfile.TemporaryDirectory() as own:
        # Libraries read these while they are imported, and a kernel that is a copy has what it finds elsewhere.
        read = {"MATPLOTLIBRC": os.devnull, "MPLCONFIGDIR": own, "MPLBACKEND": "agg", "PYTHONHASHSEED": "0"}
        read["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", str(share))
        if threading.current_thread() is threading.main_thread():
            # The server keeps that, also while it imports.
            heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with surroundings(read):
                forkserver.ensure_running()
        finally:
            if heard is not None:
                signal.signal(signal.SIGINT, heard)
        yield context


def _apart(chapter: Chapter, job: Job, share: int, ends: threading.Event, context: Any) -> ChapterOutcome:
    """Run it in a process of its own, whose end is this chapter's failure and no other's."""
    if ends.is_set():
        return ChapterOutcome(False)
    copied = context.get_start_method() == "forkserver" and job.profile == "smoke"
    with ProcessPoolExecutor(
        1, context, initializer=_begin, initargs=(share, book().package, copied)
    ) as process:
        try:
            return process.submit(job.run, chapter).result()
        except PressError:
            ends.set()
            raise
        except BrokenExecutor:
            words = f"FAILED {chapter.name}: its process was ended; perhaps memory ran out"
            return ChapterOutcome(False, [(True, words)])
        except Exception:
            return ChapterOutcome(False, [(True, f"FAILED {chapter.name}\n{traceback.format_exc()}")])


def _begin(share: int, package: str, copied: bool) -> None:
    """In the process: the book, its share of the cores, and an end with its parent."""
    importlib.import_module(f"{package}.book")
    if copied:  # of the server, and so is the kernel: half of a smoke run would be imports
        kernels.copy_this_process(list(folders()))
    os.environ["BNBOOK_CORES"] = str(share)
    os.environ.setdefault("OMP_NUM_THREADS", str(share))  # kernels that wait for each other's cores spin
    for each in exits.SIGNALS:  # Ctrl-C reaches every process of the terminal
        signal.signal(each, exits.interrupt)
    end_with_parent()  # the kernel sees that and ends, too


def _parameters(chapter: Chapter, profile: str, name: str | None) -> dict[str, Any]:
    """Those of the run that is there already, if there is one."""
    try:
        return chapter_runs.fresh_run(chapter, profile, name).results.header["parameters"]
    except (PressError, OSError, KeyError):
        return {}


def _differing(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What the parameters were where they differ: "width = 0.25, steps = 50"."""
    return ", ".join(f"{key} = {value!r}" for key, value in before.items() if now.get(key, value) != value)
