"""Single entries of the Hessian for the weights against version 1's theorems: inputs of mean zero, γ = 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from bnbook.studies.theorems import smoothness
from bnbook.studies.theorems.curved import Curved
from bnbook.studies.theorems.instances import batch_norm, hessian
from bnbook.studies.theorems.margins import error, margin
from bnbook.studies.theorems.one_unit import Unit, normalize, project

#: What is said without version 1's assumption on d.
ALWAYS = ("margin.plain", "margin.c6_corrected", "margin.th34_corrected", "margin.equation_64_one")


@dataclass(frozen=True)
class HessianEntry:
    """∂²L̂/∂W∂W' for one weight of a unit and one of the same or another unit."""

    value: float  # by automatic differentiation
    second: float  # the part Σ g ∂²ŷ of it, of equation 35
    x: np.ndarray  # (m,) the first weight's input
    x2: np.ndarray  # (m,) the second weight's
    unit: Unit
    unit2: Unit
    h: np.ndarray  # (m, m) Hessian of the loss for the values of the two units
    g: np.ndarray  # (m,) gradient of the loss for the values of the first unit

    @property
    def inner(self) -> float:
        """X = (P x)ᵀ H P₂ x₂"""
        return float(project(self.x, self.unit) @ self.h @ project(self.x2, self.unit2))

    @property
    def sizes(self) -> float:
        """‖x‖ ‖x₂‖"""
        return math.sqrt((self.x @ self.x) * (self.x2 @ self.x2))


def entry_trial(curved: Curved, share: float) -> dict[str, float]:
    """What version 1 says of second derivatives; ε of Theorem C.6 is `share` of its largest value."""
    cross, same, diagonal = _entries(curved)
    norm = math.sqrt((cross.h**2).sum())
    crossed = cross.inner / cross.unit.sigma / cross.unit2.sigma
    size = cross.sizes * norm / cross.unit.sigma / cross.unit2.sigma
    result = {"error.equation_44": error(cross.value, crossed, size), **_one_unit(same, diagonal)}
    if curved.family == "reaching":
        reached = smoothness.equation_61(0.0, same.g, same.x, same.x2, same.unit, _least_constant(same))
        result["error.equation_61_reached"] = error(abs(same.second), reached)
    for name, entry, factor in (("cross", cross, 0.0), ("same", same, 6.0), ("diagonal", diagonal, 3.0)):
        found = _theorem_c6(entry, factor, share)
        of_assumption = curved.equal_cosines
        kept = found if of_assumption else {key: found[key] for key in ALWAYS if key in found}
        result |= {f"{key}.{name}": number for key, number in kept.items()}
        result[f"margin.c6.{name}.any"] = found["margin.c6"]
        if of_assumption:
            result[f"margin.c6.{name}.{curved.family.replace('-', '_')}"] = found["margin.c6"]
    return result


def _entries(curved: Curved) -> tuple[HessianEntry, HessianEntry, HessianEntry]:
    """For two weights of two units, two of one unit, and one weight twice."""
    x, w = torch.tensor(curved.instance.x), curved.instance.w
    normalized = lambda w_: batch_norm(x @ w_, np.ones(2), np.zeros(2))
    slope = torch.tensor(curved.slope)
    whole = hessian(lambda w_: curved.instance.loss(normalized(w_)), w)
    fixed = hessian(lambda w_: (slope * normalized(w_)).sum(), w)
    inputs, g = (curved.instance.x[:, 0], curved.instance.x[:, 1]), curved.slope[:, 0]
    units = [normalize(curved.instance.y[:, j]) for j in (0, 1)]

    def entry(i: int, unit: int) -> HessianEntry:
        """Of W_00 and the weight of `unit` for input i."""
        h = curved.curvature[:, 0, :, unit]
        value, second = whole[0, 0, i, unit], fixed[0, 0, i, unit]
        return HessianEntry(value, second, inputs[0], inputs[i], units[0], units[unit], h, g)

    return entry(1, 1), entry(1, 0), entry(0, 0)


