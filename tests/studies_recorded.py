"""What the random trials of the studies gave when their chapters' evidence was made: a few draws of each.

`python tests/studies_recorded.py` writes `studies_recorded.json` anew; do so only where a trial is meant to
give other numbers, for then the committed evidence is stale too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from bnbook.chapters import (
    gradient_explosion,
    halfspaces,
    least_squares,
    length_direction,
    neural_networks,
    theorems,
)
from bnbook.chapters.halfspaces import draw_gaussian
from bnbook.chapters.length_direction import LOSSES

PATH = Path(__file__).with_suffix(".json")
Numbers = dict[str, list[float]]


def _instances() -> Numbers:
    """Size of what is drawn, and the loss and its slope at the layer's own outputs."""
    found = {}
    for number in range(20):
        drawn = theorems.draw(np.random.default_rng([4, number]), number, centred=number % 2 == 1)
        slopes = theorems.differentiate(drawn)
        parts = (drawn.x, drawn.w, drawn.gamma, drawn.beta, slopes.shared, slopes.own)
        found[f"{number} {drawn.kind}"] = [len(drawn.x), *(float(np.linalg.norm(part)) for part in parts)]
    return found


def _least_squares() -> Numbers:
    of_direction, plain, obeying = least_squares.least_squares_margins(1, 8, 2)
    return {"direction": list(of_direction.ratio), "plain": list(plain.ratio), "obeying": [float(obeying)]}


def _rayleigh() -> Numbers:
    found = {name: list(margins.ratio) for name, margins in least_squares.rayleigh_margins(1, 6, 2).items()}
    longer = least_squares.rayleigh_margins(2, 6, 80)  # until ρ is too near to λ1
    found["steps"] = [float(len(margins.ratio)) for margins in longer.values()]
    for kind in ("rank one", "identity", "general"):
        pencil, w = least_squares.draw_pencil(np.random.default_rng(5), kind)
        found[kind] = [*pencil.of_B[-2:], *pencil.of_pair[-2:], *pencil.of_A[:2], w @ w]
    return found


def _problems() -> Numbers:
    found = {}
    for kind in length_direction.KINDS:
        problem, w = length_direction.draw_quadratic(np.random.default_rng(6), kind)
        found[kind] = [len(w), problem.smallest, problem.largest, problem.attainable, w @ w, w @ problem.u]
    for size in (None, 3):
        halfspace = draw_gaussian(np.random.default_rng(7), LOSSES["huber"], size)
        problem = halfspace.problem
        found[f"half-space {size}"] = [problem.smallest, problem.largest, problem.attainable, len(problem.u)]
        for kind in range(3):
            start = halfspaces.draw_start(np.random.default_rng(8), halfspace, kind)
            found[f"start {size} {kind}"] = [halfspace.length(start), start @ problem.u]
    for equal in (False, True):
        drawn = neural_networks.draw_network(np.random.default_rng(9), LOSSES["logistic"], 3, 4, equal)
        moments = (drawn.problem.smallest, drawn.problem.largest, drawn.problem.attainable)
        found[f"network {equal}"] = [*moments, *drawn.theta]
    return found


def _critical_points() -> Numbers:
    rng = np.random.default_rng(10)
    points, halfspace = halfspaces.critical_points(rng, LOSSES["ripple"], 3, 2)
    found = {"ripple": [len(points), *np.sort(halfspaces.sine_off_line(points, halfspace))]}
    drawn = neural_networks.draw_network(rng, LOSSES["logistic"], 2, 2, True)
    for on_line in (True, False):
        point = neural_networks.one_unit(drawn, np.random.default_rng(11), on_line)
        found[f"one unit {on_line}"] = [] if point is None else [*point]
    return found


def _passes() -> Numbers:
    single, many, drawn = neural_networks.run_passes(1, 2, [2, 4], 2)
    return {"single": list(single), "many": list(many), "theta": list(drawn.theta)}


def _race() -> Numbers:
    halfspace = draw_gaussian(np.random.default_rng(12), LOSSES["logistic"], 3)
    return {name: list(one) for name, one in halfspaces.race(halfspace, np.ones(3), 3).items()}


def _nonlinearities() -> Numbers:
    at = torch.tensor([-1.5, 0.3, 2.0], dtype=torch.float64)
    drawn = enumerate(gradient_explosion.random_nonlinearities(6, seed=1))
    found = {str(number): [float(m), *phi(at).tolist()] for number, (phi, m) in drawn}
    inputs, labels = gradient_explosion.gaussian_batch(3, 2, 5)
    return found | {"batch": [*inputs.flatten().tolist(), *labels.tolist()]}


CASES: dict[str, Callable[[], Numbers]] = {
    "theorems instances": _instances,
    "length_direction half-spaces": lambda: halfspaces.run_margins(1, 9, 2),
    "length_direction least squares": _least_squares,
    "length_direction rayleigh": _rayleigh,
    "length_direction problems": _problems,
    "length_direction one unit": lambda: {k: [*v] for k, v in neural_networks.unit_margins(1, 3, 1).items()},
    "length_direction critical points": _critical_points,
    "length_direction passes": _passes,
    "length_direction race": _race,
    "gradient_growth draws": _nonlinearities,
}

if __name__ == "__main__":
    short = {
        case: {name: [float(f"{v:.8g}") for v in row] for name, row in numbers().items()}
        for case, numbers in CASES.items()
    }
    lines = (
        f"  {json.dumps(case)}: {{\n"
        + ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        + "\n  }"
        for case, rows in short.items()
    )
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
