"""The landscape, step by step: the losses met along the gradient while a network trains, a rung a network.

The ladder publishes its trainings, and they hold the loss at P probed steps and A step lengths: the whole
cross-section of each rung that was reached. So does a chapter that records `along_gradient.ARM` (S, P, A).
One that only drew the smallest and the largest of them gives these, read back from its figure.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bnbook.pipeline.explorers.drawn import rounded
from bnbook.pipeline.tokens import Pages
from bnbook.results import Results
from bnbook.runs import store

CHAPTER, LADDER = "santurkar/landscape", "santurkar/scale"
ARMS = ("none", "batch")
REACH = (0.5, 4.0)  # learning rates, the paper's
POINT = re.compile(r"[ML] (-?[\d.]+) (-?[\d.]+)")


def landscape(pages: Pages) -> list[dict[str, Any]] | None:
    """A row for each network whose losses along the gradient are known; None where there is none."""
    rows = []
    if ladder := pages.evidence.get(LADDER):
        rows += rungs(ladder.results)
    if single := pages.evidence.get(CHAPTER):
        steps, used = single.results["probe_step"][0], single.results.header["parameters"]
        title = f"{Fraction(used['width']).limit_denominator(64)} of the width, {used['steps']:,} steps"
        if all(f"along_gradient.{arm}" in single.results for arm in ARMS):
            losses = {arm: single.results[f"along_gradient.{arm}"] for arm in ARMS}
            rows.append(_row(title, losses, used["lengths"], steps))
        elif bands := drawn_bands(single.figures_folder / "landscape.svg", len(steps)):
            arms = {arm: {"low": rounded(low), "high": rounded(high)} for arm, (low, high) in bands.items()}
            seeds = used["seeds"]
            rows.append(
                {"title": title, "seeds": seeds, "steps": rounded(steps), "lengths": None, "arms": arms}
            )
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
    share = f"{Fraction(width).limit_denominator(64)} of the width" if width != 1 else "its whole width"
    others = [f"rate {learning_rate:g}"] * (learning_rate != 0.1) + ["crop and flip"] * augment
    return ", ".join([share, f"{steps:,} steps", *others])


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


def drawn_bands(path: Path, probes: int) -> dict[str, tuple[np.ndarray, np.ndarray]] | None:
    """Smallest and largest loss (P,) of each arm, from the two areas of the figure's first panel.

    Matplotlib draws an area as its first upper corner, the lower edge, its last upper corner and the upper
    edge backwards. None where the figure is another one.
    """
    drawn = path.read_text(encoding="utf-8") if path.is_file() else ""
    panel = drawn.partition('<g id="axes_1">')[2].partition('<g id="axes_2">')[0]
    ticks = {}
    for part in re.split(r'(?=<g id="ytick_)', panel)[1:]:
        place = re.search(r'<use [^>]*\by="([\d.]+)"', part)
        label = re.search(r"<!-- \$\\mathdefault\{(?:(\d)\\times)?10\^\{(-?\d+)\}\}\$ -->", part)
        if place and label:
            ticks[float(label[1] or 1) * 10.0 ** int(label[2])] = float(place[1])
    areas = panel.partition('<g id="matplotlib.axis')[0].split('<g id="FillBetween')[1:]
    if len(ticks) < 2 or len(areas) != len(ARMS):
        return None
    (least, foot), *_, (most, top) = sorted(ticks.items())
    bands = {}
    for arm, area in zip(ARMS, areas):
        shift = re.search(r'<use [^>]*\by="([\d.]+)"', area)  # of an outline that is drawn by reference
        heights = np.array([float(y) for _, y in POINT.findall(area)]) + float(shift[1] if shift else 0)
        if len(heights) != 2 * probes + 2:
            return None
        values = least * (most / least) ** ((heights - foot) / (top - foot))
        bands[arm] = (values[1 : probes + 1], values[probes + 2 : 2 * probes + 2][::-1])
    return bands
