"""The landscape, step by step: the losses met along the gradient while a network trains, a rung a network.

A chapter that records `along_gradient.ARM` (S, P, A), the loss at P probed steps and A step lengths, gives
the whole cross-section; the ladder's rungs are along_gradient.RUNG.ARM with along_step.RUNG (1, P). One that
only drew the smallest and the largest of them gives these, read back from its figure.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bnbook.pipeline.explorers.drawn import rounded
from bnbook.pipeline.tokens import Pages
from bnbook.results import Results

CHAPTER, LADDER = "santurkar/landscape", "santurkar/scale"
ARMS = ("none", "batch")
REACH = (0.5, 4.0)  # learning rates, the paper's
POINT = re.compile(r"[ML] (-?[\d.]+) (-?[\d.]+)")


def landscape(pages: Pages) -> list[dict[str, Any]] | None:
    """A row for each network whose losses along the gradient are known; None where there is none."""
    rows = []
    if ladder := pages.evidence.get(LADDER):
        results = ladder.results
        tags = [name.split(".")[1] for name in results if re.fullmatch(r"along_step\.\w+", name)]
        rows += [_recorded(results, f"{tag}.", results[f"along_step.{tag}"][0], tag) for tag in tags]
    if single := pages.evidence.get(CHAPTER):
        steps, used = single.results["probe_step"][0], single.results.header["parameters"]
        title = f"{Fraction(used['width']).limit_denominator(64)} of the width, {used['steps']:,} steps"
        if all(f"along_gradient.{arm}" in single.results for arm in ARMS):
            rows.append(_recorded(single.results, "", steps, title))
        elif bands := drawn_bands(single.figures_folder / "landscape.svg", len(steps)):
            arms = {arm: {"low": rounded(low), "high": rounded(high)} for arm, (low, high) in bands.items()}
            seeds = used["seeds"]
            rows.append(
                {"title": title, "seeds": seeds, "steps": rounded(steps), "lengths": None, "arms": arms}
            )
    return rows or None


def _recorded(results: Results, rung: str, steps: np.ndarray, title: str) -> dict[str, Any]:
    """Geometric means over the seeds of the loss at each length, and of its smallest and largest value."""
    lengths = np.array(results.header["parameters"]["lengths"], dtype=float)
    within = (lengths >= REACH[0]) & (lengths <= REACH[1])
    arms = {}
    for arm in ARMS:
        losses = results[f"along_gradient.{rung}{arm}"]
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(losses)
            edges = {"low": logs[..., within].min(-1), "high": logs[..., within].max(-1), "along": logs}
            arms[arm] = {name: rounded(np.exp(np.nanmean(edge, axis=0))) for name, edge in edges.items()}
    seeds = len(losses)
    return {
        "title": title,
        "seeds": seeds,
        "steps": rounded(steps),
        "lengths": lengths.tolist(),
        "arms": arms,
    }


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
