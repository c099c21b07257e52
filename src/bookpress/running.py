"""The command `run`, and the chapters that a command names."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from pathlib import Path

from bookpress import paths
from bookpress.book import command_name
from bookpress.errors import BnbookError
from bookpress.profiles import PROFILES

try:
    import resource
except ImportError:  # Windows
    resource = None

#: Files that a run opens at once: its kernel's sockets, its workers' and the libraries that they load.
OPEN_FILES = 256
#: What else lies in runs/, so that no run of one's own is called so.
TAKEN = (*PROFILES, "store", "tests")


def add_arguments(run: argparse.ArgumentParser) -> None:
    """Those of `run` beside chapters and profile."""
    run.add_argument("--seeds", type=int, metavar="N", help="seeds 0 to N-1")
    run.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one parameter")
    run.add_argument("--params", metavar="FILE.yml", help="parameters from a YAML file")
    run.add_argument("--name", metavar="NAME", help="into runs/NAME, beside the runs of the profile")
    words = "judge the rerun against the book's bands; exit code 1 if it differs or cannot be told"
    run.add_argument("--compare", action="store_true", help=words)
    words = "with --compare: all that differs, also from a run that is not comparable"
    run.add_argument("--details", action="store_true", help=words)
    words = "with --compare: draw the book's bands and your run into CHAPTER.compare.svg"
    run.add_argument("--figure", action="store_true", help=words)
    run.add_argument("--jobs", type=int, metavar="N", help="chapters at once (default: one a core)")
    words = "train on this Dask cluster (docs/clusters.md)"
    run.add_argument("--scheduler", metavar="tcp://HOST:PORT", help=words)


def run(arguments: argparse.Namespace) -> bool:
    """Run the chapters and say how it went; whether all passed."""
    from bookpress.pipeline import chapters, execution

    listed = chosen(arguments)
    given = chapters.read_file(arguments.params) if arguments.params else {}
    assigned = chapters.parse_assignments(arguments.set)
    for name in ("seeds", "jobs"):
        if (number := getattr(arguments, name)) is not None and number < 1:
            raise BnbookError(f"--{name} {number}; expected at least 1")
    if arguments.seeds is not None:
        if "seeds" in assigned:
            raise BnbookError("both --seeds and --set seeds=… given; give one of them")
        assigned["seeds"] = arguments.seeds
    given = given | assigned
    if arguments.figure and not arguments.compare:
        raise BnbookError("--figure draws a comparison; give --compare, too")
    _prepare(arguments.profile)
    changes = {c.name: c.changed(arguments.profile, given) for c in listed}
    if arguments.scheduler:
        os.environ["BNBOOK_SCHEDULER"] = arguments.scheduler  # the chapters' own processes train
    name = None if arguments.name is None else own_name(arguments.name)
    job = execution.Job(
        arguments.profile, changes, arguments.compare, arguments.figure, name, arguments.details
    )
    paths.runs_folder().mkdir(parents=True, exist_ok=True)  # said now where it cannot be written
    passed = True
    for outcome in execution.run(listed, job, arguments.jobs):
        for wrong, line in outcome.lines:
            print(line, file=sys.stderr if wrong else sys.stdout, flush=True)
        passed &= outcome.passed
    return passed


def _prepare(profile: str) -> None:
    """Say now what would end a run later, and give it what this machine lacks: open files, a cache for Matplotlib."""
    if resource is not None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
            enough = hard == resource.RLIM_INFINITY or hard >= OPEN_FILES
            if not enough:
                raise BnbookError(
                    f"at most {soft} files may be open here (ulimit -n), and no more than {hard} be asked for; a run's "
                    f"kernel and workers need {OPEN_FILES}"
                )
            resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
    if own := matplotlib_cache():
        os.environ["MPLCONFIGDIR"] = own
    if profile == "paper":
        import torch

        if not torch.cuda.is_available():
            print(
                "note: no GPU here; the paper profile is made for one, and on a CPU takes weeks",
                file=sys.stderr,
            )


def matplotlib_cache() -> str:
    """A folder for Matplotlib's cache where the user's own cannot be written, else "": it would say so in a cell."""
    if os.environ.get("MPLCONFIGDIR"):
        return ""
    named = os.environ.get("XDG_CONFIG_HOME") if sys.platform.startswith(("linux", "freebsd")) else None
    try:
        with contextlib.suppress(FileExistsError):
            Path(named or Path.home() / ".config").mkdir(parents=True)
        usual = Path(named or Path.home() / ".config") / "matplotlib"
        usual.mkdir(exist_ok=True)
        if os.access(usual, os.W_OK):
            return ""
    except (OSError, RuntimeError):  # no home at all
        pass
    folder = paths.runs_folder() / ".matplotlib"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def chosen(arguments: argparse.Namespace) -> list:
    """The chapters named, or all that have the profile."""
    from bookpress.pipeline import chapters

    if arguments.all and arguments.chapters:
        raise BnbookError("both --all and chapter names given; give one of them")
    if not arguments.all and not arguments.chapters:
        raise BnbookError(f"no chapter named; give names ({command_name()} list shows them) or --all")
    if not arguments.all:
        return chapters.select(arguments.chapters)
    found = chapters.discover()
    for chapter in (each for each in found if not each.has(arguments.profile)):
        print(f"skipped {chapter.name}: no {arguments.profile} profile")
    return [chapter for chapter in found if chapter.has(arguments.profile)]


def own_name(name: str) -> str:
    """The name of a run of one's own, which is also its folder's; BnbookError where it cannot be."""
    if name in TAKEN or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise BnbookError(
            f"--name {name!r}; expected letters, digits, - and _, and none of {', '.join(TAKEN)}"
        )
    return name
