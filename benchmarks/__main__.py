"""`python -m benchmarks [NAME …]`: what instruments and training cost, beside the bars; see README.md."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from typing import NoReturn

import torch

from benchmarks.cases import CASES, Setting
from benchmarks.timing import Ratio, peak_rate, summary
from bnbook.errors import BnbookError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BnbookError(f"{message}; see python -m benchmarks --help")


def main(arguments: list[str] | None = None) -> int:
    try:
        return _run(_read(arguments))
    except BnbookError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2


def _read(arguments: list[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help=f"which of {', '.join(CASES)}; all by default")
    add("--width", type=float, help="share of VGG-A's channels (default 0.25; noisy: 0.25 and 1)")
    add("--batch", type=int, default=128, help="examples in a batch (default 128)")
    add("--rounds", type=int, default=9, help="interleaved pairs of each comparison (default 9)")
    add("--threads", type=int, default=torch.get_num_threads(), help="CPU threads of the process")
    add("--every", type=int, default=100, help="steps from one probed step to the next (default 100)")
    add("--json", metavar="FILE", help="write all rounds there too")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in CASES]
    if unknown:
        raise BnbookError(f"unknown benchmark {unknown[0]!r}; expected some of {', '.join(CASES)}")
    if chosen.width is not None and not 0 < chosen.width < math.inf:
        raise BnbookError(f"--width {chosen.width:g}; expected a share above 0, such as 0.25")
    for name, least in (("batch", 2), ("rounds", 3), ("threads", 1), ("every", 1)):
        if getattr(chosen, name) < least:
            raise BnbookError(f"--{name} {getattr(chosen, name)}; expected at least {least}")
    return chosen


def _run(chosen: argparse.Namespace) -> int:
    if chosen.json:
        _try_to_write(chosen.json)
    torch.set_num_threads(chosen.threads)
    gpu = f"{torch.cuda.get_device_name()}, " if torch.cuda.is_available() else ""
    device = f"{gpu}CPU with {chosen.threads} of {os.cpu_count()} threads, torch {torch.__version__}"
    setting = Setting(chosen.width, chosen.batch, chosen.rounds, chosen.every)
    width = "0.25 unless said" if chosen.width is None else f"{chosen.width:g}"
    peak = [peak_rate()]
    print(f"{device}\nmatrix products (float32, same threads): {peak[0]:.0f} GFLOP/s")
    print(
        f"VGG-A, width {width}, batch {chosen.batch}; least and median of {chosen.rounds} interleaved pairs\n"
    )
    print(f"{'work / bare work':<58}  least  median (95 % interval)     bar  verdict         ms")
    found: list[Ratio] = []
    for name in dict.fromkeys(chosen.names or CASES):
        for ratio in CASES[name](setting):
            found.append(ratio)
            print(ratio.row(), flush=True)
    peak.append(peak_rate())
    print(f"\nmatrix products at the end: {peak[1]:.0f} GFLOP/s\n{summary(found)}")
    if chosen.json:
        about = {name: value for name, value in vars(chosen).items() if name != "json"}
        about |= {"device": device, "gflops": peak, "rows": [ratio.as_json() for ratio in found]}
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(about, file, indent=1)
    return 0


def _try_to_write(path: str) -> None:
    """Now rather than after the measurements."""
    try:
        open(path, "a", encoding="utf-8").close()
    except OSError as error:
        raise BnbookError(f"--json {path}: {error.strerror}; expected a file that can be written") from None


if __name__ == "__main__":
    sys.exit(main())
