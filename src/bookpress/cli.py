"""The command line: list | lock | run | publish | same | check | build | claims | results | doctor | coursework."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bookpress import paths
from bookpress.book import book, command_name
from bookpress.errors import PressError
from bookpress.exits import DONE, FAILED, guarded
from bookpress.profiles import BUDGETS, PROFILES

try:
    import resource
except ImportError:  # Windows
    resource = None

#: (name, what it does, help) -> its parser.
Add = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]
#: Files that a run opens at once: its kernel's sockets, its workers' and the libraries that they load.
OPEN_FILES = 256
#: What an end in the middle of a command does not lose.
STAYS = {
    "run": "; what is done stays, and a rerun goes on from it",
    "build": "; the site that was there stays; build again",
}
#: What else lies in runs/, so that no run of one's own is called so.
TAKEN = (*PROFILES, "store", "tests", "same")


def main(words: list[str] | None = None) -> int:
    """Run one command.

    Exit codes: 0 done; 1 a chapter or check failed; 2 bad usage or parameter, or a file that cannot be
    written; 130 interrupted, 143 and 129 ended by SIGTERM and SIGHUP; 141 the reader of a pipe (such as head) left before the end.
    """
    given = sys.argv[1:] if words is None else words
    return guarded(lambda: _command(words), STAYS.get(given[0] if given else "", ""))


def _command(words: list[str] | None) -> int:
    parser = _parser()
    arguments, rest = parser.parse_known_args(words)
    if hasattr(arguments, "chapters"):  # argparse takes them from one place only
        arguments.chapters += [word for word in rest if not word.startswith("-")]
        rest = [word for word in rest if word.startswith("-")]
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if arguments.command in (_check, _build, _claims):
        if arguments.profile and not arguments.runs:
            raise PressError(f"--profile {arguments.profile} chooses among your own runs; give --runs, too")
        arguments.profile = (arguments.profile or "smoke") if arguments.runs else None
    return arguments.command(arguments)


def _parser() -> argparse.ArgumentParser:
    words = "A book that runs: chapters, evidence, site."
    parser = argparse.ArgumentParser(prog=book().package, description=words)
    parser.add_argument("--version", action="version", version=f"{book().package} {book().version}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function, help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help, description=help)
        command.set_defaults(command=function)
        return command

    listed = add("list", _list, "list the chapters with their parameters and their published evidence")
    listed.add_argument("chapters", nargs="*", metavar="CHAPTER", help="these only")
    run = add("run", _run, "run chapters into runs/PROFILE")
    publish = add("publish", _publish, "take passed runs over into executed/")
    lock = add("lock", _lock, "fix the tests of new and changed claims, before the run that judges them")
    lock.add_argument("--why", default="", help="why a test or a plan changed; needed for a test")
    words = "write nothing, and say the smallest effect that each test shows with the planned seeds"
    lock.add_argument("--power", action="store_true", help=words)
    words = "with --power: how far seeds spread, of a ratio as a factor, where no earlier run tells"
    lock.add_argument("--spread", action="append", default=[], metavar="CLAIM=NUMBER", help=words)
    for command, profile in ((lock, "laptop"), (run, "smoke"), (publish, "laptop")):
        command.add_argument("chapters", nargs="*", metavar="CHAPTER", help="for example santurkar/training")
        command.add_argument("--all", action="store_true", help="every chapter that has the profile")
        command.add_argument("--profile", default=profile, choices=PROFILES)
    run.add_argument("--seeds", type=int, metavar="N", help="how many, from the chapter's first_seed on")
    run.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="one parameter")
    run.add_argument("--params", metavar="FILE.yml", help="parameters from a YAML file")
    run.add_argument("--name", metavar="NAME", help="into runs/NAME, beside the runs of the profile")
    words = (
        "judge the rerun against the book's bands; exit code 1 if it differs or cannot be told, and 0 at a profile at which "
        "the book has no run of a chapter that is not exact: there nothing is compared"
    )
    run.add_argument("--compare", action="store_true", help=words)
    words = "with --compare: all that differs, also from a run that is not comparable"
    run.add_argument("--details", action="store_true", help=words)
    run.add_argument("--jobs", type=int, metavar="N", help="chapters at once (default: one a core)")
    words = "train on this Dask cluster (docs/clusters.md)"
    run.add_argument("--scheduler", metavar="tcp://HOST:PORT", help=words)
    words = "other code, the same numbers: keep published runs fresh after a rename or a rewriting"
    same = add("same", _same, words)
    same.add_argument("chapters", nargs="*", metavar="CHAPTER", help="for example santurkar/training")
    words = "every chapter whose published run is stale by its code"
    same.add_argument("--all", action="store_true", help=words)
    check = add("check", _check, "the gate: is the committed evidence whole and fresh?")
    build = add("build", _build, "render the site into _build/html")
    claims = add("claims", _claims, "every claim with its verdict")
    for command in (check, build, claims):
        command.add_argument("--runs", action="store_true", help="runs/PROFILE instead of executed/")
        command.add_argument("--profile", choices=PROFILES, help="with --runs (default smoke)")
    for command in (build, claims):
        words = "exit with 0 although a published run does not pass the check and is left out"
        command.add_argument("--anyway", action="store_true", help=words)
    for command in (check, claims):
        command.add_argument("chapters", nargs="*", metavar="PART/CHAPTER", help="these only")
    claims.add_argument("--name", metavar="NAME", help="your own run in runs/NAME")
    claims.add_argument("--json", action="store_true", help="all that was found, as data")
    claims.add_argument("--instrument", metavar="NAME", help="those that rest on it, such as effective-beta")
    results = add("results", _results, "the recorded numbers of a chapter, to take away")
    results.add_argument("chapter", metavar="PART/CHAPTER")
    results.add_argument("--profile", choices=PROFILES, help="default: the highest that has fresh evidence")
    results.add_argument("--runs", action="store_true", help="your own run in runs/PROFILE")
    results.add_argument("--name", metavar="NAME", help="your own run in runs/NAME")
    form = results.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="one line a number (the default)")
    form.add_argument("--json", action="store_true", help="the results file as it is")
    form.add_argument("--names", action="store_true", help="what is recorded, without its numbers")
    coursework = add("coursework", _coursework, "make students' and instructors' notebooks and autograders")
    coursework.add_argument("folder", metavar="DIR", help="a folder that is not there yet")
    words = "some sheets (default: all)"
    coursework.add_argument("names", nargs="*", default=[], metavar="SHEET", help=words)
    add("doctor", _doctor, "Python, torch, device, memory, disk, data")
    if own := book().commands_module:
        importlib.import_module(own).add_commands(add)
    return parser


def _list(arguments: argparse.Namespace) -> int:
    from bookpress.pipeline.chapter_runs import published_runs

    for chapter in _asked(arguments):
        best = next((run for run in published_runs(chapter) if run.is_fresh()), None)
        print(f"{chapter.name:<32} {best.profile if best else 'no fresh evidence':<18} {chapter.title}")
        for name, value in chapter.defaults.items():
            print(f"    {name} = {value!r}")
    return DONE


def _run(arguments: argparse.Namespace) -> int:
    from bookpress.pipeline import chapters, compare, execution

    listed = _chosen(arguments)
    given = chapters.read_file(arguments.params) if arguments.params else {}
    assigned = chapters.parse_assignments(arguments.set)
    for name in ("seeds", "jobs"):
        if (number := getattr(arguments, name)) is not None and number < 1:
            raise PressError(f"--{name} {number}; expected at least 1")
    if arguments.seeds is not None:
        if "seeds" in assigned:
            raise PressError("both --seeds and --set seeds=… given; give one of them")
        assigned["seeds"] = arguments.seeds
    given = given | assigned
    _prepare(arguments.profile)
    changes = {c.name: c.changed(arguments.profile, given) for c in listed}
    if arguments.scheduler:
        os.environ["BNBOOK_SCHEDULER"] = arguments.scheduler  # the chapters' own processes train
    name = None if arguments.name is None else _own_name(arguments.name)
    job = execution.Job(arguments.profile, changes, arguments.compare, name, arguments.details)
    paths.runs_folder().mkdir(parents=True, exist_ok=True)  # said now where it cannot be written
    for line in compare.ahead(listed, arguments.profile) if arguments.compare else ():
        print(line, file=sys.stderr, flush=True)
    passed, slow = True, []
    for outcome in execution.run(listed, job, arguments.jobs):
        for wrong, line in outcome.lines:
            print(line, file=sys.stderr if wrong else sys.stdout, flush=True)
        passed &= outcome.passed
        slow += [outcome.slow] * bool(outcome.slow)
    if slow and len(listed) > 1:  # of one its time says it
        words = f"{len(slow)} of {len(listed)} chapters took longer than {BUDGETS[arguments.profile]} s on this machine"
        print(f"note: {words}: {', '.join(slow)}", file=sys.stderr)
    return DONE if passed else FAILED


def _prepare(profile: str) -> None:
    """Say now what would end a run later, and let it open the files that it needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE) if resource else (OPEN_FILES, 0)
    if 0 <= soft < OPEN_FILES:  # without a limit it is -1
        if 0 <= hard < OPEN_FILES:
            raise PressError(
                f"at most {soft} files may be open here (ulimit -n), and no more than {hard} be asked for; a run's "
                f"kernel and workers need {OPEN_FILES}"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))
    if profile == "paper":
        import torch

        if not torch.cuda.is_available():
            words = "note: no GPU here; the paper profile is made for one, and on a CPU takes weeks"
            print(words, file=sys.stderr)