def _one_unit(same: HessianEntry, diagonal: HessianEntry) -> dict[str, float]:
    """Equations 55 to 61."""
    g, x, x2, unit, inner, value, second = (
        same.g,
        same.x,
        same.x2,
        same.unit,
        same.inner,
        same.value,
        same.second,
    )
    scale = same.sizes * (math.sqrt((same.h**2).sum()) + math.sqrt(g @ g)) / unit.sigma**2
    printed, exchanged = (
        smoothness.equation_58(inner, g, *pair, unit, printed=True) for pair in ((x, x2), (x2, x))
    )
    right = smoothness.equation_58(inner, g, x, x2, unit, printed=False)
    of_61 = lambda entry, constant: margin(
        abs(entry.value), smoothness.equation_61(entry.inner, g, entry.x, entry.x2, unit, constant)
    )
    return {
        "error.equation_55": error(second, smoothness.equation_55(g, x, x2, unit), scale),
        "error.second_term": error(second, smoothness.second_term(g, x, x2, unit), scale),
        "error.equation_56": error(value - second, smoothness.equation_56(inner, g, x, x2, unit), scale),
        "error.first_term": error(value - second, inner / unit.sigma**2, scale),
        "error.equation_58": error(value, printed, scale),
        "error.equation_58_asymmetry": error(printed, exchanged, scale),
        "error.equation_58_corrected": error(value, right, scale),
        "margin.equation_59": margin(abs(value), smoothness.equation_59(inner, g, x, x2, unit)),
        "margin.equation_61": of_61(same, 6 * unit.m),
        "margin.equation_61_best": of_61(same, _least_constant(same)),
        "margin.equation_61_diagonal": of_61(diagonal, 3 * unit.m),
        "plot.dense": value / scale,
        "plot.printed": printed / scale,
        "plot.corrected": right / scale,
    }


def _least_constant(entry: HessianEntry) -> float:
    return smoothness.TRILINEAR * entry.unit.m**0.5


def _theorem_c6(entry: HessianEntry, factor: float, share: float) -> dict[str, float]:
    """Theorems C.6 and 3.4; `factor` is what they put before ‖g‖.

    They are about σ_j σ_l |∂²L̂|, which does not depend on the spread of the outputs: it is set to C.6's
    smallest one, so that its condition holds just so.
    """
    h, x, x2 = entry.h, entry.x, entry.x2
    scaled = abs(float(entry.value)) * (entry.unit.sigma * entry.unit2.sigma)
    d, d2 = smoothness.column_share(h, x), smoothness.column_share(h.T, x2)
    cosine, plain = smoothness.matrix_cosine(h, x, x2), abs(float(x @ h @ x2))
    norm, size = math.sqrt((h * h).sum()), math.sqrt(entry.g @ entry.g)
    sizes, root = entry.sizes * norm, math.sqrt(d * d2)
    spread = smoothness.threshold_c6(d, d2, factor * size, share * root) * (1 + 1e-9)
    ratio = size / (math.sqrt(len(x)) * norm) if factor else 0.0
    allowed = (1 + math.sqrt(d)) * (1 + math.sqrt(d2)) + factor * size
    result = {
        "error.plain": error(plain, root * sizes),
        "margin.plain": margin(plain, math.sqrt(min(d, d2)) * sizes),
        "margin.c6": margin(scaled / spread, (1 - share) * plain),
        "margin.th34": margin(scaled, allowed * plain),
        "margin.equation_64": margin(abs(entry.inner), (1 + math.sqrt(d)) * (1 + math.sqrt(d2)) * sizes),
        "margin.equation_64_one": margin(abs(entry.inner), sizes),
    }
    if cosine > 1e-9:  # else the plain network's derivative is zero and no spread is large enough
        enough = smoothness.threshold_c6_corrected(cosine, ratio, share * cosine)
        slack, sharp = sizes / enough * 1e-6, (1 + 1 / cosine) / 2 + smoothness.TRILINEAR * ratio / cosine
        result["margin.c6_corrected"] = margin(scaled / enough, (1 - share) * plain, slack)
        result["margin.th34_corrected"] = margin(scaled, sharp * plain)
    return result
