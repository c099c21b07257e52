"""The rungs of the ladder: which widths, lengths and arms are trained, from how many seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bnbook.errors import BnbookError
from bnbook.training.placed import PlacedArm
from bnbook.training.probed import probe_schedule

LAYERS = tuple(range(1, 11))  # all that VGG-A normalizes


@dataclass(frozen=True)
class Rung:
    """What one rung trains: each norm from the same seeds, with all instruments."""

    width: float  # share of VGG-A's channels
    seeds: int
    norms: tuple[str, ...] = ("none", "batch", "noisy")
    long: bool = False  # the paper's 15,000 steps in place of 2,000
    learning_rate: float = 0.1
    augment: bool = False  # crop and flip
    of: str = ""  # the rung that it completes, under whose name its results stand


#: In the order in which they are trained: the cheap ones first. Seeds as hours allow.
RUNGS: dict[str, Rung] = {
    "w1_16": Rung(1 / 16, 10),
    "w1_8": Rung(1 / 8, 5),
    "w1_4": Rung(1 / 4, 5),
    "w1_2": Rung(1 / 2, 4),
    "w1": Rung(1.0, 3, ("none", "batch")),
    "long": Rung(1 / 4, 5, long=True),
    "long_others": Rung(1 / 4, 5, ("noise", "l1", "l2", "linf"), long=True, of="long"),
    "long_fast": Rung(1 / 4, 5, ("none", "batch"), long=True, learning_rate=0.5),
    "long_cropped": Rung(1 / 4, 5, ("none", "batch"), long=True, augment=True),
    "full_first": Rung(1.0, 1, ("none", "batch"), long=True, of="full"),
    "w1_noisy": Rung(1.0, 3, ("noisy",), of="w1"),
    "full": Rung(1.0, 3, ("none", "batch"), long=True),
    "long_w1_8": Rung(1 / 8, 5, long=True),
    "long_w1_16": Rung(1 / 16, 5, long=True),
}
#: Those that judge what was first seen on the others, from seeds of their own.
FRESH = ("long_w1_8", "long_w1_16")


def find(name: str) -> Rung:
    """The rung of that name; BnbookError lists the known."""
    if name not in RUNGS:
        raise BnbookError(f"no size {name!r} of the ladder; expected one of {', '.join(RUNGS)}")
    return RUNGS[name]


def arms(rung: Rung, settings: Mapping[str, Any]) -> dict[str, PlacedArm]:
    """The rung's arms by their norm.

    settings: the chapter's `data`, `batch_size`, `evaluate_every`, `train_examples`, `test_examples`,
    `activation_examples`, `lengths`, `random_lengths` (in learning rates), `early_probes`, and for the two
    lengths `steps`, `probe_every`, `long_steps`, `long_probe_every`, `long_evaluate_every`; `shrink`
    multiplies every width, for a quick look.
    """
    length = "long_" if rung.long else ""
    steps = settings[f"{length}steps"]
    common = {
        name: settings[name]
        for name in ("data", "batch_size", "train_examples", "test_examples", "activation_examples")
    }
    return {
        norm: PlacedArm(
            norm=norm,
            **common,
            width=rung.width * settings["shrink"],
            steps=steps,
            learning_rate=rung.learning_rate,
            augment=rung.augment,
            evaluate_every=settings[f"{length}evaluate_every"],
            probe_steps=probe_schedule(steps, settings[f"{length}probe_every"], settings["early_probes"]),
            landscape=tuple(settings["lengths"]),
            random_directions=tuple(settings["random_lengths"]),
            covariate_shift=True,
            placed_layers=LAYERS,
            removed_gradient=True,
        )
        for norm in rung.norms
    }


def seeds(name: str, first: int, fresh: int, most: int) -> range:
    """The seeds of every arm of a rung, `most` at most: those from `first` on, of one of `FRESH` from `fresh`."""
    start = fresh if name in FRESH else first
    return range(start, start + min(find(name).seeds, most))