def _asked(arguments: argparse.Namespace) -> list:
    """The chapters named, or all."""
    from bookpress.pipeline import chapters

    return chapters.select(arguments.chapters) if arguments.chapters else chapters.discover()


def _chosen(arguments: argparse.Namespace) -> list:
    """The chapters named, or all that have the profile."""
    from bookpress.pipeline import chapters

    if arguments.all and arguments.chapters:
        raise PressError("both --all and chapter names given; give one of them")
    if not arguments.all and not arguments.chapters:
        raise PressError(f"no chapter named; give names ({command_name()} list shows them) or --all")
    if not arguments.all:
        return chapters.select(arguments.chapters)
    having = []
    for chapter in chapters.discover():
        if chapter.has(arguments.profile):
            having.append(chapter)
        else:
            print(f"skipped {chapter.name}: no {arguments.profile} profile")
    return having


def _own_name(name: str) -> str:
    """The name of a run of one's own, which is also its folder's; PressError where it cannot be."""
    if name in TAKEN or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
        expected = f"expected letters, digits, - and _, and none of {', '.join(TAKEN)}"
        raise PressError(f"--name {name!r}; {expected}")
    return name


def _lock(arguments: argparse.Namespace) -> int:
    from bookpress.pipeline import locking

    named = bool(arguments.chapters)
    arguments.all |= not named
    chosen = _chosen(arguments)
    if arguments.spread and not arguments.power:
        raise PressError("--spread says something with --power alone; give both")
    if arguments.power:
        spreads = locking.spreads(arguments.spread, chosen)
        for chapter in chosen:
            for line in locking.powers(chapter, arguments.profile, spreads):
                print(line, flush=True)
        return DONE
    print("\n".join(locking.lock(chosen, arguments.profile, arguments.why, named)))
    return DONE


