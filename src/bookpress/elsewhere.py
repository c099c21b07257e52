"""Commands that take the book elsewhere: measure, results, coursework."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from bookpress.profiles import PROFILES

LOSSES = ("cross_entropy", "mse")  # of bnbook.report.command, which imports torch
Add = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]


def add_commands(add: Add) -> None:
    """Their names and arguments; what they need is imported when they run."""
    measure = add("measure", _measure, "put all instruments on your own network (torch is imported)")
    add_measure_arguments(measure)
    results = add("results", _results, "the recorded numbers of a chapter, to take away")
    results.add_argument("chapter", metavar="PART/CHAPTER")
    results.add_argument("--profile", choices=PROFILES, help="default: the highest that has fresh evidence")
    results.add_argument("--runs", action="store_true", help="your own run in runs/PROFILE")
    results.add_argument("--name", metavar="NAME", help="your own run in runs/NAME")
    form = results.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="one line a number (the default)")
    form.add_argument("--json", action="store_true", help="the results file as it is")
    coursework = add("coursework", _coursework, "make students' and instructors' notebooks and autograders")
    coursework.add_argument("folder", metavar="DIR", help="a folder that is not there yet")
    coursework.add_argument(
        "names", nargs="*", default=[], metavar="SHEET", help="some sheets (default: all)"
    )


def add_measure_arguments(parser: argparse.ArgumentParser) -> None:
    words = "a function or class without arguments -> module, or a module; or package.module:FACTORY"
    parser.add_argument("factory", metavar="FILE.py:FACTORY", help=words)
    parser.add_argument("--data", metavar="NAME|FILE", help="a data set, or FILE.pt / FILE.npz")
    words = "of one example, such as 3,32,32: of the data, or of normal random numbers without --data"
    parser.add_argument("--input-shape", metavar="SHAPE", help=words)
    parser.add_argument("--beside", metavar="FILE.py:FACTORY", help="a second network, on the same batch")
    words = "a checkpoint; a second time for --beside"
    parser.add_argument("--weights", metavar="FILE", action="append", help=words)
    words = "which of several outputs, by name or place, such as logits or 0"
    parser.add_argument("--output", metavar="NAME|K", help=words)
    parser.add_argument("--batch", type=int, default=64, metavar="B", help="examples (default 64)")
    words = f"{', '.join(LOSSES)}, or your own (outputs, targets) -> number (default {LOSSES[0]})"
    parser.add_argument("--loss", default=LOSSES[0], metavar="NAME|FILE.py:FUNCTION", help=words)
    parser.add_argument("--learning-rate", type=float, default=0.1, metavar="η", help="default 0.1")
    parser.add_argument("--seed", type=int, default=0, help="of the random state that a factory draws from")
    parser.add_argument("--no-eigenvalues", action="store_true", help="leave out λ_max, which costs most")
    parser.add_argument("--json", metavar="FILE", help="write every number")
    parser.add_argument("--figure", metavar="FILE.svg", help="draw (svg, png or pdf)")


def _measure(arguments: argparse.Namespace) -> int:
    from bnbook.report import command

    command.report(arguments, lambda found: print(found.table(), flush=True))
    return 0


def _results(arguments: argparse.Namespace) -> int:
    from bookpress import rows, running
    from bookpress.errors import BnbookError
    from bookpress.pipeline import chapters
    from bookpress.pipeline.chapter_runs import fresh_run, published
    from bookpress.pipeline.gate import passed_run

    (chapter,) = chapters.select([arguments.chapter])
    if arguments.name is not None:
        if arguments.profile:
            raise BnbookError("both --name and --profile given; a run in runs/NAME has its own profile")
        held = fresh_run(chapter, "", running.own_name(arguments.name))
    elif arguments.runs:
        held = fresh_run(chapter, arguments.profile or "smoke")
    else:
        held = published(chapter, arguments.profile) if arguments.profile else passed_run(chapter)
    if held is None or not held.exists:
        wanted = f"{arguments.profile} " if arguments.profile else ""
        raise BnbookError(f"{chapter.name} has no {wanted}results here; run it, or name another --profile")
    if arguments.json:
        print(held.results_path.read_text(encoding="utf-8"), end="")
    else:
        print(rows.as_csv(held.results), end="")
    return 0


def _coursework(arguments: argparse.Namespace) -> int:
    from bookpress.coursework import making

    made = making.make(Path(arguments.folder), arguments.names)
    for each in made:
        print(f"{each.name:<20} {each.points:>4g} points  {each.title}")
    print(f"written to {arguments.folder}: student/, instructor/, autograder/, points.csv")
    return 0
