"""What the chapter on the deep linear network trains: arms by the name that their results bear."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from bnbook.deep_linear import LinearArm, probed_arm, spread_probes
from bnbook.deep_linear.target import TargetArm

Arms = dict[str, LinearArm]
PAPER = 1e-6  # the paper's learning rate
NORMS = ("none", "batch", "l2")  # cheap: they see no more of the data than its moments
PAIR = ("none", "batch")
TINY = (1e-10, 1e-9)  # what 1e-6 amounts to if the loss is a mean
READINGS = {
    "last": dict(normalize_last=True),
    "fixed": dict(affine=False),
    "normal": dict(init="glorot-normal"),
}


@dataclass(frozen=True)
class Trained:
    """An arm and the arrays of its trainings, (S, ...)."""

    arm: LinearArm
    run: dict[str, np.ndarray]

    def first(self, seeds: int) -> Trained:
        """The same of the first so many seeds."""
        return Trained(self.arm, {name: values[:seeds] for name, values in self.run.items()})


def tag(rate: float) -> str:
    """1e-06 -> "lr1e_06", as result names have it."""
    return f"lr{rate:.0e}".replace("-", "_")


def scan(rates: Iterable[float], **size: int) -> Arms:
    """Without, with batch norm and with ℓ2 at every rate, all instruments; at the rates of a mean in place of
    the sum, and from Glorot's normal weights, the losses alone."""
    rates = list(rates)
    arms = {f"{tag(rate)}.{norm}": probed_arm(norm, rate, **size) for norm in NORMS for rate in rates}
    arms |= {f"{tag(rate)}.{norm}": LinearArm(norm, rate, **size) for norm in PAIR for rate in TINY}
    normal = {rate: LinearArm("none", rate, init="glorot-normal", **size) for rate in rates}
    return arms | {f"{tag(rate)}.none.normal": arm for rate, arm in normal.items()}


def at_paper(**size: int) -> Arms:
    """The scan's arms at the paper's rate, which are trained from more seeds."""
    return {f"{tag(PAPER)}.{norm}": probed_arm(norm, PAPER, **size) for norm in NORMS}


def unit_target(rates: Iterable[float], **size: int) -> Arms:
    """Without and with batch norm where the entries of A have variance 1/10, so that A x has variance 1."""
    looks = spread_probes(size["steps"])
    return {
        f"{tag(rate)}.unit.{norm}": TargetArm(norm, rate, probe_steps=looks, **size)
        for norm in PAIR
        for rate in rates
    }


def coarse(rates: Iterable[float], **size: int) -> Arms:
    """ℓ1 and ℓ∞, which have to go back to the examples, at fewer rates."""
    return {
        f"{tag(rate)}.{norm}": probed_arm(norm, rate, **size) for norm in ("l1", "linf") for rate in rates
    }


def others(rates: Sequence[float], depths: Iterable[int], **size: int) -> Arms:
    """The other readings with batch norm, and other depths, without and with it."""
    arms = {
        f"{tag(rate)}.batch.{name}": probed_arm("batch", rate, **size | changes)
        for name, changes in READINGS.items()
        for rate in rates
    }
    return arms | {
        f"{tag(rate)}.{norm}.depth{depth}": probed_arm(norm, rate, **size | {"depth": depth})
        for norm in PAIR
        for rate in rates
        for depth in depths
    }