def _same(arguments: argparse.Namespace) -> int:
    from bookpress.pipeline import chapters, same

    arguments.profile, well = "smoke", True
    stale = (each for each in chapters.discover() if same.is_stale(each))
    for chapter in _chosen(arguments) if arguments.chapters else stale:
        try:
            print("\n".join(same.same(chapter)), flush=True)
        except PressError as error:  # the others may be the same
            print(f"BAD {error}", flush=True)
            well = False
    return DONE if well else FAILED


def _publish(arguments: argparse.Namespace) -> int:
    from bookpress.pipeline import publishing
    from bookpress.site import check

    for chapter in _chosen(arguments):
        made = publishing.publish(chapter, arguments.profile)
        print("\n".join([f"published {chapter.name} ({arguments.profile})", *publishing.words(made)]))
    print("".join(f"{line}\n" for line in check.unled()), end="")
    return DONE


def _check(arguments: argparse.Namespace) -> int:
    from bookpress.site import check

    found = _asked(arguments)
    lines, well = check.report(found, profile=arguments.profile, some=bool(arguments.chapters))
    print("\n".join(lines))
    return DONE if well else FAILED


def _build(arguments: argparse.Namespace) -> int:
    from bookpress.pipeline import chapters
    from bookpress.site import build

    if refused := _unless_refused(arguments, chapters.discover()):  # said before minutes of drawing
        print(f"nothing is built; {command_name()} build --anyway leaves it out", file=sys.stderr)
        return refused
    started = time.perf_counter()
    page = build.build(arguments.profile)
    print(f"built in {time.perf_counter() - started:.0f} s; open {page.as_uri()}")
    return DONE


