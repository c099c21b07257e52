"""The landscape, step by step: the losses met along the gradient while a network trains, a rung a network.

The ladder publishes its trainings, and they hold the loss at P probed steps and A step lengths: the whole
cross-section of each rung that was reached. So does a chapter that records `along_gradient.ARM` (S, P, A).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from bnbook.pipeline.explorers.drawn import rounded
from bnbook.pipeline.prose.tokens import Pages
from bnbook.results import Results
from bnbook.runs import store

CHAPTER, LADDER = "santurkar/landscape", "santurkar/scale"
ARMS = ("none", "batch")
REACH = (0.5, 4.0)  # learning rates, the paper's


def landscape(pages: Pages) -> list[dict[str, Any]] | None:
    """A row for each network whose losses along the gradient are known; None where there is none."""
    rows = []
    if ladder := pages.evidence.get(LADDER):
        rows += rungs(ladder.results)
    if single := pages.evidence.get(CHAPTER):
        steps, used = single.results["probe_step"][0], single.results.header["parameters"]
        if all(f"along_gradient.{arm}" in single.results for arm in ARMS):
            losses = {arm: single.results[f"along_gradient.{arm}"] for arm in ARMS}
            title = f"{_share(used['width'])}, {used['steps']:,} steps, this page's seeds"
            rows.append(_row(title, losses, used["lengths"], steps))
    return rows or None


def rungs(ladder: Results) -> list[dict[str, Any]]:
    """A row for each network of the trainings that a run keeps, with and without batch norm, by the seeds of
    both; the narrow and short ones first."""
    networks: dict[tuple[Any, ...], dict[str, dict[int, dict[str, np.ndarray]]]] = {}
    lengths: dict[tuple[Any, ...], list[float]] = {}
    for name in ladder.header.get("provenance", {}).get("store", {}).get("kept", []):
        if (found := store.kept(name)) is None:
            continue
        arrays, about = found
        arm = next(part for part in about.values() if isinstance(part, dict) and "landscape" in part)
        network = tuple(arm[part] for part in ("steps", "width", "learning_rate", "augment"))
        networks.setdefault(network, {}).setdefault(arm["norm"], {})[about["seed"]] = arrays
        lengths[network] = arm["landscape"]
    rows = []
    for network, arms in sorted(networks.items()):
        seeds = sorted(set.intersection(*(set(arms.get(arm, {})) for arm in ARMS)))
        if seeds:
            losses = {arm: np.stack([arms[arm][seed]["landscape_loss"] for seed in seeds]) for arm in ARMS}
            steps = arms["none"][seeds[0]]["probe_step"]
            rows.append(_row(_title(*network), losses, lengths[network], steps))
    return rows


def _title(steps: int, width: float, learning_rate: float, augment: bool) -> str:
    others = [f"rate {learning_rate:g}"] * (learning_rate != 0.1) + ["crop and flip"] * augment
    return ", ".join([_share(width), f"{steps:,} steps", *others])


def _share(width: float) -> str:
    return f"{Fraction(width).limit_denominator(64)} of the width" if width != 1 else "its whole width"


def _row(title: str, losses: Mapping[str, np.ndarray], lengths: Sequence[float], steps: np.ndarray) -> dict:
    """Geometric means over the seeds of the loss (S, P, A) at each length, and of its smallest and largest
    value within the paper's lengths."""
    at = np.array(lengths, dtype=float)
    within, arms = (at >= REACH[0]) & (at <= REACH[1]), {}
    for arm, values in losses.items():
        with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # where no seed has a finite loss
            logs = np.log(values)
            edges = {"low": logs[..., within].min(-1), "high": logs[..., within].max(-1), "along": logs}
            arms[arm] = {name: rounded(np.exp(np.nanmean(edge, axis=0))) for name, edge in edges.items()}
    seeds = len(losses["none"])
    return {"title": title, "seeds": seeds, "steps": rounded(steps), "lengths": at.tolist(), "arms": arms}
