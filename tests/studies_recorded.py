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

from bnbook.chapters import gradient_explosion, halfspaces, length_direction, neural_networks, theorems
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


def _nonlinearities() -> Numbers:
    at = torch.tensor([-1.5, 0.3, 2.0], dtype=torch.float64)
    drawn = enumerate(gradient_explosion.random_nonlinearities(6, seed=1))
    found = {str(number): [float(m), *phi(at).tolist()] for number, (phi, m) in drawn}
    inputs, labels = gradient_explosion.gaussian_batch(3, 2, 5)
    return found | {"batch": [*inputs.flatten().tolist(), *labels.tolist()]}


CASES: dict[str, Callable[[], Numbers]] = {
    "theorems instances": _instances,
    "length_direction problems": _problems,
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