def _unless_refused(arguments: argparse.Namespace, chapters: list) -> int:
    """FAILED, and why, where evidence of these chapters is left out; of fresh runs none is."""
    from bookpress.pipeline import gate

    lines = [] if arguments.runs else gate.refused(chapters)
    for line in lines:
        print(f"BAD {line}", file=sys.stderr)
    return FAILED if lines and not arguments.anyway else DONE


def _claims(arguments: argparse.Namespace) -> int:
    from bookpress.pipeline.chapter_runs import fresh_run
    from bookpress.site import exports

    if arguments.instrument:
        print(exports.of_instrument(arguments.instrument), end="")
        return DONE
    chosen = _asked(arguments)
    if arguments.name is not None:
        chosen = [each for each in chosen if fresh_run(each, "", _own_name(arguments.name)).exists]
        arguments.runs = True
        if not chosen:
            raise PressError(f"no such run in runs/{arguments.name}; expected the --name of a run of yours")
    names = [chapter.name for chapter in chosen]
    print(exports.listing(names, arguments.profile, arguments.name, as_data=arguments.json), end="")
    return _unless_refused(arguments, chosen)


def _results(arguments: argparse.Namespace) -> int:
    from bookpress import results
    from bookpress.pipeline import chapters
    from bookpress.pipeline.chapter_runs import fresh_run, published
    from bookpress.pipeline.gate import passed_run

    (chapter,) = chapters.select([arguments.chapter])
    if arguments.name is not None:
        if arguments.profile:
            raise PressError("both --name and --profile given; a run in runs/NAME has its own profile")
        held = fresh_run(chapter, "", _own_name(arguments.name))
    elif arguments.runs:
        held = fresh_run(chapter, arguments.profile or "smoke")
    else:
        held = published(chapter, arguments.profile) if arguments.profile else passed_run(chapter)
    if held is None or not held.exists:
        wanted = f"{arguments.profile} " if arguments.profile else ""
        other = "--name" if arguments.name else "--profile"
        raise PressError(f"{chapter.name} has no {wanted}results here; run it, or give another {other}")
    if arguments.json:
        print(held.results_path.read_text(encoding="utf-8"), end="")
    elif arguments.names:
        for name, entry in held.results.entries.items():
            shape = held.results[name].shape[1:]  # of one seed's
            each = f" of {' x '.join(map(str, shape))}" * bool(shape)
            print(f"{name:<44} {len(entry['seeds'])} seeds{each}{', ' * bool(entry['unit'])}{entry['unit']}")
    else:
        print(results.as_csv(held.results), end="")
    return DONE


def _coursework(arguments: argparse.Namespace) -> int:
    from bookpress import coursework

    made = coursework.make(Path(arguments.folder), arguments.names)
    for each in made:
        print(f"{each.name:<20} {each.points:>4g} points  {each.title}")
    print(f"written to {arguments.folder}: student/, instructor/, autograder/, points.csv")
    return DONE


def _doctor(arguments: argparse.Namespace) -> int:
    from bookpress.pipeline import doctor

    lines, good = doctor.report()
    print("\n".join(lines))
    return DONE if good else FAILED
