"""The `bnbook` command: the press's (`bookpress.cli`), and `measure` beside them."""

from __future__ import annotations

import argparse

from bnbook import book  # noqa: F401 (the press is told of this book)
from bookpress.cli import Add, guarded, main

__all__ = ["add_commands", "add_measure_arguments", "guarded", "main"]

LOSSES = ("cross_entropy", "mse")  # of bnbook.report.command, which imports torch


def add_commands(add: Add) -> None:
    """The book's own; what they need is imported when they run."""
    measure = add("measure", _measure, "put all instruments on your own network (torch is imported)")
    add_measure_arguments(measure)


def add_measure_arguments(parser: argparse.ArgumentParser) -> None:
    words = "a function or class without arguments -> module, or a module; or package.module:FACTORY"
    parser.add_argument("factory", metavar="FILE.py:FACTORY", help=words)
    parser.add_argument(
        "--data",
        metavar="NAME|FILE",
        help="a data set (training images as (x / 255 - mean) / std of each of its channels), or as they are FILE.pt, "
        "FILE.npz, or your own FILE.py:LOADER of pairs",
    )
    words = "of one example, such as 3,32,32: of the data, or of normal random numbers without --data"
    parser.add_argument("--input-shape", metavar="SHAPE", help=words)
    parser.add_argument("--beside", metavar="FILE.py:FACTORY", help="a second network, on the same batch")
    words = "a checkpoint; a second time for --beside"
    parser.add_argument("--weights", metavar="FILE", action="append", help=words)
    words = "which of several outputs, by name or place, such as logits or 0"
    parser.add_argument("--output", metavar="NAME|K", help=words)
    parser.add_argument("--batch", type=int, default=64, metavar="B", help="examples (default 64)")
    words = (
        "how many, up to 16: the first is measured, all tell of the averages and of the gradient's noise "
        "(default 1; 16 of a LOADER)"
    )
    parser.add_argument("--batches", type=int, metavar="K", help=words)
    words = f"{', '.join(LOSSES)}, or your own (outputs, targets) -> number (default {LOSSES[0]})"
    parser.add_argument("--loss", default=LOSSES[0], metavar="NAME|FILE.py:FUNCTION", help=words)
    parser.add_argument("--learning-rate", type=float, default=0.1, metavar="η", help="default 0.1")
    parser.add_argument("--seed", type=int, default=0, help="of the random state that a factory draws from")
    parser.add_argument("--no-eigenvalues", action="store_true", help="leave out λ_max, which costs most")
    parser.add_argument("--json", metavar="FILE", help="write every number")
    parser.add_argument("--figure", metavar="FILE.svg", help="draw (svg, png or pdf)")
    parser.add_argument(
        "--html", metavar="FILE.html", help="write a page: what to know, the numbers, the figure"
    )


def _measure(arguments: argparse.Namespace) -> int:
    from bnbook.report import command

    command.report(arguments, lambda found: print(found.table(), flush=True))
    return 0
