"""One random instance against every theorem on second derivatives: dense Hessians by autograd against the
formulas.

The same two kinds of numbers as in `lipschitz_trials`: "error.NAME" and "margin.NAME". Here the Hessian for
one unit's outputs, in `entry_trials` its entries for the weights.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch

from bnbook.studies.theorems import smoothness
from bnbook.studies.theorems.assumption_trials import assumption_trial, predictiveness_trial
from bnbook.studies.theorems.cases import Case, look
from bnbook.studies.theorems.curved import Curved, draw_curved
from bnbook.studies.theorems.entry_trials import entry_trial
from bnbook.studies.theorems.instances import LINEAR, batch_norm, draw, hessian, restoring
from bnbook.studies.theorems.margins import error, margin


def smoothness_trial(rng: np.random.Generator, number: int) -> dict[str, float]:
    """Everything that the page on smoothness says about instance `number`."""
    instance, j = draw(rng, number), number % 2
    case = look(instance, j)
    return {
        **_along_the_gradient(case),
        **predictiveness_trial(case),
        **_other_layers(case, 10 ** rng.uniform(-4, 1)),
        **_isotropic(draw_curved(rng, 5 * number + 2)),
        **assumption_trial(rng, case),
        **entry_trial(draw_curved(rng, number, gamma=1.0), rng.uniform()),
        **_spectral(rng),
    }


def _along_the_gradient(case: Case) -> dict[str, float]:
    """Equation 42, the first part of Theorem 4.2 and Theorem C.1."""
    unit, gamma, g, v, h = case.unit, case.gamma, case.g, case.v, case.above
    instance, j, linear = case.instance, case.j, case.instance.kind in LINEAR
    own_h = hessian(instance.loss, instance.y)[:, j, :, j]
    size, value = _size(h, case), v @ case.through @ v
    reach = size * case.reach
    first = smoothness.theorem_42(h, g, unit, gamma, v, second=False)
    literal = smoothness.theorem_42(own_h, case.own, unit, gamma, v, second=False)
    same = look(restoring(instance), j)  # z = y: both networks have the same derivatives from above
    same = replace(same, g=same.own)
    restored = smoothness.theorem_42(own_h, same.g, unit, same.gamma, same.v, second=False)
    unscaled = _size(own_h, same) * (same.g @ same.g)  # γ = σ
    scales = torch.tensor(instance.gamma, requires_grad=True)
    y_hat = batch_norm(torch.tensor(instance.y), np.ones(2), np.zeros(2))
    (slope,) = torch.autograd.grad(instance.loss(scales * y_hat + torch.tensor(instance.beta)), scales)
    return {
        "error.hessian": error(case.through, smoothness.through(h, g, unit, gamma), size),
        "error.equation_42": error(case.through, smoothness.equation_42(h, g, unit, gamma), size),
        "error.first": error(value, first, reach),
        "margin.first": margin(value, first, reach),
        "margin.first_literal": margin(value, literal, reach if unit.m == 2 else 0.0),
        "margin.c1": _theorem_c1(case, h, printed=False),
        # H = 0 preserves every relative norm, so linear losses meet the condition of Theorem C.1.
        **({"margin.c1_printed": _theorem_c1(case, h, printed=True)} if linear else {}),
        "error.scale_gradient": error(slope[j], g @ unit.y_hat, math.sqrt((g @ g) * unit.m)),
        "margin.first_restored": margin(same.v @ same.through @ same.v, restored, unscaled),
    }


def _isotropic(curved: Curved) -> dict[str, float]:
    """H = h I: it preserves relative norms exactly, for every pair of vectors."""
    g, h = curved.slope[:, 0], curved.curvature[:, 0, :, 0]
    case = replace(look(curved.instance, 0), g=g)
    unit, gamma, v = case.unit, case.gamma, case.v
    value, reach = v @ case.through @ v, _size(h, case) * case.reach
    scale = reach if unit.m == 2 else 0.0
    bound = smoothness.theorem_42(h, g, unit, gamma, v, second=True)
    shrunk = (v @ v) / (g @ g) * (g @ h @ g)  # ‖v‖²/‖g‖² gᵀHg stands for gᵀHg
    exact = gamma**2 / unit.sigma**2 * (shrunk - (g @ unit.y_hat) * (v @ v) / (unit.m * gamma))
    result = {
        "margin.second": margin(value, bound, scale),
        "error.second": error(value, exact, reach),
        "margin.c1.isotropic": _theorem_c1(case, h, printed=False),
        "margin.c1_printed.isotropic": _theorem_c1(case, h, printed=True),
    }
    if abs(gamma) <= unit.sigma and h[0, 0] >= 0:
        result["margin.second_fair"] = result["margin.second"]
        result["margin.c1_printed_fair"] = result["margin.c1_printed.isotropic"]
    return result


def _spectral(rng: np.random.Generator) -> dict[str, float]:
    """Two symmetric matrices, |A| ≤ |B| entry by entry."""
    b = rng.standard_normal((6, 6))
    b = b + b.T
    u = rng.uniform(size=(6, 6))
    a = np.minimum(u, u.T) ** 0.1 * (np.abs(b) if rng.uniform() < 0.5 else b)
    return {
        "margin.spectral": margin(np.linalg.norm(a, 2), np.linalg.norm(b, 2)),
        "margin.frobenius": margin(np.linalg.norm(a), np.linalg.norm(b)),
    }


def _other_layers(usual: Case, share: float) -> dict[str, float]:
    """The first part of Theorem 4.2 with eps > 0 and with the unbiased variance, every 1/m as printed."""
    result = {}
    layers = {"eps": (share * float(usual.y.var()), False), "unbiased": (0.0, True)}
    for name, (eps, unbiased) in layers.items():
        case = look(usual.instance, usual.j, eps, unbiased)
        unit, gamma, g, v, h = case.unit, case.gamma, case.g, case.v, case.above
        bound = smoothness.theorem_42(h, g, unit, gamma, v, second=False)
        size, formula = _size(h, case), smoothness.through(h, g, unit, gamma)
        scale = size * case.reach if unit.m == 2 else 0.0
        result[f"error.hessian.{name}"] = error(case.through, formula, size)
        result[f"margin.first.{name}"] = margin(v @ case.through @ v, bound, scale)
    return result


def _theorem_c1(case: Case, h: np.ndarray, *, printed: bool) -> float:
    """The margin of Theorem C.1, printed or the book's."""
    value = smoothness.ball_maximum((case.through + case.through.T) / 2, case.v)
    bound = smoothness.theorem_c1(h, case.g, case.unit, case.gamma, case.v, printed=printed)
    small = 1e-6 if case.unit.m == 2 else 0.0  # for m = 2 the gradient is zero up to rounding
    return margin(value, bound, small * _size(h, case) * case.reach)


def _size(h: np.ndarray, case: Case) -> float:
    """The size of the terms of a Hessian entry."""
    curved = (case.gamma / case.unit.sigma) ** 2 * math.sqrt((h * h).sum())
    return curved + abs(case.gamma) / case.unit.sigma**2 * math.sqrt(case.g @ case.g)
