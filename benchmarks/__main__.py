"""`python -m benchmarks [NAME …]`: the cost of instruments and training beside its bars; see README.md here."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

import torch
from benchmarks.cases import CASES
from benchmarks.timing import Ratio, peak_rate

from bnbook.errors import BnbookError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which of {', '.join(CASES)}; all by default")
    parser.add_argument("--width", type=float, default=0.25, help="share of VGG-A's channels (default 0.25)")
    parser.add_argument("--batch", type=int, default=128, help="examples in a batch (default 128)")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved pairs of each comparison (default 9)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="CPU threads of the process")
    parser.add_argument("--json", metavar="FILE", help="write all rounds there too")
    chosen = parser.parse_args(arguments)
    try:
        _check(chosen)
    except BnbookError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    torch.set_num_threads(chosen.threads)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {chosen.threads} threads"
    print(f"{device}; torch {torch.__version__}; matrix products at up to {peak_rate():.0f} GFLOP/s (float32)")
    print(f"VGG-A at width {chosen.width:g}, batch {chosen.batch}; median ratio of {chosen.rounds} interleaved pairs\n")
    found: list[Ratio] = []
    for name in chosen.names or CASES:
        for ratio in CASES[name](chosen.width, chosen.batch, chosen.rounds):
            found.append(ratio)
            print(ratio.row(), flush=True)
    print(f"\nmatrix products at up to {peak_rate():.0f} GFLOP/s at the end")
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump({"device": device, "torch": torch.__version__, "rows": [asdict(r) for r in found]}, file, indent=1)
    return 0


def _check(chosen: argparse.Namespace) -> None:
    unknown = [name for name in chosen.names if name not in CASES]
    if unknown:
        raise BnbookError(f"unknown benchmark {unknown[0]!r}; expected some of {', '.join(CASES)}")
    if not chosen.width > 0 or chosen.batch < 2 or chosen.rounds < 3 or chosen.threads < 1:
        raise BnbookError("expected --width above 0, --batch of at least 2, --rounds of at least 3, --threads of at least 1")


if __name__ == "__main__":
    sys.exit(main())
