"""Commands that take the book elsewhere: results, coursework."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from bookpress.profiles import PROFILES

Add = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]


def add_commands(add: Add) -> None:
    """Their names and arguments; what they need is imported when they run."""
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
